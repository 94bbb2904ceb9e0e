"""A text without what the model thought: `<think>`, `<thinking>` or `[THINK]`, closed or not.

Some prompts open the thought themselves, so a lone closing tag means that all before it was
thought. A tag inside a value of a call is none of these. So a call that begins outside of any
thought and is whole as it was written keeps the tags that it holds; every other tag is taken for
thinking, and a call that it cuts in two is an error.

A call that begins inside a thought is never read, whatever stands around it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolgym.calls.json_reading import MAX_MENDED
from toolgym.calls.loose import next_start, read_start
from toolgym.calls.marked import MARK, PYTHON_TAG, behind_mark
from toolgym.calls.source import CLOSERS, Found, Shown, Source
from toolgym.tools import ToolSpec

MAX_TRIED = 8 * MAX_MENDED

_THINKING = re.compile(r"<(/?)think(?:ing)?>|\[(/?)THINK\]")


def without_thinking(text: str, specs: Mapping[str, ToolSpec]) -> Shown:
    """The text without its thinking; a lone closing tag means that all before it was thought."""
    if "think" not in text and "[THINK]" not in text and "[/THINK]" not in text:
        return Shown(text)
    shown: list[str] = []
    hidden: list[list[str]] = []  # each behind the shown piece of the same number; joined once
    position, thinking, begun = 0, False, False
    calls: _Calls | None = None
    tag = _THINKING.search(text)
    while tag is not None:
        behind = None
        if not thinking and position < tag.start():
            calls = calls or _Calls(text, specs)
            behind = calls.across(position, tag.start())
        if behind is None:
            closing = bool(tag.group(1) or tag.group(2))
            piece = text[position : tag.start()]
            if closing and not thinking:
                shown, hidden, begun = [], [], True
            elif thinking:
                hidden[-1].append(piece)
            else:
                shown.append(piece)
                hidden.append([])
            thinking = not closing
            behind = position = tag.end()
        tag = _THINKING.search(text, behind)
    rest = [text[position:]]
    hidden, shown = ([*hidden, rest], shown) if thinking else (hidden, shown + rest)
    return _joined(shown, list(map("".join, hidden)), begun=begun)


def _joined(shown: list[str], hidden: list[str], *, begun: bool) -> Shown:
    positions: list[int] = []
    length = -1
    for piece in shown:
        length += len(piece) + 1
        positions.append(length)
    closers = [
        positions[min(k, len(positions) - 1)]
        for k, piece in enumerate(hidden)
        if any(close in piece for close in CLOSERS)
    ]
    return Shown("\n".join(shown), tuple(positions[:-1]), begun, tuple(closers))


class _Calls:
    """The whole calls outside of thoughts, read from left to right, none of them twice.

    What is read in vain costs its length from a budget; when that is spent, no call is looked for.
    """

    def __init__(self, text: str, specs: Mapping[str, ToolSpec]) -> None:
        self._source = Source(text, specs)
        self._position = 0
        self._left = MAX_TRIED
        self._mark: re.Match[str] | None = None
        self._searched = -1  # from where on the next mark is known

    def across(self, begin: int, tag: int) -> int | None:
        """Where the call ends that begins at or behind `begin` and holds the tag at `tag`."""
        here = self._position <= begin  # behind a thought, a line begins
        self._position = max(self._position, begin)
        while self._left > 0:
            start = self._next(tag, here=here)
            if start is None:
                return None
            here = False
            if start.group() == PYTHON_TAG:
                self._position, here = start.end(), True
                continue
            found = self._read(start)
            if found.whole:
                self._position = found.understood
            else:
                self._position = start.end() + (start is not self._mark)
                self._left -= max(found.end - start.start(), 16)
            if found.whole and found.understood > tag:
                return found.understood
        return None

    def _next(self, tag: int, *, here: bool) -> re.Match[str] | None:
        """The next place before the tag where a call could begin: a line, or a mark."""
        if self._searched < 0 or (self._mark and self._mark.start() < self._position):
            self._searched = self._position
            self._mark = MARK.search(self._source.text, self._position)
        mark = self._mark if self._mark and self._mark.start() < tag else None
        end = mark.start() if mark else tag
        return next_start(self._source.text, self._position, end, here=here) or mark

    def _read(self, start: re.Match[str]) -> Found:
        if start is self._mark:
            return behind_mark(self._source, start)
        return read_start(self._source, start.end())
