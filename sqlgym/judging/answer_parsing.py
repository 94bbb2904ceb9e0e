"""Parse an answer of the agent into all grids of cells that the answer can represent.

An answer is a number, a string, a list, a list of rows, or a string that contains one of these. The
string can contain JSON, or use commas, vertical bars, semicolons, tabs or line breaks as
separators. The string can also have a prefix such as `Answer:`, a code fence, quotes or bullets. An
answer can also repeat a query result as it was shown, with or without column names. Many strings
can be parsed in several ways, and all of these interpretations are produced. An answer is correct
if one of its interpretations equals the gold result. Each interpretation uses the entire string, so
an answer never becomes correct by omitting part of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlgym.database.render import parse_row
from sqlgym.judging.cells import normal_text
from toolgym.calls.mend import members_of

LONGEST = 50_000
"""Maximum length of an answer in characters. A gold result that fits into an observation is far
shorter.
"""

Grid = Sequence[Sequence[Any]]

_FENCE = "```"
_LANGUAGE = re.compile(
    r"(?:bash|csv|html|json|markdown|md|plain|plaintext|python|py|sh|sql|sqlite|text|tsv|txt|xml|"
    r"yaml)?+[ \t\r]*+\n",
    re.IGNORECASE,
)
"""The rest of the line after an opening fence, which may name a language."""
_BLANKS = re.compile(r" *+")
_PREFIX = re.compile(
    r"(?:the )?(?:final )?(?:answer|result)(?: is)? ?[:=] *|(?:the )?(?:final )?answer is +",
    re.IGNORECASE,
)
_WORD = re.compile(r"\d+|[^\W\d_]+")
_DENIALS = frozenset({"except", "false", "incorrect", "never", "no", "not", "wrong"})
_ABOUT_ANSWERS = frozenset({"answer", "is", "isn", "it", "result", "t", "the", "this", "value"})
_BULLET = re.compile(r"[-*\u2022] +")
_NUMBERED = re.compile(r"([0-9]{1,4})[.)] +")


def readings(value: Any, columns: Sequence[str]) -> Iterator[Grid]:
    """Yield all grids of cells (rows of values) that an answer can represent.

    Args:
        value: Any value; a value that is not an answer has no interpretation.
        columns: Column names of the gold result; the first line of the answer or the keys of an
            object can repeat these names.
    """
    if isinstance(value, str):
        if len(value) <= LONGEST:
            yield from _of_text(value, columns)
    else:
        yield from _of_data(value, columns)


def _of_data(value: Any, columns: Sequence[str]) -> Iterator[Grid]:
    if _is_cell(value):
        yield [[value]]
    elif isinstance(value, dict):
        yield from _of_object(value, columns)
    elif isinstance(value, list | tuple) and value:
        if all(map(_is_cell, value)):
            yield from _line_up(value)
            if all(isinstance(item, str) and " | " in item for item in value):
                yield [parse_row(item) for item in value]
        elif all(isinstance(row, list | tuple) and all(map(_is_cell, row)) for row in value):
            yield value
            yield from _without_header(value, columns)
        elif all(isinstance(row, dict) for row in value):
            rows = [_row_of(row, columns) for row in value]
            if all(row is not None for row in rows):
                yield [row for row in rows if row is not None]


def _of_object(value: dict[Any, Any], columns: Sequence[str]) -> Iterator[Grid]:
    row = _row_of(value, columns)
    if row is not None:
        yield [row]
    if value.keys() == {"columns", "rows"} and isinstance(value["rows"], list | tuple):
        if _repeats(value["columns"], columns):  # a result in JSON form
            yield from _of_data(value["rows"], columns)
    elif len(value) == 1:  # {"answer": ...}
        ((key, only),) = value.items()
        if isinstance(only, list | tuple) and (_repeats([key], columns) or _is_label(key)):
            yield from _of_data(only, columns)


def _row_of(value: dict[Any, Any], columns: Sequence[str]) -> list[Any] | None:
    """Return the values of an object as a row, in the order of the columns if its keys are their
    names.

    Otherwise, the order of the object is kept, and a key that names a gold column must be in the
    position of that column.
    """
    if not all(map(_is_cell, value.values())):
        return None
    by_name = {k.strip().lower(): cell for k, cell in value.items() if isinstance(k, str)}
    names = [name.strip().lower() for name in columns]
    if len(by_name) != len(value):
        return None
    if by_name.keys() == set(names):
        return [by_name[name] for name in names]
    if any(key in names and key != name for key, name in zip(by_name, names, strict=False)):
        return None
    is_row = all(key in names or _is_label(key) for key in by_name)
    return list(value.values()) if is_row else None


def _is_label(key: Any) -> bool:
    """Return whether a key can name a value: it is text, not a number, and does not negate the
    value.

    Any name is accepted, since a model does not see the names in the gold query.
    """
    words = _WORD.findall(key.lower()) if isinstance(key, str) else []
    if not words or words[0].isdecimal():
        return False
    telling = set(words) - _ABOUT_ANSWERS
    return not telling or not telling <= _DENIALS


def _of_text(text: str, columns: Sequence[str]) -> Iterator[Grid]:
    for variant in _variants(text):
        yield [[variant]]
        yield from _of_json(variant, columns)
        for lines in _lines(variant):
            yield from _of_lines(lines, columns)


def _variants(text: str) -> list[str]:
    """Return the text itself, and the text without prefix, fence and quotes, without duplicates."""
    variants = [text.strip()]
    for strip in (_without_prefix, _without_fence, _without_prefix, _without_brackets):
        stripped = strip(variants[-1]).strip()
        if stripped != variants[-1]:
            variants.append(stripped)
    return variants


def _without_prefix(text: str) -> str:
    match = _PREFIX.match(text)
    return text[match.end() :] if match else text


def _without_fence(text: str) -> str:
    """Return the content of a fence that encloses the entire text, without surrounding spaces.

    The two ends are removed separately, because a single pattern would try every way to divide a
    run of spaces between the opening, the content and the closing.
    """
    if len(text) < 2 * len(_FENCE) or not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    opening = _LANGUAGE.match(text, len(_FENCE), len(text) - len(_FENCE))
    start = opening.end() if opening else len(_FENCE)
    return text[start : -len(_FENCE)].rstrip(" \t").removesuffix("\n")


def _without_brackets(text: str) -> str:
    """Return the content of a list that is not JSON, such as ['a', 'b'] or (1, 2).

    Its items are split at commas later.
    """
    pairs = {"[": "]", "(": ")"}
    return text[1:-1] if len(text) > 1 and pairs.get(text[0]) == text[-1] else text


def _of_json(text: str, columns: Sequence[str]) -> Iterator[Grid]:
    if text[:1] not in {"[", "{"}:
        return
    try:
        value = json.loads(text, object_pairs_hook=members_of)
    except (ValueError, RecursionError):  # ValueError: not JSON, or an integer with too many digits
        return
    yield from _of_data(value, columns)


def _lines(text: str) -> Iterator[list[str]]:
    """Yield three versions of the lines of a string: unchanged, without bullets, and without
    numbering.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    yield lines
    if len(lines) < 2:
        return
    if all(_BULLET.match(line) for line in lines):
        yield [_BULLET.sub("", line, count=1) for line in lines]
    numbers = [_NUMBERED.match(line) for line in lines]
    if all(match and int(match[1]) == place for place, match in enumerate(numbers, 1)):
        yield [_NUMBERED.sub("", line, count=1) for line in lines]


