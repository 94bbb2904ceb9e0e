"""Taking a recorded answer apart and comparing its cells: the second rule's own way of reading.

Nothing is shared with `sqlgym.judging.answer_parsing` and `sqlgym.judging.cells`, which read and
compare while an episode is played. What is accepted is the same by intention (docs/sql-answers.md
has it as a table, and the tests hold both against it); how it is found is not: an answer is
flattened into cells in a few ways, and whoever asks looks whether there are as many as the gold
has.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from sqlgym.judging.nfc import nfc

_SEPARATORS: Final = (" | ", "|", ";", ", ", ",", "\t")
_PREFIX: Final = re.compile(r"\A(?:the )?(?:final )?answer(?: is)?[:= ] *", re.I)
_BRACKET: Final = re.compile(r"[\[\](){}]")
_BULLET: Final = re.compile(r"^\s*(?:[-*\u2022]|\d+[.)])\s+")
_NUMBER: Final = re.compile(
    r"([-+]?)[$€£]?([-+]?)((?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.(\d*))?(?:e[-+]?\d+)?)\s*+(%?)\s*+"
    r"(?:[a-z/]++(?: [a-z/]++)? ?)?",  # possessive: a long word is never divided into two
    re.I,
)
_DEEPEST: Final = 20  # brackets in brackets; an answer is a list of rows at most
_LARGEST: Final = 400  # powers of ten; SQLite's numbers end at 308
_DAYS: Final = ("%Y-%m-%d", "%Y/%m/%d", "%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d, %Y")


def cells_of(given: Any, columns: Sequence[str], needs_rows: bool) -> Iterator[list[Any]]:
    """The answer as a flat list of cells, in each way that it can be taken apart.

    Args:
        given: The answer.
        columns: Names of the gold's columns, in lower case; a first line, or the keys of an object,
            may repeat them.
        needs_rows: The gold has several rows of several cells, so a flat list says too little.
    """
    if isinstance(given, Mapping):
        given = given["rows"] if given.keys() == {"columns", "rows"} else [given]
    if isinstance(given, list | tuple):
        rows = [_by_name(row, columns) if isinstance(row, Mapping) else row for row in given]
        lists = [row if isinstance(row, list | tuple) else [row] for row in rows]
        if not needs_rows or all(isinstance(row, list | tuple) for row in rows):
            yield [cell for row in lists for cell in row]
        return
    yield [given]
    if isinstance(given, str):
        text = _PREFIX.sub("", given.strip())
        data = _data(text)
        if data is not None:
            yield from cells_of(data, columns, needs_rows)
        yield from _split(text, columns, needs_rows)


def _split(text: str, columns: Sequence[str], needs_rows: bool) -> Iterator[list[Any]]:
    """The cells of a text, by lines and at each separator, without a line of column names."""
    lines = [_BULLET.sub("", line).strip() for line in text.splitlines() if line.strip()]
    for separator in (None, *_SEPARATORS):  # one table at a time: a long text makes large ones
        cut = [[line] if separator is None else line.split(separator) for line in lines]
        rows = [[cell.strip() for cell in row] for row in cut]
        if len(rows) > 1 and [cell.casefold() for cell in rows[0]] == list(columns):
            del rows[0]
        if len(rows) > 1 or not needs_rows:
            yield [cell for row in rows for cell in row]
    if not needs_rows:
        yield [cell.strip() for cell in text.strip("[]()").split(",")]


def _by_name(row: Mapping[Any, Any], columns: Sequence[str]) -> list[Any]:
    named = {str(key).casefold(): value for key, value in row.items()}
    return [named[name] for name in columns] if named.keys() == set(columns) else [*row.values()]


def _data(text: str) -> Any:
    """The list or object that a text spells, in JSON or in Python; None if it spells none."""
    if text[:1] not in ("[", "(", "{") or _depth(text) > _DEEPEST:
        return None  # Python's parser takes long for brackets in brackets
    for read in (json.loads, ast.literal_eval):
        try:
            data = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(data, list | tuple | dict):
            return data
    return None


def _depth(text: str) -> int:
    """How deeply brackets stand in each other at most, those in quotes counted too."""
    depth = deepest = 0
    for bracket in _BRACKET.findall(text):
        depth += 1 if bracket in "[({" else -1
        deepest = max(deepest, depth)
    return deepest


def same_value(gold: Any, other: Any) -> bool:
    """Two cells of results: numbers as numbers, anything else exactly."""
    if isinstance(gold, int | float) and isinstance(other, int | float):
        return gold == other or _close(float(gold), float(other))
    if isinstance(gold, str) and isinstance(other, str):
        return nfc(gold) == nfc(other)
    return bool(type(gold) is type(other) and gold == other)


def same_cell(gold: Any, given: Any) -> bool:
    """A cell of the gold and what was given for it."""
    if gold is None:
        return given is None or _plain(given) in {"", "null", "none"}
    if isinstance(gold, bytes):
        return _plain(given) == f"x'{gold.hex()}'"
    if isinstance(gold, int | float):
        return any(_same_number(gold, *read) for read in _numbers(given))
    if _plain(gold) == _plain(given):
        return True
    if isinstance(given, int | float) and not isinstance(given, bool):
        return re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", gold) is not None and float(gold) == given
    days = [day for text in (gold, given) if (day := _day(text)) is not None]
    return len(days) == 2 and days[0] == days[1]


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(nfc(text).casefold().split())
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`" else text


def _numbers(given: Any) -> Iterator[tuple[Decimal, int]]:
    """The numbers that one cell can be, each with the decimals that it is written with."""
    text = {"true": "1", "false": "0"}.get(_plain(given), _plain(given))
    found = _NUMBER.fullmatch(text)
    if found is None or not any(map(str.isdigit, found[3])):
        return
    try:
        written = Decimal(found[3].replace(",", ""))
    except InvalidOperation:  # its exponent has too many digits
        return
    if abs(written.adjusted()) > _LARGEST:
        return
    number = written * (-1 if "-" in found[1] + found[2] else 1)
    decimals = len(found[4] or "")
    yield number, decimals
    if found[5]:
        yield number / 100, decimals + 2


def _same_number(gold: int | float, given: Decimal, decimals: int) -> bool:
    if gold == given or isinstance(gold, int):
        return gold == given
    if _close(gold, float(given)):
        return True
    rounded = abs(gold - float(given)) <= 0.5 * 10.0 ** -max(2, decimals) * (1 + 1e-9)
    return rounded and given != 0


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-12)


def _day(text: Any) -> datetime | None:
    """The day that a text names, at midnight."""
    words = text.strip().removesuffix("00:00:00").strip() if isinstance(text, str) else ""
    for form in _DAYS:
        try:
            return datetime.strptime(words, form)
        except ValueError:
            continue
    return None
