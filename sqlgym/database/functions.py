"""Safe replacements for SQLite functions that can run for a long time or read the clock.

SQLite cannot interrupt a single function call. `instr`, `replace` and `trim` take quadratic time,
which is slow for strings of 100,000 bytes, and `printf` can repeat a character a billion times. The
replacements call the original function if the call is cheap, and otherwise raise `OverflowError`,
which SQLite reports as a value that is too large.

The authorizer of SQLite receives the name of a function but not its arguments. Therefore the date
functions are replaced by versions that reject the current time and the local time zone.
"""

from __future__ import annotations

import functools
import re
import sqlite3
from collections.abc import Callable
from typing import Any

from sqlgym.database.sqlite_file import lenient_text

SHORT = 2_000_000
"""Maximum number of byte comparisons in a function call, which takes a few milliseconds."""
REMEMBERED = 100
"""Maximum length of an argument for which the result of a date function is cached."""
DATE_FUNCTIONS = dict.fromkeys(
    ("date", "time", "datetime", "julianday", "unixepoch", "timediff"), 0
) | {"strftime": 1}
"""Date functions, with the position of the first argument that is a time value."""
BOUNDED = {"instr": 2, "replace": 3, "trim": 2, "ltrim": 2, "rtrim": 2, "printf": -1, "format": -1}
"""Functions that are replaced because they may run for a long time, with their numbers of
arguments.
"""
_CONVERSION = re.compile(r"%[^A-Za-z%]*")


@functools.cache
def functions_of_sqlite() -> frozenset[str]:
    """Return the names of the functions of this version of SQLite."""
    connection = sqlite3.connect(":memory:")
    rows = connection.execute("SELECT name FROM pragma_function_list").fetchall()
    connection.close()
    return frozenset(name for (name,) in rows)


def bound_texts(connection: sqlite3.Connection, most_bytes: int) -> None:
    """Replace the functions in `BOUNDED` on a connection, if this version of SQLite has them.

    Args:
        most_bytes: Maximum length, in bytes, of a string or blob that the functions return.
    """
    for name in sorted(functions_of_sqlite() & BOUNDED.keys()):
        function = bounded(name, most_bytes)
        connection.create_function(name, BOUNDED[name], function, deterministic=True)


def bounded(name: str, most_bytes: int) -> Callable[..., Any]:
    """Return the SQLite function `name` as a Python function of bounded cost.

    The function raises `OverflowError` instead of running for a long time or returning more than
    `most_bytes` bytes.
    """
    original = _original(name, most_bytes)

    def formatted(*arguments: Any) -> Any:
        template = _c_text(arguments[0]) if arguments else ""
        repeated = 0
        for conversion in _CONVERSION.findall(template):
            if "*" in conversion:
                raise OverflowError("a width that is an argument")
            repeated += sum(int(n.lstrip("0")[:12] or 0) for n in re.findall("[0-9]+", conversion))
        if repeated > most_bytes:
            raise OverflowError("a long text")
        text = original(*arguments)
        if text is None and arguments and arguments[0] is not None:
            raise OverflowError("a long text")  # SQLite before 3.41 returns NULL
        return text

    def searched(*arguments: Any) -> Any:
        lengths = [len(a) if isinstance(a, str | bytes) else 25 for a in arguments]
        if None not in arguments and lengths[0] * lengths[1] > SHORT:
            raise OverflowError("a long search")
        return original(*arguments)

    return formatted if name in ("printf", "format") else searched


def steady_date(name: str, refuse: Callable[[str], object]) -> Callable[..., Any]:
    """Return the SQLite date function `name` as a Python function that cannot read the clock.

    Args:
        name: A key of `DATE_FUNCTIONS`.
        refuse: Function that is called, before a call that reads the clock fails, with a
            description of this call.
    """
    place = DATE_FUNCTIONS[name]
    original = _original(name, 1_000_000)
    cached = functools.lru_cache(maxsize=16_384)(original)  # columns of dates repeat values

    def steady(*arguments: Any) -> Any:
        words = [_c_text(argument).strip().lower() for argument in arguments]
        times = words[place : place + (2 if name == "timediff" else 1)]
        reason = ""
        if len(words) <= place or "subsec" in times or "subsecond" in times:
            reason = "without a time means now"
        elif "now" in words:
            reason = "of 'now'"
        elif zones := sorted({"localtime", "utc"} & set(words)):
            reason = f"with {zones[0]!r} depends on this machine's time zone"
        if reason:
            refuse(f"{name}() {reason}")
            raise sqlite3.OperationalError(reason)
        return (cached if max(map(len, words)) <= REMEMBERED else original)(*arguments)

    return steady


def _original(name: str, most_bytes: int) -> Callable[..., Any]:
    """Return the original function, which runs on a private connection."""
    connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    connection.text_factory = lenient_text  # `%.1s` may split a character
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most_bytes)

    def call(*arguments: Any) -> Any:
        marks = ", ".join("?" * len(arguments))
        try:
            return connection.execute(f"SELECT {name}({marks})", arguments).fetchone()[0]
        except sqlite3.DataError as error:
            raise OverflowError(str(error)) from error

    return call


def _c_text(value: Any) -> str:
    """Return an argument as SQLite's C code reads text: up to the first NUL."""
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    return value.split("\0", 1)[0] if isinstance(value, str) else ""
