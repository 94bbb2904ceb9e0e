"""Calls that no mark announces: JSON objects and Python calls at the start of a line.

Loose text is mostly prose, so little of it is a call: a line that begins, perhaps in a code
fence, with a JSON object that has a tool's name and a place for arguments, or with a Python call
of a tool that exists. Everything else is left alone.
"""

from __future__ import annotations

import re

from toolgym.calls.python_forms import read_python
from toolgym.calls.raw import MAX_CALLS, RawCall
from toolgym.calls.source import CLOSE, LOOSE, Found, Source, objects

MAX_STARTS = 256  # lines that are tried

_START = re.compile(r"^[ \t]*(?:```[\w-]*[ \t]*|`)?(?=[{\[]|[A-Za-z_][\w.\-/:]*\()", re.MULTILINE)
_CALL_SHAPED = re.compile(
    r"\[?\s*\{\s*[\"'](?:name|tool|tool_name|function|function_name|type|id|tool_calls?|"
    r"arguments|parameters|args|input|kwargs|params|tool_input)[\"']\s*:"
)


def unmarked(source: Source) -> list[RawCall]:
    """Calls without a mark: JSON objects and Python calls at the start of a line."""
    calls: list[RawCall] = []
    position = 0
    for _ in range(MAX_STARTS):
        start = _START.search(source.text, position)
        if start is None or len(calls) >= MAX_CALLS:
            break
        begin = start.end()
        if _CALL_SHAPED.match(source.text, begin):
            limit = min(source.find("```", begin), source.find(CLOSE, begin))
            found = objects(source, begin, limit, LOOSE)
        elif source.text[begin] != "{":
            python = read_python(source.text, begin, source.specs)
            found = Found(python.calls, python.end)
        else:
            found = Found((), begin)
        calls.extend(found.calls)
        position = max(found.end, begin + 1)
    return calls
