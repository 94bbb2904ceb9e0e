"""JSON files that survive a killed process.

Two kinds: one object that is replaced as a whole, and lines that are only ever appended. A process
may be killed while it writes, so a last line without its end is an accident that happens: it is
dropped, and told. A line that has its end and is broken was damaged otherwise, as is an object that
cannot be read: that is an error, and it names file and line.

JSON has no nan and no infinity: `plain` makes both null and keeps their key, so that a reader knows
the number was asked for and did not exist.
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
    """The same value in JSON's own types; nan and the infinities become None.

    Args:
        value: Numbers (those of numpy too), text, paths, None, and lists and mappings of them.
        where: What the value is called in the error.

    Raises:
        ConfigurationError: Something in it is of another type.
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
        f"{where} is of type {type(value).__name__}, which JSON cannot hold; "
        "pass numbers, text, lists and dicts."
    )


def encode(text: str) -> bytes:
    """UTF-8 that takes any text: half a surrogate pair becomes its escape, as in JSON."""
    return text.encode("utf-8", errors="backslashreplace")


def object_text(record: Mapping[str, Any]) -> bytes:
    """One object as the whole content of a file, for people to read."""
    return encode(json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def line_text(record: Mapping[str, Any]) -> bytes:
    """One object as one line."""
    return encode(json.dumps(record, ensure_ascii=False) + "\n")


def replace_file(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file so that at every moment either the old or the new one is there, and whole.

    Several processes may write the same one: the last of them has it.
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
    """Put a folder in its place; what is there goes to `old`, and comes back if that fails."""
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
    """The one object in a file.

    Raises:
        ConfigurationError: It is not JSON, or not an object.
    """
    try:
        value = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as problem:
        raise ConfigurationError(
            f"{file} is not JSON: {problem}. Mend it, or start a new run."
        ) from None
    if not isinstance(value, dict):
        raise ConfigurationError(f"{file} must hold one JSON object, and holds something else.")
    return value


def read_lines(file: Path, check: Callable[[Any], T], cut_off: Callable[[], None]) -> Iterator[T]:
    """The objects of a file, one a line, in order; none where there is no file.

    Args:
        check: Returns the record, or what is made of it, or raises a ValueError that says what is
            wrong with it.
        cut_off: Called when the last line was cut off, and so is left out.

    Raises:
        ConfigurationError: A line is broken that has its end.
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
                        f"Line {number} of {file} is damaged: {problem}. Remove that line, or take "
                        "the file from a copy."
                    ) from None
                cut_off()


def append_lines(file: Path, records: Sequence[Record]) -> bool:
    """Append one line for each record, all in one write; a last line that was cut off is dropped.

    Args:
        file: Made if it is missing.
        records: The records to append.

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
                stream.write(b"\n")  # only the end of the line is missing
            except (ValueError, RecursionError):
                is_cut = True
                stream.truncate(size - len(last))
        stream.write(b"".join(map(line_text, records)))
    return is_cut
