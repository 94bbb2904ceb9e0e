"""A query result as text that an agent can read and a program can parse.

    Name | Age
    Joe Sharp | 52
    NULL | 43.5
    "a | b" | x'00ff'

The first line contains the column names, and each further line contains one row. Floats have 10
significant digits, NULL is not quoted, and bytes are hexadecimal. Text is quoted only if it could
be misread: if it is empty, looks like NULL, has leading or trailing spaces, starts with a quote, or
contains a vertical bar or a control character. Text that looks like one of the notes below or like
an environment's `(3 calls left)` is quoted too. Inside quotes, `\\n`, `\\t`, `\\r`, `\\"`, `\\\\`
and `\\xNN`/`\\uNNNN` represent single characters. `parse_rendered` is the inverse, except that it
returns all values as text.

A result that is too long is truncated and ends with a note: `... (5 more rows)`, `... (at least 5
more rows)` or `... (cut: too long to be shown)`. If a value in such a result is long, only its
beginning and its length are shown. An empty result ends with the note `(no rows)`. `render_json`
shows the same rows as JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Literal, NamedTuple

MAX_ROWS = 100
MAX_CHARS = 4_000
NO_ROWS = "(no rows)"
SEPARATOR = " | "
LONG_VALUE = 200
"""Number of characters or bytes of a value that are shown if the result has to be shortened."""

Form = Literal["table", "json"]
FORMS: tuple[Form, ...] = ("table", "json")
"""Formats in which a result can be shown."""

_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_NEEDS_QUOTES = re.compile(
    rf'^$|^[\s"]|\s$|[|{_CONTROL}]|^(?:null|\(no rows\)|\.\.\. \(.*|\((?:no|\d+) calls? left.*)$',
    re.IGNORECASE,
)
_ESCAPED = re.compile(rf'["\\{_CONTROL}]')
_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_UNESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|(.))")
_CELL = re.compile(r'"(?:[^"\\]++|\\.)*+"(?= \| |$)|.*?(?= \| |$)')
_LONGEST_NOTE = "... (at least 1,000,000 more rows)"
_NOTE = re.compile(r"\.\.\. \((?:(?:at least )?[\d,]+ more rows?|cut: too long to be shown)\)")


def render(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    max_rows: int = MAX_ROWS,
    max_chars: int = MAX_CHARS,
    truncated: bool = False,
) -> str:
    """Return a result as text.

    Args:
        rows: Tuples of None, int, float, str or bytes.
        max_chars: Maximum length of the text, in characters.
        truncated: Whether more rows exist than are given.

    >>> print(render(["Name", "Age"], [("Joe", 52), (None, 43.50)]))
    Name | Age
    Joe | 52
    NULL | 43.5
    """
    if not rows:
        return f"{_cut(render_row(columns), max_chars - len(NO_ROWS) - 1)}\n{NO_ROWS}"
    if not truncated and len(rows) <= max_rows:
        text = "\n".join([render_row(columns), *map(render_row, rows)])
        if len(text) <= max_chars:
            return text
    lines = _fit(columns, rows[:max_rows], max_chars - len(_LONGEST_NOTE) - 1)
    return "\n".join([*lines, f"... ({_left_out(len(rows) - len(lines) + 1, truncated)})"])


def render_json(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    max_rows: int = MAX_ROWS,
    max_chars: int = MAX_CHARS,
    truncated: bool = False,
) -> str:
    """Return a result as one line of JSON. The arguments have the same meaning as those of
    `render`, and the same rows are omitted.

    A result that `render` shows in full is also shown in full as JSON, even if quotes and brackets
    make the text longer than `max_chars`. Bytes and infinities become text, such as `x'00ff'`.

    >>> print(render_json(["Name", "Age"], [("Joe", 52), (None, 43.50)]))
    {"columns": ["Name", "Age"], "rows": [["Joe", 52], [null, 43.5]]}
    """
    if not truncated and is_readable(columns, rows, max_rows, max_chars):
        return _json_text({"columns": list(columns), "rows": [_plain_row(row) for row in rows]})
    cut = [_plain_row(map(_shorten, row)) for row in (columns, *rows[:max_rows])]
    room = max_chars - len('{"columns": , "rows": [], "left_out": ""}') - len(_LONGEST_NOTE) - 30
    width = min(_fitting_cells(row, room // 2) for row in cut[:2])
    shown: list[list[Any]] = []
    room -= len(_json_text(cut[0][:width]))
    for row in cut[1:]:
        room -= len(_json_text(row[:width])) + 2
        if room < 0 and shown:
            break
        shown.append(row[:width])
    left_out = _left_out(len(rows) - len(shown), truncated)
    if width < len(columns):
        left_out = f"{len(columns) - width:,} more columns, {left_out}"
    return _json_text({"columns": cut[0][:width], "rows": shown, "left_out": left_out})


def show(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    form: Form,
    max_chars: int = MAX_CHARS,
    truncated: bool = False,
) -> str:
    """Return a result in one of the formats; see `render` and `render_json`."""
    render_form = render_json if form == "json" else render
    return render_form(columns, rows, max_chars=max_chars, truncated=truncated)


def is_readable(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    max_rows: int = MAX_ROWS,
    max_chars: int = MAX_CHARS,
) -> bool:
    """Return whether `render` shows the entire result."""
    if len(rows) > max_rows:
        return False
    return len(render_row(columns)) + sum(len(render_row(row)) + 1 for row in rows) <= max_chars


def render_row(row: Sequence[Any]) -> str:
    """Return one line of a rendered result."""
    return SEPARATOR.join([str(v) if type(v) is int else render_cell(v) for v in row])


def render_cell(value: Any) -> str:
    """Return one value of a result as text.

    >>> [render_cell(v) for v in (None, 3, 3.0, 2 / 3, "a", "", b"\\x00")]
    ['NULL', '3', '3.0', '0.6666666667', 'a', '""', "x'00'"]
    """
    if isinstance(value, str):
        if value.isalnum() and value[0] not in "nN":  # most values; the pattern is slow
            return value
        return quote_text(value) if _NEEDS_QUOTES.search(value) else value
    if value is None:
        return "NULL"
    if isinstance(value, float):
        text = f"{value:.10g}"
        return text if re.search(r"[.en]", text) else f"{text}.0"  # includes inf and nan
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return value.text if isinstance(value, _Cut) else str(value)


def quote_text(text: str) -> str:
    """Return text in double quotes, with control characters escaped."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def parse_rendered(text: str) -> list[list[str | None]]:
    """Return the cells of a rendered result, without the column names. NULL becomes None.

    Raises:
        ValueError: The text is not a result, or the result was truncated.
    """
    if "\n" not in text:  # a table has at least two lines, JSON has one
        return _parse_json(text)
    header, *lines = text.split("\n")
    if lines == [NO_ROWS]:
        return []
    if not lines or _NOTE.fullmatch(lines[-1]):
        raise ValueError("the text does not show a whole result")
    width = len(parse_row(header))
    rows = [parse_row(line) for line in lines]
    if any(len(row) != width for row in rows):
        raise ValueError("the rows do not have as many cells as there are columns")
    return rows


