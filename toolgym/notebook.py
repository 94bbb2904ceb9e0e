"""Objects as a notebook shows them: HTML that is escaped, bounded, and the same every time.

A class that inherits `Shown` returns the parts of its picture from `notebook_parts`; the functions
here make them. What a database, a model or a data set wrote goes through `text`, which cuts a long
value, replaces what a page or a message cannot hold (a lone surrogate, a control character) by a
visible sign, and escapes the rest. Nothing else here takes data.

Only inline styles are used, without any colour but a transparent grey for lines, so a picture looks
right in light and dark notebooks and needs neither a script nor a style sheet. MathJax is told to
leave it alone: two prices in a table are no formula.
"""

from __future__ import annotations

import html
import reprlib
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import PurePath
from typing import Any, Final

MOST_ROWS: Final = 20
MOST_COLUMNS: Final = 20
MOST_CHARS: Final = 200
"""Characters of a value in a table that are shown."""
MOST_LONG: Final = 1_000
"""Characters of a value that is often long: of a task, an action, an observation."""
MOST_TEXT: Final = 2_000
"""Characters of a text that stands by itself."""
MOST_SHOWN: Final = 20_000
"""Characters of all values of a table; rows that do not fit are left out."""

UNPRINTABLE: Final = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"},
    **dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF), 0xFFFD),
    0x7F: 0x2421,
}
"""Control characters have pictures of their own; other code points that are no text have one."""

_LARGEST = 1e15
_LINE = "border-bottom:1px solid rgba(128,128,128,.4)"
_CELL = f"text-align:left;vertical-align:top;white-space:pre-wrap;max-width:60ch;{_LINE}"
_TABLE = "border-collapse:collapse;overflow-wrap:break-word;margin:.4em 0"
_TEXT = "white-space:pre-wrap;overflow-wrap:break-word;margin:.4em 0"
_MONOSPACED = f"{_TEXT};font-family:monospace"
_NOTE = "font-style:italic;opacity:.75"


class Shown:
    """An object that a notebook shows as HTML and a terminal of IPython as a short text."""

    __slots__ = ()

    def notebook_parts(self) -> Iterable[str]:
        """The pieces of HTML that it is shown as, made by the functions of this module."""
        raise NotImplementedError

    def notebook_text(self) -> str:
        """It as a text, which is cut where it is long."""
        return repr(self)

    def _repr_html_(self) -> str:
        """It as a cell of a notebook shows it."""
        inside = "".join(self.notebook_parts())
        return f'<div class="tex2jax_ignore mathjax_ignore" style="overflow-x:auto">{inside}</div>'

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """It as a text, which a notebook keeps beside the HTML."""
        shown, left_out = _cut(self.notebook_text(), MOST_TEXT)
        printer.text(visible(shown) + left_out)


class Plain(str):
    """A word of ours in the place of a value, such as NULL; shown so that no text looks like it."""

    __slots__ = ()


def visible(text: str) -> str:
    """The text with a visible sign for each character that a page cannot hold or would swallow.

    >>> visible("a\\x00b")
    'a␀b'
    """
    return text.translate(UNPRINTABLE)


def text(value: object, most: int = MOST_CHARS) -> str:
    """A value as HTML: its first `most` characters, escaped, and a note on the others.

    >>> text("<b>"), text(None), text(0.25)
    ('&lt;b&gt;', '', '0.25')
    >>> text("x" * 1_000_000, most=2)
    'xx<span style="font-style:italic;opacity:.75">… 999,998 more characters</span>'
    """
    shown, left_out = _shown(value, most)
    escaped = html.escape(visible(shown))
    if isinstance(value, Plain):
        return _span(escaped)
    return escaped + (_span(left_out) if left_out else "")