def _of_lines(lines: list[str], columns: Sequence[str]) -> Iterator[Grid]:
    for split in _SPLITS:
        grid = [split(line) for line in lines]
        yield grid
        yield from _without_header(grid, columns)
        if len(grid) == 1:
            yield from _line_up(grid[0])
    yield from _line_up(lines)


def _without_header(grid: Grid, columns: Sequence[str]) -> Iterator[Grid]:
    """Yield the grid without its first row, if that row repeats the column names."""
    if len(grid) > 1 and _repeats(grid[0], columns):
        yield grid[1:]


def _repeats(cells: Any, columns: Sequence[str]) -> bool:
    """Return whether these values are exactly the column names."""
    if not isinstance(cells, list | tuple) or not all(isinstance(cell, str) for cell in cells):
        return False
    return list(map(normal_text, cells)) == list(map(normal_text, columns))


def _line_up(cells: Sequence[Any]) -> Iterator[Grid]:
    """Yield the values as one column and as one row."""
    yield [[cell] for cell in cells]
    yield [cells]


def _splitter(separator: str) -> Callable[[str], list[str]]:
    """Return a function that splits a line at a separator, except inside quoted items."""

    def split(line: str) -> list[str]:
        if '"' not in line and "'" not in line:
            return [item.strip() for item in line.split(separator)]
        items: list[str] = []
        position = 0
        while position <= len(line):
            end = line.find(separator, _after_quotes(line, position, separator))
            end = len(line) if end < 0 else end
            items.append(line[position:end].strip())
            position = end + len(separator)
        return items

    return split


def _after_quotes(line: str, position: int, separator: str) -> int:
    """Return the position from which to search for the separator, after a quoted item if there is
    one.
    """
    start = _behind_blanks(line, position)
    if line[start : start + 1] not in {'"', "'"}:
        return position
    # The next quote of this kind. Items that begin with it are at least this far apart, so all
    # searches together pass the line once, and a search without a match is the last one.
    end = line.find(line[start], start + 1)
    if end < 0:
        return position
    # a position instead of a slice, because there is one per item
    behind = _behind_blanks(line, end + 1)
    is_end = behind == len(line) or line.startswith(separator.strip() or separator, behind)
    return end + 1 if is_end else position


def _behind_blanks(line: str, position: int) -> int:
    match = _BLANKS.match(line, position)
    return match.end() if match else position


_SPLITS: tuple[Callable[[str], Sequence[Any]], ...] = (
    parse_row,
    lambda line: [line],
    *map(_splitter, (", ", ",", "|", ";", "\t")),
)


def _is_cell(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)
