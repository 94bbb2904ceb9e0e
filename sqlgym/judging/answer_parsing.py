"""Parsing of an agent's answer: the grids of cells that it can be read as.

An answer is a number, a text, a list, a list of rows, or a text that spells one of these: as JSON,
or separated by commas, bars, semicolons, tabs or lines; after a prefix such as `Answer:`, in a
code fence, in quotes, as a list with bullets, or just as a query result was shown, with its column
names or without. A text can often be read in several ways. All of them are produced, and an answer
is right if one of them *is* the gold, whole: each reading uses everything that was written, so no
reading can be right because of what it leaves out.
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
"""Characters of a text that is read at all; a readable gold is far shorter."""

Grid = Sequence[Sequence[Any]]

_FENCE = "```"
_LANGUAGE = re.compile(
    r"(?:bash|csv|html|json|markdown|md|plain|plaintext|python|py|sh|sql|sqlite|text|tsv|txt|xml|"
    r"yaml)?+[ \t\r]*+\n",
    re.IGNORECASE,
)
"""The rest of the line of an opening fence, which may name a language."""
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
    """All grids of cells (rows of values) that an answer can be read as.

    Args:
        value: Anything; what is no answer at all has no reading.
        columns: The gold's column names; a first line, or the keys of an object, may repeat them.
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
        if _repeats(value["columns"], columns):  # as a result is shown in JSON
            yield from _of_data(value["rows"], columns)
    elif len(value) == 1:  # {"answer": ...}
        ((key, only),) = value.items()
        if isinstance(only, list | tuple) and (_repeats([key], columns) or _is_label(key)):
            yield from _of_data(only, columns)


def _row_of(value: dict[Any, Any], columns: Sequence[str]) -> list[Any] | None:
    """Return a row written as an object: by its keys if they are the column names, else in its
    order.

    If the values are taken in their order, a key that names a gold column must be in its place.
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
    """Return whether a key can be a name of a value: text that is no number and does not deny the
    value.

    A model does not see how the gold query names its columns, so names of its own are as good.
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
    """Return the text itself, and what is left without prefix, fence and quotes, each once."""
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
    """Return the content of a fence that is the whole text; blanks beside the fences belong to
    them.

    Each end is cut by itself. One pattern for all of it tries every division of a run of blanks
    between opening, content and closing.
    """
    if len(text) < 2 * len(_FENCE) or not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    opening = _LANGUAGE.match(text, len(_FENCE), len(text) - len(_FENCE))
    start = opening.end() if opening else len(_FENCE)
    return text[start : -len(_FENCE)].rstrip(" \t").removesuffix("\n")


def _without_brackets(text: str) -> str:
    """Return a list that is no JSON, such as ['a', 'b'] or (1, 2); its items are split by commas
    later.
    """
    pairs = {"[": "]", "(": ")"}
    return text[1:-1] if len(text) > 1 and pairs.get(text[0]) == text[-1] else text


def _of_json(text: str, columns: Sequence[str]) -> Iterator[Grid]:
    if text[:1] not in {"[", "{"}:
        return
    try:
        value = json.loads(text, object_pairs_hook=members_of)
    except (ValueError, RecursionError):  # ValueError: not JSON, or an integer of too many digits
        return
    yield from _of_data(value, columns)


def _lines(text: str) -> Iterator[list[str]]:
    """The lines of a text, as they are, without bullets, and without a running number."""
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
    """The grid without its first row, if that repeats the names of the columns."""
    if len(grid) > 1 and _repeats(grid[0], columns):
        yield grid[1:]


def _repeats(cells: Any, columns: Sequence[str]) -> bool:
    """Return whether these are the names of the columns, and nothing else."""
    if not isinstance(cells, list | tuple) or not all(isinstance(cell, str) for cell in cells):
        return False
    return list(map(normal_text, cells)) == list(map(normal_text, columns))


def _line_up(cells: Sequence[Any]) -> Iterator[Grid]:
    """Cells below each other, and side by side."""
    yield [[cell] for cell in cells]
    yield [cells]


def _splitter(separator: str) -> Callable[[str], list[str]]:
    """Split a line at a separator; one inside an item that begins with a quote does not count."""

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
    """Where to look for the separator: behind the quoted item that begins here, if one does."""
    start = _behind_blanks(line, position)
    if line[start : start + 1] not in {'"', "'"}:
        return position
    # The next quote of this kind: items that begin with it are no further apart than that, so all
    # searches together pass the line once, and a search that finds none is the last of its kind.
    end = line.find(line[start], start + 1)
    if end < 0:
        return position
    behind = _behind_blanks(line, end + 1)  # a place, not a slice: there are as many as items
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
