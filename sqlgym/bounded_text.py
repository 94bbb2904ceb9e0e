"""SQLite's text functions that a single call can make slow, bounded.

One function call inside SQLite cannot be interrupted, and a statement has room for many calls
between two looks at the clock. With texts of 100,000 bytes `instr`, `replace` and `trim` of two
arguments are quadratic (up to two seconds a call); `printf('%.*c', 1000000000, 'a')` writes for six
seconds into a text that is too long already, and then gives NULL. So these are replaced: text is
searched by Python, whose algorithms take milliseconds for the same, and everything else goes to the
built-in function on a private connection, once it is known to be short work. So every result is
SQLite's own, but for an error where `printf` gives NULL for a text that is too long.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from typing import Any

ARITIES = {"instr": 2, "replace": 3, "trim": 2, "ltrim": 2, "rtrim": 2, "printf": -1, "format": -1}
"""The functions that are replaced, with their number of arguments (`trim` of one is fast)."""
SHORT = 1_000
"""Bytes that the built-in functions are given to look for, at most."""

_CONVERSION = re.compile(r"%[-+ 0#,!]*(\*|\d*)(?:\.(\*|\d*))?l*(.)", re.DOTALL)


def bounded_text(name: str, most_bytes: int) -> Callable[..., Any]:
    """The built-in function `name`, for use as an SQL function that takes little time.

    Args:
        name: A key of `ARITIES`.
        most_bytes: No text may become longer than this; an `OverflowError` (which SQLite tells as
            "string or blob too big") says that it would.
    """
    builtin = _Builtin(name, most_bytes)
    if name in ("printf", "format"):
        return lambda *arguments: _formatted(builtin, most_bytes, arguments)
    search = _SEARCHES[name]

    def bounded(*arguments: Any) -> Any:
        if all(type(argument) is str for argument in arguments):
            return search(most_bytes, *arguments)
        if any(isinstance(a, str | bytes) and len(a) > SHORT for a in arguments[1:]):
            raise OverflowError(f"{name}() looks for at most {SHORT:,} bytes")
        return builtin(arguments)

    return bounded


class _Builtin:
    """The function itself, on a private connection that is opened when it is first needed."""

    def __init__(self, name: str, most_bytes: int) -> None:
        self._name, self._most_bytes = name, most_bytes
        self._db: sqlite3.Connection | None = None

    def __call__(self, arguments: tuple[Any, ...]) -> Any:
        if self._db is None:
            self._db = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            self._db.text_factory = _lenient  # `%.1s` cuts a character in two
            self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self._most_bytes)
        marks = ", ".join("?" * len(arguments))
        return self._db.execute(f"SELECT {self._name}({marks})", arguments).fetchone()[0]


def _lenient(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _formatted(builtin: _Builtin, most_bytes: int, arguments: tuple[Any, ...]) -> Any:
    """`printf`, unless it repeats a character too often or its text gets too long."""
    template = arguments[0] if arguments else None
    if isinstance(template, str) and "c" in template:
        given = iter(arguments[1:])
        for width, precision, kind in _CONVERSION.findall(template):
            sizes = [_size(next(given, 0)) if s == "*" else _size(s) for s in (width, precision)]
            if kind == "c" and sizes[1] > most_bytes:
                raise OverflowError(f"a text of more than {most_bytes:,} bytes")
            if kind not in "%n":
                next(given, None)
    text = builtin(arguments)
    if text is None and template is not None:
        raise OverflowError(f"a text of more than {most_bytes:,} bytes")
    return text


def _size(written: Any) -> float:
    """A width or precision: a number, or the one that a text begins with, as SQLite reads it."""
    if isinstance(written, int | float):
        return abs(written)
    text = written if isinstance(written, str) else (written or b"").decode("utf-8", "replace")
    number = re.match(r"\s*[-+]?(\d+)", text)
    return float(number[1]) if number else 0.0


def _instr(most_bytes: int, text: str, wanted: str) -> int:
    return text.find(wanted) + 1


def _replace(most_bytes: int, text: str, old: str, new: str) -> str:
    if not old or old[0] == "\0":
        return text
    growth = len(new) - len(old)
    if growth > 0 and len(text) + growth * text.count(old) > most_bytes:
        raise OverflowError(f"a text of more than {most_bytes:,} characters")
    return text.replace(old, new)


def _trim(most_bytes: int, text: str, characters: str) -> str:
    return text.strip(characters.split("\0", 1)[0])


def _ltrim(most_bytes: int, text: str, characters: str) -> str:
    return text.lstrip(characters.split("\0", 1)[0])


def _rtrim(most_bytes: int, text: str, characters: str) -> str:
    return text.rstrip(characters.split("\0", 1)[0])


_SEARCHES: dict[str, Callable[..., Any]] = {
    "instr": _instr,
    "replace": _replace,
    "trim": _trim,
    "ltrim": _ltrim,
    "rtrim": _rtrim,
}
