"""Writing calls as Hermes and Qwen do.

    >>> print(render_call("describe", {"table_name": "singer"}))
    <tool_call>
    {"name": "describe", "arguments": {"table_name": "singer"}}
    </tool_call>

What is written reads back as it was, whatever its texts hold: a mark in a text is escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from toolgym.calls.alternation import LatePattern, branches
from toolgym.calls.bind import ToolCall
from toolgym.calls.hiding_tags import CONTROL_TEXTS

# Inside JSON text these can only stand in a string, where an escape means the same character.
_IN_STRING = LatePattern("|".join(branches(CONTROL_TEXTS)))


def render_call(call: ToolCall | str, arguments: Mapping[str, Any] | None = None) -> str:
    """The text of a call; it parses back with no repair.

    Args:
        call: A call, or the name of a tool.
        arguments: The arguments, if only a name was given.
    """
    if isinstance(call, ToolCall):
        arguments, call = call.arguments, call.name
    values = json.loads(json.dumps(dict(arguments or {}), default=to_jsonable_python))
    text = json.dumps({"name": call, "arguments": values}, ensure_ascii=False)
    return f"<tool_call>\n{_IN_STRING.compiled.sub(_escaped, text)}\n</tool_call>"


def render_calls(calls: Iterable[ToolCall]) -> str:
    """The text of several calls in one message."""
    return "\n".join(map(render_call, calls))


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0][0]):04x}{found[0][1:]}"