def figure(value: object, sign: str = "") -> object:
    """A number with three decimals; whatever else stands in its place, as it is.

    >>> figure(0.5), figure(0.5, sign="+"), figure(None)
    ('0.500', '+0.500', None)
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value
    # A longer integer, as a file may hold one, is no float.
    return f"{value:{sign}.3f}" if abs(value) < _LARGEST else value


def heading(name: str, *facts: object) -> str:
    """One line: a name in bold, and what is said of it."""
    told = "".join(f" · {text(fact)}" for fact in facts)
    return f'<div style="margin:.4em 0"><b>{text(name)}</b>{told}</div>'


def paragraph(value: object, *, monospaced: bool = False, most: int = MOST_TEXT) -> str:
    """A text by itself, line breaks kept."""
    style = _MONOSPACED if monospaced else _TEXT
    return f'<div style="{style}">{text(value, most)}</div>'


def note(sentence: str) -> str:
    """A sentence of ours beside what is shown, as on what was left out."""
    return f'<div style="{_NOTE}">{html.escape(sentence)}</div>'


def facts(pairs: Iterable[tuple[str, object]], *, most_chars: int = MOST_CHARS) -> str:
    """Names and values, one pair a row."""
    return _table([_row(pair, "th", most_chars) for pair in pairs])


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    total: int,
    *,
    unit: str = "row",
    most_chars: int = MOST_CHARS,
) -> str:
    """The beginning of a table, and a note on what of it is left out.

    Args:
        columns: Their names; beyond `MOST_COLUMNS` they are left out.
        rows: As many cells each as there are columns; no more rows are made than are shown.
        total: How many rows there are.
        unit: What a row is, for the note.
        most_chars: Characters of a cell that are shown.
    """
    head = "".join(f'<th style="{_CELL}">{text(name)}</th>' for name in columns[:MOST_COLUMNS])
    lines, left = [f"<tr>{head}</tr>"], MOST_SHOWN
    for row in islice(rows, MOST_ROWS):
        cells = row[:MOST_COLUMNS]
        left -= sum(len(_shown(cell, most_chars)[0]) for cell in cells)
        if left < 0 and len(lines) > 1:
            break
        lines.append(_row(cells, "td", most_chars))
    notes = _counted(total - len(lines) + 1, unit), _counted(len(columns) - MOST_COLUMNS, "column")
    told = " and ".join(filter(None, notes))
    return _table(lines) + (note(f"… {told}") if told else "")


def _counted(number: int, unit: str) -> str:
    return f"{number:,} more {unit}{'s' * (number != 1)}" if number > 0 else ""


def _table(lines: Sequence[str]) -> str:
    return f'<table style="{_TABLE}">{"".join(lines)}</table>'


def _row(cells: Sequence[object], first: str, most: int) -> str:
    """A row of a table; `first` is the tag of its first cell."""
    tags = [first, *["td"] * (len(cells) - 1)]
    made = (
        f'<{tag} style="{_CELL}">{text(cell, most)}</{tag}>'
        for tag, cell in zip(tags, cells, strict=True)
    )
    return f"<tr>{''.join(made)}</tr>"


def _span(inside: str) -> str:
    return f'<span style="{_NOTE}">{inside}</span>'


def _shown(value: object, most: int) -> tuple[str, str]:
    """What is shown of a value, and a note on what is not."""
    match value:
        case str():
            return _cut(value, most)
        case None:
            return "", ""
        case float():
            return f"{value:.10g}", ""
        case PurePath():
            return _cut(str(value), most)
        case bytes():
            shown, rest = value[: most // 2], len(value) - most // 2
            return f"x'{shown.hex()}'", f"… {rest:,} more bytes" if rest > 0 else ""
        case _:
            whole = _SHORT.repr(value)  # with dots where it left something out
            return whole[:most], "…" if len(whole) > most else ""


def _cut(value: str, most: int) -> tuple[str, str]:
    rest = len(value) - most
    return value[:most], f"… {rest:,} more character{'s' * (rest != 1)}" if rest > 0 else ""


class _Short(reprlib.Repr):
    """The beginning of any object as a text; no place in memory is in it, and no order of a set."""

    def __init__(self) -> None:
        super().__init__()
        self.maxdict = 10
        self.maxstring = self.maxother = self.maxlong = MOST_CHARS

    def repr_int(self, x: int, level: int) -> str:
        """An integer; of one that Python does not write out, how long it is."""
        if x.bit_length() > 4 * MOST_CHARS:
            return f"<integer of {x.bit_length():,} bits>"
        return repr(x)

    def repr_set(self, x: Any, level: int) -> str:
        """A set in the order of its members, or of their texts where they have none."""
        return super().repr_set(self._ordered(x, level), level)

    def repr_frozenset(self, x: Any, level: int) -> str:
        """As a set."""
        return super().repr_frozenset(self._ordered(x, level), level)

    def _ordered(self, members: Iterable[Any], level: int) -> Any:
        """Members by their types and texts; what can be sorted is sorted anew by `reprlib`."""
        return sorted(members, key=lambda each: (type(each).__name__, self.repr1(each, level - 1)))

    def repr_instance(self, x: Any, level: int) -> str:
        """An object without a text of its own is its type."""
        nothing_told: Any = object.__repr__
        if callable(x) or type(x).__repr__ is nothing_told:
            return f"<{type(x).__name__}>"
        return super().repr_instance(x, level)


_SHORT = _Short()
