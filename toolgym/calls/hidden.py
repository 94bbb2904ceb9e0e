"""What is hidden from the search for calls: thinking, and what a model made up of others.

Some prompts open the thought themselves, so a lone closing tag means that all before it was
thought. A tag inside a value of a call is none of these. So a call that begins outside of any
thought and is whole as it was written keeps the tags that it holds; every other tag is taken for
what it is, and a call that it cuts in two is an error. A call that begins inside a thought,
inside a result of a tool, or behind what opens a turn of the user, is never read, whatever stands
around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from toolgym.calls.alternation import branches
from toolgym.calls.hiding_tags import TAGS
from toolgym.calls.source import Shown
from toolgym.calls.tag_sets import CLOSERS
from toolgym.tools import ToolSpec

_PATTERN = re.compile("|".join(branches(TAGS)))


Across = Callable[[int, int], int | None]
"""Where the call ends that begins at or behind a position and holds the tag at another."""


def without_hidden(
    text: str, specs: Mapping[str, ToolSpec], calls_in: Callable[[], Across]
) -> Shown:
    """The text without its thinking, results of tools and turns of other roles.

    Args:
        calls_in: Makes the search for a call that holds a tag.
    """
    tag = _PATTERN.search(text)
    if tag is None:
        return Shown(text)
    shown: list[str] = []
    hidden: list[list[str]] = []  # each behind the shown piece of the same number; joined once
    position, inside, begun = 0, "", False
    across: Across | None = None
    while tag is not None:
        known = TAGS[tag.group()]
        behind = tag.end()
        if not inside and position < tag.start() and (known.lone or not known.closing):
            across = across or calls_in()
            end = across(position, tag.start())
            if end is not None:
                tag = _PATTERN.search(text, end)
                continue
        if inside:
            if known.closing and known.kind == inside:
                hidden[-1].append(text[position : tag.start()])
                inside, position = "", behind
        elif known.closing:
            if known.lone:
                shown, hidden, begun, position = [], [], True, behind
        else:
            shown.append(text[position : tag.start()])
            hidden.append([])
            inside, position = known.kind, behind
        tag = _PATTERN.search(text, behind)
    rest = [text[position:]]
    hidden, shown = ([*hidden, rest], shown) if inside else (hidden, shown + rest)
    return _join(shown, list(map("".join, hidden)), begun=begun)


def _join(shown: list[str], hidden: list[str], *, begun: bool) -> Shown:
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
