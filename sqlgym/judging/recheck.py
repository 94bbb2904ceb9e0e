"""Check recorded answers by independent rules, for `toolgym audit`.

The gold query is run again. Recorded answers are split into cells in several ways and compared by
independent rules. The documented rules for answers are the same as in the environment (see
docs/sql-answers.md). The two implementations share only the database, Unicode normalization and the
parsing of units. This check can reject a correct answer in an unusual format; `toolgym audit`
prints such differences.

If the gold query orders its rows, an answer with the same rows in another order is undecided,
because tied rows can be in any order.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from sqlgym.database.database import open_database
from sqlgym.database.limits import Limits
from sqlgym.judging.nfc import nfc
from sqlgym.judging.units import ANY, Units, units_of
from toolgym.calls.mend import members_of
from toolgym.errors import ToolError
from toolgym.sanitize import change_texts, unescape_control_tokens

_SEPARATORS: Final = (" | ", "|", ";", ", ", ",", "\t")
_PREFIX: Final = re.compile(r"\A(?:the )?(?:final )?answer(?: is)?[:= ] *", re.I)
_DENYING: Final = {"not", "no", "never", "wrong", "false", "incorrect", "except"}
_FILLING: Final = {"is", "isn", "t", "it", "the", "this", "answer", "value", "result"}
_DENIED: Final = "\0denied"
_BULLET: Final = re.compile(r"^\s*(?:[-*\u2022]|\d+[.)])\s+")
_NUMBER: Final = re.compile(
    r"([-+]?)([$€£]?)([-+]?)((?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.(\d*))?(?:e[-+]?\d+)?)\s*+(.{0,60})",
    re.I,
)
_LARGEST: Final = 400
"""Maximum power of ten that is compared. The largest numbers in SQLite have the exponent 308."""
_DAYS: Final = ("%Y-%m-%d", "%Y/%m/%d", "%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d, %Y")
_ORDERS: Final = re.compile(r"\border\s+by\b", re.I)
_PAIRED: Final = 500
"""Maximum number of rows that are matched one by one; longer results are sorted."""
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Gold:
    """The result of the gold query: column names, rows, and whether the query may order them."""

    columns: list[str]
    rows: list[Row]
    is_ordered: bool


def recheck(
    env: Any,
    task: Any,
    turns: Sequence[Mapping[str, Any]],
    instances: Sequence[Path] = (),
) -> bool | None:
    """Return whether the recorded turns of an SQL episode contain the correct answer.

    Args:
        env: An environment of this family, whose tools and `match` are used.
        instances: Other instances of the database, on which a query is also run.

    Returns:
        The result is None if the gold query cannot be run, the order of rows is undecided, a query
        that is correct on the database differs on an instance, or `match="spider"` is set.
    """
    ends = {name for name, spec in env.tools.items() if spec.terminal}
    calls = [(turn, call) for turn in turns for call in turn["calls"] if call["name"] in ends]
    clean = [call for turn, call in calls if not turn["errors"]]
    ran = [call for turn, call in calls if len(turn["errors"]) < len(turn["calls"])]
    chosen = clean[:1] or ran[-1:]
    if not chosen:
        return False
    is_refused = chosen[0]["name"] == "cannot_answer"
    if is_refused or not task.answerable:
        return is_refused and not task.answerable
    if getattr(env, "match", "") == "spider":
        return None
    arguments = change_texts(chosen[0]["arguments"], unescape_control_tokens)
    name, answer = next(iter(arguments.items()), ("", None))
    gold_sql, limits = task.gold_sql, getattr(env, "limits", Limits())
    try:
        result = open_database(task.database, limits).query(gold_sql)
    except ToolError:
        return None
    gold = Gold(list(result.columns), list(result.rows), _ORDERS.search(gold_sql) is not None)
    if name != "sql":
        return same_answer(gold, answer, task.question)
    sql = str(answer)
    try:
        rows = open_database(task.database, limits).query(sql).rows
    except ToolError:
        return False
    verdict = _verdict(gold, list(rows), _same_values)
    for instance in (open_database(path, limits) for path in (instances if verdict else ())):
        with contextlib.suppress(ToolError):
            rows, gold_rows = (instance.query(each).rows for each in (sql, gold_sql))
            if not _same_rows(list(gold_rows), list(rows), _same_values):
                return None
    return verdict


def same_answer(gold: Gold, answer: Any, question: str = "") -> bool | None:
    """Return whether a value equals the gold result; None if this depends on the order of rows."""
    rows, columns = len(gold.rows), len(gold.columns)
    columns_of = zip(*gold.rows, strict=True)
    numeric = tuple(any(isinstance(value, int | float) for value in each) for each in columns_of)
    units = units_of(question, tuple(gold.columns), numeric)
    names = [name.casefold() for name in gold.columns]

    def same(row: Row, other: Row) -> bool:
        return all(map(same_cell, row, other, units))

    verdicts = [
        _verdict(gold, list(zip(*[iter(cells)] * columns, strict=True)), same)
        for cells in cells_of(answer, names, rows > 1 and columns > 1)
        if len(cells) == rows * columns
    ]
    return True if True in verdicts else None if None in verdicts else False


def cells_of(answer: Any, columns: Sequence[str], needs_rows: bool) -> Iterator[list[Any]]:
    """Yield the answer as a flat list of cells, for each way to split the answer.

    Args:
        columns: Lower-case column names of the gold result. The first line of the answer or the
            keys of an object can repeat these names. An object with a key that negates the value
            (such as "not") has no cells.
        needs_rows: Whether the gold result has several rows with several cells each, so that a flat
            list is not an answer.
    """
    if isinstance(answer, Mapping):
        answer = answer["rows"] if answer.keys() == {"columns", "rows"} else [answer]
    if isinstance(answer, list | tuple):
        rows = [_row_of(row, columns) if isinstance(row, Mapping) else row for row in answer]
        is_nested = all(isinstance(row, list | tuple) for row in rows)
        if _DENIED not in rows and (is_nested or not needs_rows):
            lists = [row if isinstance(row, list | tuple) else [row] for row in rows]
            yield [cell for row in lists for cell in row]
        return
    yield [answer]
    if not isinstance(answer, str):
        return
    text = _PREFIX.sub("", answer.strip())
    if text[:1] in ("[", "{"):
        try:
            data = json.loads(text, object_pairs_hook=members_of)
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, list | dict):
            yield from cells_of(data, columns, needs_rows)
    lines = [_BULLET.sub("", line).strip() for line in text.splitlines() if line.strip()]
    # one table at a time, because a long text makes large ones
    for separator in (None, *_SEPARATORS):
        cut = [[line] if separator is None else line.split(separator) for line in lines]
        table = [[cell.strip() for cell in row] for row in cut]
        if len(table) > 1 and [cell.casefold() for cell in table[0]] == list(columns):
            del table[0]
        if len(table) > 1 or not needs_rows:
            yield [cell for row in table for cell in row]
    if not needs_rows:
        yield [cell.strip() for cell in text.strip("[]()").split(",")]


def _row_of(row: Mapping[Any, Any], columns: Sequence[str]) -> list[Any] | str:
    """Return the values of an object, or `_DENIED` if its keys cannot be names of the columns."""
    by_name = {str(key).strip().casefold(): value for key, value in row.items()}
    if by_name.keys() == set(columns):
        return [by_name[name] for name in columns]
    if any(key in columns and key != name for key, name in zip(by_name, columns, strict=False)):
        return _DENIED
    for words in (re.findall(r"[^\W_]+", key) for key in by_name if key not in columns):
        is_denial = not _DENYING.isdisjoint(words) and (_DENYING | _FILLING).issuperset(words)
        if not words or not words[0][0].isalpha() or is_denial:
            return _DENIED
    return [*row.values()]


def _verdict(gold: Gold, rows: list[Row], same: Callable[[Row, Row], bool]) -> bool | None:
    """Return whether rows equal the gold rows; None if only the order of an ordered result
    differs.
    """
    if not gold.rows or not _same_rows(gold.rows, rows, same):
        return False
    return not gold.is_ordered or all(map(same, gold.rows, rows)) or None


def _same_values(gold: Row, other: Row) -> bool:
    """Return whether two rows of results are equal."""
    for one, two in zip(gold, other, strict=False):
        if isinstance(one, int | float) and isinstance(two, int | float):
            if one != two and not _is_close(float(one), float(two)):
                return False
        elif type(one) is not type(two) or (
            one != two and (not isinstance(one, str) or nfc(one) != nfc(two))
        ):
            return False
    return len(gold) == len(other)


def same_cell(gold: Any, answer: Any, units: Units = ANY) -> bool:
    """Return whether a cell of an answer is correct for a cell of the gold result."""
    plain = _plain(answer)
    if gold is None:
        return answer is None or plain in {"", "null", "none"}
    if isinstance(gold, bytes):
        return plain == f"x'{gold.hex()}'"
    if isinstance(gold, str):
        if _plain(gold) == plain:
            return True
        if isinstance(answer, int | float) and not isinstance(answer, bool):
            is_number = re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", gold)
            return is_number is not None and float(gold) == answer
        day = _day(gold)
        return day is not None and day == _day(answer)
    match = _NUMBER.fullmatch({"true": "1", "false": "0"}.get(plain, plain))
    if match is None or not any(map(str.isdigit, match[4])):
        return False
    try:
        number = Decimal(match[4].replace(",", ""))
    except InvalidOperation:  # the exponent has too many digits
        return False
    if abs(number.adjusted()) > _LARGEST:
        return False
    number = -number if "-" in match[1] + match[3] else number
    decimals, unit = len(match[5] or ""), f"{match[2]} {match[6]}".strip()
    if units.allow(unit) and _same_number(gold, number, decimals):
        return True
    is_share = isinstance(gold, float) and -1 <= gold <= 1 and units.allow_share(unit)
    return is_share and _same_number(gold, number / 100, decimals + 2)


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(nfc(text).casefold().split())
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`" else text


def _same_number(gold: int | float, number: Decimal, decimals: int) -> bool:
    if gold == number or isinstance(gold, int):
        return gold == number
    if _is_close(gold, float(number)):
        return True
    is_rounded = abs(gold - float(number)) <= 0.5 * 10.0 ** -max(2, decimals) * (1 + 1e-9)
    return is_rounded and number != 0


def _is_close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-12)


def _day(text: Any) -> datetime | None:
    """Return the day in a string, at midnight."""
    words = text.strip().removesuffix("00:00:00").strip() if isinstance(text, str) else ""
    for form in _DAYS:
        try:
            return datetime.strptime(words, form)
        except ValueError:
            continue
    return None


def _same_rows(gold: list[Row], rows: list[Row], same: Callable[[Row, Row], bool]) -> bool:
    """Return whether two lists contain the same rows equally often, in any order."""
    if len(gold) > _PAIRED:  # only results are this long; answers are as short as observations
        gold, rows = sorted(gold, key=_key), sorted(rows, key=_key)
    if len(gold) != len(rows) or all(map(same, gold, rows)):
        return len(gold) == len(rows)
    left = list(rows if len(gold) <= _PAIRED else ())
    for row in gold:
        at = next((i for i, each in enumerate(left) if same(row, each)), None)
        if at is None:
            return False
        del left[at]
    return True


def _key(row: Row) -> list[str]:
    return [f"{v:.6g}" if isinstance(v, int | float) else repr(v) for v in row]
