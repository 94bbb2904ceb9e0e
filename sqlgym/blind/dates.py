"""Conditions on dates as intervals: "on or before 12 February" is `< '2018-02-13'`.

An interval holds the days from `low` up to, and without, `high`, both ISO dates; an empty string is
no bound. The day after `<= '2018-02-12'` is in it where a column holds times of the day, since
'2018-02-12 10:00' is greater; so there the two are not the same, and a mark tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from sqlgym.blind.statements import SqlCondition

_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})\Z", re.ASCII)
_MONTH = re.compile(r"(\d{4})-(\d{2})\Z", re.ASCII)
_YEAR = re.compile(r"\d{4}\Z", re.ASCII)
_MIDNIGHT = "T"
"""Follows a bound that is a moment where the whole day was meant."""


@dataclass(frozen=True)
class Interval:
    """Days from `low` on, before `high`; or all days of one month of any year."""

    low: str = ""
    high: str = ""
    month: str = ""
    negated: bool = False


def _bounds(text: str) -> tuple[str, str] | None:
    """The first day of a day, month or year, and the day after its last."""
    try:
        if match := _DAY.match(text):
            day = date(int(match[1]), int(match[2]), int(match[3]))
            return day.isoformat(), (day + timedelta(days=1)).isoformat()
        if match := _MONTH.match(text):
            year, month = int(match[1]), int(match[2])
            after = date(year + month // 12, month % 12 + 1, 1)
            return date(year, month, 1).isoformat(), after.isoformat()
        if _YEAR.match(text):
            return date(int(text), 1, 1).isoformat(), date(int(text) + 1, 1, 1).isoformat()
    except (ValueError, OverflowError):
        return None
    return None


def _interval(sign: str, texts: Sequence[str]) -> Interval | None:
    """The days that a comparison with whole days, months or years leaves."""
    bounds = [_bounds(text) for text in texts]
    if not bounds or any(b is None for b in bounds):
        return None
    first, last = bounds[0], bounds[-1]
    if first is None or last is None:
        return None
    return {
        "=": Interval(first[0], first[1]),
        "<>": Interval(first[0], first[1], negated=True),
        "<": Interval("", first[0]),
        "<=": Interval("", first[1]),
        ">": Interval(first[1], ""),
        ">=": Interval(first[0], ""),
        "between": Interval(first[0], last[1]),
    }.get(sign)


def interval_of(condition: SqlCondition, part: str, times: bool) -> Interval | None:
    """The interval of a condition of the SQL; None if it is not one on dates.

    Args:
        condition: With its values as they stand in the SQL.
        part: "%Y", "%m" or "%Y-%m" if only that of a date is compared.
        times: Whether the column holds times of the day too.
    """
    texts = condition.values
    if not texts:
        return None
    if part == "%m":
        return Interval(month=texts[0]) if condition.sign == "=" else None
    if part:
        return _interval(condition.sign, texts)
    if not all(_DAY.match(text) for text in texts):
        return None
    if times and condition.sign in ("<=", ">", "=", "<>", "between"):
        return Interval(*(texts[0] + _MIDNIGHT, condition.sign))
    return _interval(condition.sign, texts)


def interval_said(sign: str, values: Sequence[tuple[str, str]]) -> Interval | None:
    """The interval that the text tells; None if its values are no dates."""
    if not values:
        return None
    kinds = {kind for kind, _ in values}
    if kinds == {"month-name"}:
        return Interval(month=values[0][1]) if sign in ("=", "month-of-year") else None
    if not kinds <= {"day", "month", "number"}:
        return None
    return _interval(sign, [text for _, text in values])
