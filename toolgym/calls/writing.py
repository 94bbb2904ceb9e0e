"""Writing calls as a family of models writes them, by the templates of the table of formats.

    >>> print(render_call("describe", {"table_name": "singer"}, format="kimi-k2"))
    <|tool_calls_section_begin|><|tool_call_begin|>functions.describe:0<|tool_call_argument_begin|>\
{"table_name": "singer"}<|tool_call_end|><|tool_calls_section_end|>

What is written in a format of JSON or Python reads back as it was, whatever its texts hold: a mark
in a text is escaped. The formats of bare text escape nothing, so a value that holds the very tags
of its format may not read back; then it is an error, and never another call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_jsonable_python

from toolgym.calls.alternation import LatePattern, branches
from toolgym.calls.binding import ToolCall
from toolgym.calls.families import Format, format_named
from toolgym.calls.hiding_tags import CONTROL_TEXTS

# Inside JSON text these can only stand in a string, where an escape means the same character.
_IN_STRING = LatePattern("|".join(branches(CONTROL_TEXTS)))
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def render_call(
    call: ToolCall | str, arguments: Mapping[str, Any] | None = None, *, format: str = "hermes"
) -> str:
    """The text of a call; it parses back with no repair.

    Args:
        call: A call, or the name of a tool.
        arguments: The arguments, if only a name was given.
        format: A name in the table of formats.

    Raises:
        ValueError: There is no such format.
    """
    if isinstance(call, ToolCall):
        return render_calls([call], format=format)
    return render_calls([(call, arguments or {})], format=format)


def render_calls(
    calls: Sequence[ToolCall | tuple[str, Mapping[str, Any]]], *, format: str = "hermes"
) -> str:
    """The text of several calls in one message.

    Args:
        calls: Calls, or names with arguments.
        format: A name in the table of formats.

    Raises:
        ValueError: There is no such format, or it has no message with several calls.
    """
    entry = format_named(format)
    if len(calls) > 1 and not entry.parallel:
        raise ValueError(f"a message in the format {entry.name} holds one call, got {len(calls)}.")
    pairs = [
        (call.name, call.arguments) if isinstance(call, ToolCall) else (call[0], dict(call[1]))
        for call in calls
    ]
    written = [_one(entry, index, name, values) for index, (name, values) in enumerate(pairs)]
    return _filled(entry.around, {"calls": entry.between.join(written)})


def _one(entry: Format, index: int, name: str, arguments: Mapping[str, Any]) -> str:
    values = json.loads(json.dumps(arguments, default=to_jsonable_python))
    fields = {"name": name, "index": str(index)}
    if "{arguments}" in entry.each:
        fields["arguments"] = _json(values)
    if "{call}" in entry.each:
        fields["call"] = _json(dict(zip(entry.keys, (name, values), strict=True)))
    if "{inner}" in entry.each:
        fields["inner"] = _json(dict(zip(entry.keys, (name, values), strict=True)))[1:-1]
    if "{python}" in entry.each:
        fields["python"] = _python(name, values)
    if "{braces}" in entry.each:
        fields["braces"] = _braces(values, entry.pair)[1:-1]
    if "{pairs}" in entry.each:
        fields["pairs"] = "".join(_pair(entry, key, value) for key, value in values.items())
    return _filled(entry.each, fields)


def _filled(template: str, fields: Mapping[str, str]) -> str:
    """The template with its fields put in, each once; what is put in is not looked at again."""
    return _PLACEHOLDER.sub(lambda found: fields.get(found[1], found[0]), template)


def _json(value: Any) -> str:
    return _IN_STRING.compiled.sub(_escaped, json.dumps(value, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0][0]):04x}{found[0][1:]}"


def _python(name: str, arguments: Mapping[str, Any]) -> str:
    written = ", ".join(f"{key}={_literal(value)}" for key, value in arguments.items())
    return f"{name}({written})"


def _literal(value: Any) -> str:
    return _IN_STRING.compiled.sub(_escaped, repr(value))


def _pair(entry: Format, key: str, value: Any) -> str:
    is_text = isinstance(value, str)
    bare = value if is_text else json.dumps(value, ensure_ascii=False)
    fields = {"key": key, "value": bare, "text": str(is_text).lower(), "type": _type(value)}
    return _filled(entry.pair, fields)


def _type(value: Any) -> str:
    """The JSON type of a value, as Kimi K3 names it."""
    kinds = ((bool, "boolean"), (int | float, "number"), (str, "string"), (list, "array"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "object")


def _braces(value: Any, quote: str) -> str:
    """A value in Gemma's notation."""
    if isinstance(value, str):
        return f"{quote}{value}{quote}"
    if isinstance(value, dict):
        return f"{{{','.join(f'{key}:{_braces(each, quote)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{','.join(_braces(each, quote) for each in value)}]"
    return json.dumps(value)
