"""Degenerate texts of any length: what makes a backtracking pattern or a naive loop slow.

A shape fills `n` characters with a run of one thing, of two in turn, with marks that are opened and
never closed, closed and never opened, or nested. Behind a beginning that a reader takes seriously,
and before an end that spoils the match, each of them asks a reader to try again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

# Blanks and line ends, letters, digits, signs, escapes, control characters, wide characters, half
# characters: whatever some pattern repeats.
SINGLE = (
    " ", "\t", "\n", "\r", "\x0b", "\u00a0", "\u2003", "\x00", "\x1b", "a", "A", "_", "0", "9",
    ".", ",", ";", ":", "-", "+", "*", "/", "\\", "|", "&", "^", "~", "!", "?", "=", "<", ">",
    "(", ")", "[", "]", "{", "}", '"', "'", "`", "#", "$", "%", "@", "\u00e9", "\u0130", "\u2028",
    "\U0001f642", "\ud800", "\u0301",
)  # fmt: skip
# Two things in turn, and words that some reader looks for.
PAIRED = (
    "a ", " a", ". ", ", ", "; ", ": ", "- ", "* ", "1.", "1,", "1 ", "1,000", "-1", "1e", "a1",
    "aA", "a.", "a-", "a/b", "a'", "()", "[]", "{}", "<>", "('", "[\"", '{"', "<a>", "</", "<!",
    "''", '""', '"a",', "'a',", "\\n", "\\\"", "\\'", "\\\\ ", "\\u", "\\ud800", "\\x", "\n\n",
    "\r\n", "\n ", " \n", "\t\n", "\n- ", "\n* ", "\n1. ", "\n| ", "**", "** ", "``", "```",
    "``` ", "```\n", "`a", "~~~", "--", "--\n", "/*", "*/", "/**/", "==", "=>", "->", " -> ",
    "| ", "f(", "f()", "f(a", "a=", "a=1,", '"a":', "a:b ", "#a", "$1", "%s", "%d", "&amp;",
    "\U0001f642 ", "\udc00\ud800", "e\u0301", "[[", "((", "{{", "[1,", "[{", '{"a":', '{"a":[',
    '["', "(a,", "not ", "and ", "or ", "the ", "is ", "answer ",
)  # fmt: skip
NESTED = (
    ("(", ")"),
    ("[", "]"),
    ("{", "}"),
    ('{"a":', "}"),
    ("[[", "]]"),
    ('"', '"'),
    ("<a>", "</a>"),
)


@dataclass(frozen=True)
class Shape:
    """A degenerate text of any length.

    Attributes:
        name: What it repeats, behind what and before what.
        fill: The text of about `n` characters.
        core: What it repeats.
    """

    name: str
    fill: Callable[[int], str]
    core: str


def _run(unit: str) -> Shape:
    name = f"{unit!a} again and again"
    return Shape(name, lambda n: (unit * (n // len(unit) + 1))[:n], name)


def _nested(opened: str, closed: str) -> Shape:
    width = len(opened) + len(closed)
    name = f"{opened!a} nested, closed by {closed!a}"
    return Shape(name, lambda n: opened * (n // width) + closed * (n // width), name)


def shapes(marks: tuple[str, ...]) -> Iterator[Shape]:
    """All shapes for a reader that knows these marks, each once; at least 80."""
    neighbours = list(zip(marks, marks[1:] + marks[:1], strict=True))
    pairs = [pair for pair in neighbours if pair[0] != pair[1]]
    longer = [each for mark in marks for each in (mark, f"{mark} ", f"{mark}x\n")]
    units = (*SINGLE, *PAIRED, *longer, *(mark + other for mark, other in pairs))
    yield from map(_run, dict.fromkeys(units))
    yield from (_nested(*pair) for pair in dict.fromkeys((*NESTED, *pairs)))


def texts(
    marks: tuple[str, ...], before: tuple[str, ...], after: tuple[str, ...]
) -> Iterator[Shape]:
    """Every shape alone, behind every beginning, and before every end.

    Beginnings and ends go in pairs, each shape with other ones: all combinations would be ten times
    as many texts, and a match that is spoilt needs one beginning and any end.
    """
    starts, ends = ("", *dict.fromkeys(before)), ("x", "", *dict.fromkeys(after))
    for place, shape in enumerate(shapes(marks)):
        yield shape
        for pair in range(max(len(starts), len(ends))):
            start, end = starts[pair % len(starts)], ends[(pair + place) % len(ends)]
            if start or end:
                name = f"{start!a} + {shape.name} + {end!a}"
                yield Shape(name, _surrounded(shape.fill, start, end), shape.core)


def _surrounded(fill: Callable[[int], str], start: str, end: str) -> Callable[[int], str]:
    return lambda n: start + fill(max(n - len(start) - len(end), 1)) + end
