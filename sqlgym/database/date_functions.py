"""SQLite's date functions without the clock.

`date('now')`, `datetime()` and `strftime('%Y')` read the clock, and `'localtime'` reads this
machine's time zone: what a query gives would depend on when and where it runs. SQLite's authorizer
sees the name of a function and not its arguments, so the functions themselves are replaced: the
arguments are looked at when they have values (a column may hold `'now'` too), and what is steady
is handed to the built-in function of the same name on a private connection. So all other results
are SQLite's own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

DATE_FUNCTIONS = {
    name: place
    for place, names in ((0, "date time datetime julianday unixepoch timediff"), (1, "strftime"))
    for name in names.split()
}
"""Date functions, with the position of their (first) time value."""
LONGEST = 1_000_000
"""Length of a date's text, in bytes; the guard's own limit is lower."""
REMEMBERED = 100
"""Length of an argument up to which a value is remembered."""


def steady_date(name: str, refuse: Callable[[str], object]) -> Callable[..., Any]:
    """The built-in date function `name`, for use as an SQL function that cannot see the clock.

    Args:
        name: A key of `DATE_FUNCTIONS`.
        refuse: Told what was asked, in words, before a call that depends on the moment fails.
    """
    place = DATE_FUNCTIONS[name]
    evaluate = _date_evaluator(name)

    def steady(*arguments: Any) -> Any:
        reason = _unsteady_argument(arguments, place, 2 if name == "timediff" else 1)
        if reason:
            refuse(f"{name}() {reason}")
            raise sqlite3.OperationalError(reason)
        return evaluate(arguments)

    return steady


def _unsteady_argument(arguments: Iterable[Any], place: int, times: int) -> str:
    """Why these arguments of a date function make its value depend on the moment; "" if not."""
    words = [_word(argument) for argument in arguments]
    if len(words) <= place:
        return "without a time means now"
    if "now" in words:
        return "of 'now'"
    if any(word in {"subsec", "subsecond"} for word in words[place : place + times]):
        return "without a time means now"
    zones = sorted({"localtime", "utc"} & set(words))
    return f"with {zones[0]!r} depends on this machine's time zone" if zones else ""


def _word(argument: Any) -> str:
    """An argument as the C code of SQLite compares it: text up to the first NUL, in lower case."""
    if isinstance(argument, bytes):
        argument = argument.decode("utf-8", "replace")
    return argument.split("\0", 1)[0].strip().lower() if isinstance(argument, str) else ""


def _date_evaluator(name: str) -> Callable[[tuple[Any, ...]], Any]:
    """The built-in function `name` on a private connection, opened when it is first needed."""
    private: list[sqlite3.Connection] = []

    def evaluate(arguments: tuple[Any, ...]) -> Any:
        if not private:
            private.append(
                sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            )
            private[0].setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        marks = ", ".join("?" * len(arguments))
        try:
            return private[0].execute(f"SELECT {name}({marks})", arguments).fetchone()[0]
        except sqlite3.DataError as error:  # which SQLite would tell as an error of any kind
            raise OverflowError(str(error)) from error

    remembered = lru_cache(maxsize=16_384)(evaluate)  # columns of dates repeat

    def value(arguments: tuple[Any, ...]) -> Any:
        long = any(isinstance(a, str | bytes) and len(a) > REMEMBERED for a in arguments)
        return evaluate(arguments) if long else remembered(arguments)

    return value
