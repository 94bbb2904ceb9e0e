"""Calls that no mark announces: JSON objects and Python calls at the start of a line.

Loose text is mostly prose, so little of it is a call: a line that begins, perhaps in a code
fence, with a JSON object that has a tool's name and a place for arguments, or with a Python call
of a tool that exists. Everything else is left alone.
"""

from __future__ import annotations

import re

from toolgym.calls.python_forms import read_python
from toolgym.calls.source import CLOSE, LOOSE, MAX_CALLS, Found, Source, objects

MAX_STARTS = 256  # lines that are tried

# What a line may have before its call. The word behind a fence is taken whole or, before a
# bracket, not at all: dividing it between language and name would take quadratic time.
_HERE = re.compile(r"[ \t]*+(?:```(?:[\w-]++(?!\())?+[ \t]*+|`)?(?=[{\[]|[A-Za-z_][\w.\-/:]*+\()")
_START = re.compile("^" + _HERE.pattern, re.MULTILINE)
_CALL_SHAPED = re.compile(
    r"\[?+\s*+\{\s*+[\"'](?:name|tool|tool_name|function|function_name|type|id|tool_calls?|"
    r"arguments|parameters|args|input|kwargs|params|tool_input)[\"']\s*+:"
)


def unmarked(source: Source, position: int = 0, *, here: bool = False) -> list[Found]:
    """Calls without a mark: JSON objects and Python calls at the start of a line.

    Args:
        source: The message.
        position: Where to begin.
        here: A line begins at `position`, whatever stands before it.
    """
    reads: list[Found] = []
    count = 0
    for _ in range(MAX_STARTS):
        start = next_start(source.text, position, here=here)
        here = False
        if start is None or count >= MAX_CALLS:
            break
        found = read_start(source, start.end())
        if found.calls:
            reads.append(found)
            count += len(found.calls)
        position = max(found.end, start.end() + 1)
    return reads


def next_start(
    text: str, position: int, end: int | None = None, *, here: bool = False
) -> re.Match[str] | None:
    """The next line that could begin a call; with `here`, one may begin at `position` itself."""
    end = len(text) if end is None else end
    found = _HERE.match(text, position, end) if here else None
    return found or _START.search(text, position, end)


def read_start(source: Source, begin: int) -> Found:
    """The calls that begin where a line does; none if it is prose."""
    if _CALL_SHAPED.match(source.text, begin):
        limit = min(source.find("```", begin), source.find(CLOSE, begin))
        found = objects(source, begin, limit, LOOSE)
        found.start = begin
        return found
    if source.text[begin] == "{":
        return Found((), begin)
    python = read_python(source, begin)
    return Found(python.calls, python.end, begin, open_at=python.open_at)
