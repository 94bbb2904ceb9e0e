"""Reads and writes JSON files that remain readable if the process is killed.

There are two kinds of files: a file with a single object is always replaced completely, and a file
with one object per line is appended to. If the process is killed during a write, the last line is
incomplete and is dropped with a note. Any other damaged line, or an object that cannot be read,
raises an error that names the file and line.

JSON can represent neither nan nor infinity. `plain` converts both to null and keeps the key, so
that readers can distinguish an undefined number from a missing one.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from toolgym.errors import ConfigurationError

Record = dict[str, Any]
T = TypeVar("T")


def plain(value: Any, where: str) -> Any:
    """Convert a value to JSON types; nan and the infinities become None.

    Args:
        value: Numbers (including NumPy's), strings, paths, None, and lists and mappings of these.
        where: Name of the value in error messages.

    Raises:
        ConfigurationError: The value contains another type.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    raise ConfigurationError(
        f"{where} is of type {type(value).__name__}, which cannot be converted to JSON; "
        "pass numbers, text, lists and dicts."
    )


def encode(text: str) -> bytes:
    """Encode a string as UTF-8; lone surrogates become escapes, as in JSON."""
    return text.encode("utf-8", errors="backslashreplace")


def object_text(record: Mapping[str, Any]) -> bytes:
    """Return an object as indented JSON, as it is written to a file."""
    return encode(json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def line_text(record: Mapping[str, Any]) -> bytes:
    """Return an object as one line of JSON."""
    return encode(json.dumps(record, ensure_ascii=False) + "\n")


def replace_file(path: Path, chunks: Iterable[bytes]) -> None:
    """Replace a file atomically: readers see either the old or the new content.

    If several processes write the same file, the last write is kept.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with fresh.open("wb") as stream:
            stream.writelines(chunks)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def replace_folder(built: Path, place: Path, old: Path) -> None:
    """Move a folder to `place`. An existing folder is moved to `old`, and moved back on failure."""
    had_one = place.exists()
    if had_one:
        place.rename(old)
    try:
        built.rename(place)
    except OSError:
        if had_one:
            old.rename(place)
        raise


def read_object(file: Path) -> Record:
    """Read the object in a file.

    Raises:
        ConfigurationError: The content is not JSON or not an object.
    """
    try:
        value = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as problem:
        raise ConfigurationError(
            f"{file} is not JSON: {problem}. Correct it, or start a new run."
        ) from None
    if not isinstance(value, dict):
        raise ConfigurationError(f"{file} must contain one JSON object.")
    return value


def read_lines(file: Path, check: Callable[[Any], T], cut_off: Callable[[], None]) -> Iterator[T]:
    """Yield the objects in a file with one object per line. Yield nothing if the file does not
    exist.

    Args:
        file: The file.
        check: Function that converts an object to the yielded value, or raises a ValueError with
            the reason why it is invalid.
        cut_off: Function called if the last line was cut off and is omitted.

    Raises:
        ConfigurationError: A line is damaged and is not an incomplete last line.
    """
    if not file.is_file():
        return
    with file.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                yield check(json.loads(line))
            except (ValueError, RecursionError) as problem:
                if line.endswith(b"\n"):
                    raise ConfigurationError(
                        f"Line {number} of {file} is damaged: {problem}. Remove the line, or"
                        " restore the file from a copy."
                    ) from None
                cut_off()


def append_lines(file: Path, records: Sequence[Record]) -> bool:
    """Append one line for each record in a single write. An incomplete last line is dropped.

    Args:
        file: The file, which is created if it does not exist.
        records: The records.

    Returns:
        Whether a line was dropped.
    """
    is_cut = False
    with file.open("a+b") as stream:
        size = stream.tell()
        stream.seek(max(0, size - 1))
        if size and stream.read() != b"\n":
            last = file.read_bytes().rpartition(b"\n")[2]
            try:
                json.loads(last)
                stream.write(b"\n")  # only the line break is missing
            except (ValueError, RecursionError):
                is_cut = True
                stream.truncate(size - len(last))
        stream.write(b"".join(map(line_text, records)))
    return is_cut