def parse_row(line: str) -> list[str | None]:
    """Return the cells of one rendered line. NULL becomes None.

    >>> parse_row('"a | b" | NULL | c')
    ['a | b', None, 'c']
    """
    cells: list[str | None] = []
    position = 0
    while position <= len(line):
        match = _CELL.match(line, position)
        cell = match[0] if match else line[position:]
        cells.append(_read_cell(cell))
        position += len(cell) + len(SEPARATOR)
    return cells


def _read_cell(cell: str) -> str | None:
    if cell == "NULL":
        return None
    if len(cell) > 1 and cell[0] == cell[-1] == '"':
        return _UNESCAPED.sub(_unescape, cell[1:-1])
    return cell


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def _unescape(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code:
        return chr(int(code, 16))
    return {"n": "\n", "t": "\t", "r": "\r"}.get(match[3], match[3])


def _parse_json(text: str) -> list[list[str | None]]:
    """Return the cells of a JSON result as text, like the cells of a table."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or data.keys() != {"columns", "rows"}:
        raise ValueError("the text does not show a whole result")
    return [[v if isinstance(v, str | None) else render_cell(v) for v in r] for r in data["rows"]]


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _plain_row(row: Iterable[Any]) -> list[Any]:
    return [_plain(value) for value in row]


def _fitting_cells(row: Sequence[Any], room: int) -> int:
    """Return how many cells of a row fit as JSON; at least one."""
    ends = accumulate(len(_json_text(value)) + 2 for value in row)
    return max(1, sum(end <= room for end in ends))


def _plain(value: Any) -> Any:
    """Return a value that JSON can represent, with floats of 10 significant digits."""
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else str(value)
    if isinstance(value, bytes | _Cut):
        return render_cell(value)
    return value


class _Cut(NamedTuple):
    """The start of a shortened value, with its full length."""

    text: str


def _shorten(value: Any) -> Any:
    """Return a value, or its start if it is too long."""
    if isinstance(value, str) and len(value) > LONG_VALUE:
        return _Cut(f"{quote_text(value[:LONG_VALUE])}... ({len(value):,} characters)")
    if isinstance(value, bytes) and len(value) > LONG_VALUE // 2:
        return _Cut(f"x'{value[: LONG_VALUE // 2].hex()}'... ({len(value):,} bytes)")
    return value


def _left_out(rows: int, truncated: bool) -> str:
    """Return the note on the rows and columns that a shortened result omits."""
    if truncated:
        return f"at least {rows + 1:,} more rows" if rows else "at least 1 more row"
    return f"{rows:,} more row{'' if rows == 1 else 's'}" if rows else "cut: too long to be shown"


def _fit(columns: Sequence[str], rows: Sequence[Sequence[Any]], room: int) -> list[str]:
    """Return the column names and the rows that fit; if no row fits, the start of the first."""
    lines = [_cut(render_row([_shorten(name) for name in columns]), room // 2)]
    left = room - len(lines[0])
    for row in rows:
        line = render_row([_shorten(value) for value in row])
        left -= len(line) + 1
        if left < 0:
            if len(lines) == 1:
                lines.append(_cut(line, left + len(line)))
            break
        lines.append(line)
    return lines


def _cut(line: str, most: int) -> str:
    return line if len(line) <= most else line[: max(most - 4, 0)] + " ..."
