"""Calls in tags: `<function=f><parameter=x>...` (Qwen 3.5, Nemotron) and `<arg_key>` pairs (GLM).

Both write each value as bare text between tags. The text is taken as it stands, but for one line
break at either end; what type it has is for the binder to find out. A value ends at its own
closing tag, else at the next tag of the format, and never at the end of the message: that value
was cut off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from toolgym.calls import errors as call_errors
from toolgym.calls.json_reading import CONFLICT, TRUNCATED, JsonReader
from toolgym.calls.raw import RawCall
from toolgym.calls.repairs import MISSING_CLOSE_TAG, REPAIRED_JSON, Repair
from toolgym.tools import ToolSpec

MAX_PARAMETERS = 64


@dataclass(frozen=True)
class TagRead:
    """One call and the position behind it."""

    call: RawCall
    end: int


@dataclass(frozen=True)
class Tags:
    """The tags of a format: what opens a parameter, what closes it, where it must end."""

    kind: str
    opening: re.Pattern[str]
    close: str
    stop: re.Pattern[str]


_FUNCTION = re.compile(r"<function=\s*[\"']?([^<>\s\"']*)[\"']?\s*>")
_XML = Tags(
    "xml",
    re.compile(r"\s*<parameter=\s*[\"']?([^<>\s\"']+)[\"']?\s*>"),
    "</parameter>",
    re.compile(r"</parameter>|<parameter=|</function>|</tool_call>|<function="),
)
_GLM = Tags(
    "glm",
    re.compile(r"\s*<arg_key>\s*([^<>\s]+)\s*</arg_key>\s*<arg_value>"),
    "</arg_value>",
    re.compile(r"</arg_value>|<arg_key>|</tool_call>|<tool_call>"),
)
_FUNCTION_END = re.compile(r"</function>|</tool_call>|<function=|<tool_call>")
_HALF_TAG = re.compile(r"\s*(?:<[^>]*)?$")


def read_function(
    text: str, start: int, reader: JsonReader, specs: Mapping[str, ToolSpec]
) -> TagRead:
    """The call that begins with `<function=` at `start`."""
    head = _FUNCTION.match(text, start)
    if head is None:
        cut = text.find(">", start) < 0
        reason = TRUNCATED if cut else "its function tag has no name"
        return TagRead(_failed("", reason, "xml", specs), start + len("<function="))
    name = head.group(1)
    inside = re.compile(r"\s*").match(text, head.end())
    begin = inside.end() if inside else head.end()
    if text.startswith("{", begin):
        return _json_body(text, name, begin, reader, specs)
    read = _parameters(text, name, head.end(), _XML, specs)
    if read.call.error is not None:
        return read
    end = _skip_blank(text, read.end)
    if text.startswith("</function>", end):
        return TagRead(read.call, end + len("</function>"))
    if end == len(text) and not read.call.arguments:
        return TagRead(_failed(name, TRUNCATED, "xml", specs), end)
    if _HALF_TAG.match(text, end) and end < len(text):
        return TagRead(_failed(name, TRUNCATED, "xml", specs), len(text))
    return _stepped_over(text, read, end)


def read_arg_keys(
    text: str, name: str, start: int, limit: int, specs: Mapping[str, ToolSpec]
) -> TagRead:
    """The call whose `<arg_key>` pairs begin at `start`, behind its name, up to `limit`."""
    read = _parameters(text, name, start, _GLM, specs)
    end = _skip_blank(text, read.end)
    unclosed = read.call.error is None and limit == len(text)
    if unclosed and (not read.call.arguments or (end < limit and _HALF_TAG.match(text, end))):
        return TagRead(_failed(name, TRUNCATED, "glm", specs), len(text))
    return read


def _json_body(
    text: str, name: str, begin: int, reader: JsonReader, specs: Mapping[str, ToolSpec]
) -> TagRead:
    """Llama's other form: `<function=f>{"x": ...}</function>`."""
    stop = _FUNCTION_END.search(text, begin)
    read = reader.read(begin, stop.start() if stop else len(text))
    if read.problem:
        return TagRead(_failed(name, read.problem, "xml", specs), read.end)
    call = RawCall(name, read.value, "xml", read.repairs)
    end = _skip_blank(text, read.end)
    if text.startswith("</function>", end):
        return TagRead(call, end + len("</function>"))
    return _stepped_over(text, TagRead(call, read.end), end)


def _stepped_over(text: str, read: TagRead, end: int) -> TagRead:
    """A call without its closing tag where it should be: it comes later, or not at all."""
    stop = _FUNCTION_END.search(text, end)
    if stop and stop.group() == "</function>":
        return TagRead(read.call.with_repairs(REPAIRED_JSON), stop.end())
    return TagRead(read.call.with_repairs(MISSING_CLOSE_TAG), read.end)


def _parameters(
    text: str, name: str, start: int, tags: Tags, specs: Mapping[str, ToolSpec]
) -> TagRead:
    """The values that follow one another from `start`, as one call."""
    values: dict[str, str] = {}
    repairs: list[Repair] = []
    for _ in range(MAX_PARAMETERS):
        opening = tags.opening.match(text, start)
        if opening is None:
            break
        key = opening.group(1)
        stop = tags.stop.search(text, opening.end())
        if stop is None:
            return TagRead(_failed(name, TRUNCATED, tags.kind, specs), len(text))
        value = text[opening.end() : stop.start()].removeprefix("\n").removesuffix("\n")
        if values.setdefault(key, value) != value:
            return TagRead(_failed(name, CONFLICT, tags.kind, specs), stop.end())
        closed = stop.group() == tags.close
        if not closed:
            repairs.append(MISSING_CLOSE_TAG)
        start = stop.end() if closed else stop.start()
    else:
        return TagRead(_failed(name, "it has too many parameters", tags.kind, specs), start)
    return TagRead(RawCall(name, values, tags.kind, tuple(repairs), textual=True), start)


def _skip_blank(text: str, start: int) -> int:
    while start < len(text) and text[start].isspace():
        start += 1
    return start


def _failed(name: str, reason: str, kind: str, specs: Mapping[str, ToolSpec]) -> RawCall:
    return RawCall(name, {}, kind, error=call_errors.unreadable(reason == TRUNCATED, reason, specs))
