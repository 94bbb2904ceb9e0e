"""Pairs of tags and lines that a reply marks as its verdict, found in one pass over the text.

A pattern such as `<(a|b)>.*?</\\1>` looks from every opening tag for its closing one, through the
whole rest of a text in which there is none: a reply of nothing but `<think>`, from a model that
repeats itself, takes the square of its length. Here a search that has failed is not made again, and
a run of characters that several places share is gone through once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

#: Where a piece begins and ends, and between these where what it holds does.
Piece = tuple[int, int, int, int]

_TOKEN: Final = re.compile(r"(?P<word>\w+)|\W+")
_BEFORE_VERDICT: Final = re.compile(r"final|my|the|overall", re.IGNORECASE)
_VERDICT: Final = re.compile(r"verdict", re.IGNORECASE)
_AFTER_VERDICT: Final = re.compile(r"(?:\s+is\b)?\W*([^\n]*)", re.IGNORECASE)


class Tags:
    """Some tags, in letters of either case.

    Args:
        names: What they are called.
    """

    def __init__(self, *names: str) -> None:
        self._opening = re.compile(f"<(?:{'|'.join(f'(?P<{n}>{n})' for n in names)})>", re.I)
        self._closing = {name: re.compile(f"</{name}>", re.I) for name in names}

    def pairs(self, text: str) -> Iterator[Piece]:
        """Each tag with what it holds, up to the first closing one of its name; none overlap."""
        never: set[str] = set()  # what is not closed behind one place is not behind a later one
        at = 0
        while found := self._opening.search(text, at):
            at, name = found.end(), str(found.lastgroup)
            closed = self._closing[name].search(text, at) if name not in never else None
            if closed is None:
                never.add(name)
                continue
            yield found.start(), found.end(), closed.start(), closed.end()
            at = closed.end()

    def without(self, text: str) -> str:
        """A text without the tags and what they hold."""
        kept, at = [], 0
        for start, _, _, end in self.pairs(text):
            kept.append(text[at:start])
            at = end
        return "".join([*kept, text[at:]])


def verdict_lines(text: str) -> Iterator[Piece]:
    """Where lines begin with "verdict", "the final verdict is" and the like, marks before it aside.

    A piece begins at the first line of the marks before the word, and holds the line behind it: the
    matches of `^\\W*(?:(?:final|my|the|overall)\\s+)*verdict\\b(?:\\s+is\\b)?\\W*([^\\n]*)`.
    """
    if _VERDICT.search(text) is None:
        return
    at, begin = 0, 0  # `begin` is the line from which nothing but marks and such words stand; or -1
    inside = False  # behind one of these words, where blanks alone may follow
    while at < len(text):
        for found in _TOKEN.finditer(text, at):
            if found["word"] is None:
                if not (inside and found[0].isspace()):
                    begin, inside = _first_line(found), False
            elif begin >= 0 and _VERDICT.fullmatch(found[0]):
                break
            else:
                inside = begin >= 0 and _BEFORE_VERDICT.fullmatch(found[0]) is not None
                begin = begin if inside else -1
        else:
            return
        rest = _AFTER_VERDICT.match(text, found.end())
        at = rest.end() if rest else found.end()
        yield begin, rest.start(1) if rest else at, at, at
        begin, inside = -1, False


def _first_line(marks: re.Match[str]) -> int:
    """Where the first line that begins among some marks does; -1 if none does."""
    if not marks.start():
        return 0
    ended = marks[0].find("\n")
    return marks.start() + ended + 1 if ended >= 0 else -1
