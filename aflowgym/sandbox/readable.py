"""Which files a program may read: Python's standard library, and no package beside it.

The library's folder is granted entry by entry, since `site-packages` may lie in it, and there the
bundled tasks with their hidden tests. Modules that are asked for by name (`preload`) are imported
before the walls stand, and their folders granted, so that what they import later is found.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

#: Imported in every worker, so that a child has them at once.
COMMON: Final = (
    *("bisect", "cmath", "collections.abc", "copy", "dataclasses", "datetime", "decimal", "enum"),
    *("fractions", "functools", "hashlib", "heapq", "itertools", "json", "math", "numbers"),
    *("operator", "random", "re", "statistics", "string", "time", "typing"),
)
#: These need a library of the system, which cannot be read later; some Pythons lack some.
_WITH_LIBRARIES: Final = ("bz2", "lzma", "uuid", "zlib", "_decimal", "_sqlite3")
_OTHERS_PACKAGES: Final = frozenset({"site-packages", "dist-packages"})
_ALSO: Final = ("/usr/share/zoneinfo", "/dev/urandom", "/dev/zero")


def load(preload: Sequence[str]) -> None:
    """Import the common modules, and those that were asked for.

    Raises:
        ImportError: One of those is not there.
    """
    for name in (*COMMON, *preload):
        importlib.import_module(name)
    for name in _WITH_LIBRARIES:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)


def paths(preload: Sequence[str]) -> list[str]:
    """What may be read, after `load`."""
    library = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    found = [each for folder in sorted(library) for each in _entries(folder)]
    found += [path for path in sys.path if path.endswith(".zip")]
    roots = {name.partition(".")[0] for name in preload}
    if roots:
        found += _packages(library)
    return [path for path in (*found, *_ALSO) if os.path.exists(path)]


def _entries(folder: str) -> Iterator[str]:
    for name in sorted(os.listdir(folder)):
        if name not in _OTHERS_PACKAGES:
            yield os.path.join(folder, name)


def _packages(library: Iterable[str]) -> list[str]:
    """The folders of the packages that are loaded and lie outside the library."""
    known = set(sys.stdlib_module_names) | {"aflowgym", "__main__"}
    found: set[str] = set()
    for name, module in list(sys.modules.items()):
        if "." not in name and name not in known:
            found.update(getattr(module, "__path__", ()))
            if not hasattr(module, "__path__") and getattr(module, "__file__", None):
                found.add(str(module.__file__))
    return sorted(path for path in found if path not in library)
