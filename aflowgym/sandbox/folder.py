"""How much a child keeps on the disk, and the end of its folder.

What lies in the folder is counted by name. What was removed while it is open or mapped takes as
much room and has no name any more, so it is looked for in the child's process: descriptors tell the
size of such a file, mappings only that there is one, which then counts as large as a file may be.
(The other way to a file without a name, `O_TMPFILE`, is refused by `filter`.)
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Final

#: What ends the line of a mapping whose file has no name any more.
_REMOVED: Final = b" (deleted)\n"
_INODE: Final = 4


def is_full(folder: str, child: int, most_bytes: int, most_files: int, file_bytes: int) -> bool:
    """Has a child more on the disk than it may?

    Args:
        folder: The child's own folder.
        child: The number of its process, which has not been waited for.
        most_bytes: Of all files together.
        most_files: How many.
        file_bytes: How large one file can be.
    """
    sizes = _named(folder)
    if sum(sizes) <= most_bytes and len(sizes) <= most_files:
        # A child that has ended meanwhile keeps nothing, and one that has not begun is not shown.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            sizes += _removed(folder, child, file_bytes)
    return sum(sizes) > most_bytes or len(sizes) > most_files


def _named(folder: str) -> list[int]:
    sizes = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                sizes.append(entry.stat(follow_symlinks=False).st_size)
    return sizes


def _removed(folder: str, child: int, file_bytes: int) -> list[int]:
    """The sizes of files that have no name and are still there."""
    device, opened = os.stat(folder).st_dev, {}
    for number in os.listdir(f"/proc/{child}/fd"):
        with contextlib.suppress(FileNotFoundError):
            told = os.stat(f"/proc/{child}/fd/{number}")
            if told.st_dev == device and not told.st_nlink and stat.S_ISREG(told.st_mode):
                opened[told.st_ino] = told.st_size
    with open(f"/proc/{child}/maps", "rb") as lines:
        ends = [line.split(None, 5) for line in lines if line.endswith(_REMOVED)]
    own = os.fsencode(folder) + b"/"
    mapped = {int(words[_INODE]) for words in ends if words[-1].startswith(own)}
    return [*opened.values(), *(file_bytes for _ in mapped - opened.keys())]


def emptied(folder: str) -> None:
    """Remove a folder of files. A child can make no folders in it, so there are none."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    for name in names:
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)
