"""Finding the calls in a text that a model wrote: one recogniser per format.

Formats with a mark of their own are looked for first, from left to right:

    <tool_call>{"name": ..., "arguments": {...}}</tool_call>                  Hermes, Qwen 2.5 and 3
    <tool_call><function=f><parameter=x>...</parameter></function></tool_call> Qwen 3.5, Nemotron
    <tool_call>f<arg_key>x</arg_key><arg_value>...</arg_value></tool_call>     GLM
    [TOOL_CALLS][{"name": ..., "arguments": {...}}]   [TOOL_CALLS]f[ARGS]{...} Mistral
    <|python_tag|>{"name": ..., "parameters": {...}}                           Llama

Only in a text without any mark, a line that begins with a JSON object (bare or in a code fence),
or with a Python call of a tool that exists, is a call. What a model thinks (`<think>`, closed or
not) is no call.

A recogniser returns a `Found`: the calls it read and where it stopped. A mark behind which
nothing can be read gives a call with an error. No pattern here can backtrack, and at most
`MAX_CALLS` are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolgym.calls.json_reading import TRUNCATED
from toolgym.calls.loose import unmarked
from toolgym.calls.python_forms import read_python
from toolgym.calls.raw import MAX_CALLS, RawCall
from toolgym.calls.repairs import MISSING_CLOSE_TAG, REPAIRED_JSON
from toolgym.calls.source import CLOSE, Found, Source, named_object, objects
from toolgym.calls.tool_names import match_name
from toolgym.calls.xml_forms import read_arg_keys, read_function
from toolgym.tools import ToolSpec

_MARK = re.compile(r"(?:<tool_call>\s*)+|<function=|\[TOOL_CALLS\]|<\|python_tag\|>")
_BLANK = re.compile(r"\s*(?:```\w*\s*)?")
_CLOSING = re.compile(r"\s*</tool_call>")
_BARE_NAME = re.compile(r"([\w.\-/:]+)\s*(?=</tool_call>|<arg_key>|$)")
_THINKING = re.compile(r"<(/?)think(?:ing)?>|\[(/?)THINK\]")
_LAST_TOKENS = re.compile(
    r"(?:<\|(?:im_end|endoftext|eot_id|eom_id|end_of_text|user|observation)\|>|</s>|<end_of_turn>)\s*$"
)


def find_calls(text: str, specs: Mapping[str, ToolSpec]) -> list[RawCall]:
    """All calls in a text, in their order; an empty list if it holds none."""
    source = Source(without_last_tokens(without_thinking(text)), specs)
    calls: list[RawCall] = []
    position = 0
    while len(calls) < MAX_CALLS:
        mark = _MARK.search(source.text, position)
        if mark is None:
            break
        found = _behind_mark(source, mark)
        calls.extend(found.calls)
        position = max(found.end, mark.end())
    return calls[:MAX_CALLS] if calls else unmarked(source)


def without_thinking(text: str) -> str:
    """The text without its thinking; a lone closing tag means that all before it was thought."""
    if "think" not in text and "[THINK]" not in text and "[/THINK]" not in text:
        return text
    shown: list[str] = []
    position, hidden = 0, False
    for tag in _THINKING.finditer(text):
        closing = bool(tag.group(1) or tag.group(2))
        if closing and not hidden:
            shown.clear()
        elif not closing and not hidden:
            shown.append(text[position : tag.start()])
        hidden = not closing
        position = tag.end()
    if not hidden:
        shown.append(text[position:])
    return "\n".join(shown)


def without_last_tokens(text: str) -> str:
    """The text without the end-of-turn token that some decoders leave in it."""
    tail = text[-64:]
    return text[: len(text) - len(tail)] + _LAST_TOKENS.sub("", tail)


def _behind_mark(source: Source, mark: re.Match[str]) -> Found:
    kind = mark.group()
    if kind.startswith("<tool_call>"):
        found = hermes(source, mark.end())
        return found.repaired(MISSING_CLOSE_TAG) if kind.count("<") > 1 else found
    if kind == "<function=":
        read = read_function(source.text, mark.start(), source.json, source.specs)
        return Found((read.call,), read.end)
    if kind == "[TOOL_CALLS]":
        return mistral(source, mark.end())
    found = objects(source, source.skip(mark.end(), _BLANK), len(source.text), "llama")
    if found.calls:
        return found
    behind = Source(source.text[mark.end() :], source.specs)  # Python calls, perhaps
    return Found(tuple(unmarked(behind)), len(source.text))


def hermes(source: Source, start: int) -> Found:
    """What stands behind `<tool_call>`: JSON, or another format inside the same tag."""
    text = source.text
    limit = min(source.find(CLOSE, start), source.find("<tool_call>", start))
    body = source.skip(start, _BLANK)
    fenced, start = "`" in text[start:body], body
    if start >= limit:
        reason = TRUNCATED if limit == len(text) else "it is empty"
        return Found((source.failed(reason, "hermes"),), _behind_close(source, limit))
    if text[start] in "{[":
        found = objects(source, start, limit, "hermes")
        if fenced or text[start] == "[" or len(found.calls) > 1:
            several = tuple(call.with_repairs(REPAIRED_JSON) for call in found.calls)
            found = Found(several, found.end)
    elif text.startswith("<function=", start):
        xml = read_function(text, start, source.json, source.specs)
        found = Found((xml.call,), xml.end)
    else:
        found = _named_or_python(source, start, limit)
    if not found.calls:
        reason = "there is no JSON object in its tag"
        return Found((source.failed(reason, "hermes"),), _behind_close(source, limit))
    return _closed(source, found)


def _named_or_python(source: Source, start: int, limit: int) -> Found:
    """Behind `<tool_call>`: a name with GLM's keys, with a JSON object, or with Python brackets."""
    bare = _BARE_NAME.match(source.text, start)
    if bare:
        if bare.end() == len(source.text):
            return Found((source.failed(TRUNCATED, "glm"),), limit)
        read = read_arg_keys(source.text, bare.group(1), bare.end(), limit, source.specs)
        if read.call.arguments or read.call.error or match_name(bare.group(1), source.specs).name:
            return Found((read.call,), read.end)
        return Found((), limit)
    found = named_object(source, start, limit, "hermes")
    if found.calls:
        return found.repaired(REPAIRED_JSON)
    python = read_python(source.text, start, source.specs, sure=True)
    return Found(python.calls, python.end)


def _closed(source: Source, found: Found) -> Found:
    """Step behind the closing tag; note on the last call what stood before it, or that it lacks."""
    end = source.skip(found.end, _BLANK)
    if source.text.startswith(CLOSE, end):
        return Found(found.calls, end + len(CLOSE))
    *others, last = found.calls
    if last.error is not None:
        return Found(found.calls, _behind_close(source, found.end))
    close = source.find(CLOSE, end)
    if close < min(source.find("<tool_call>", end), len(source.text)):
        fixed = last.with_repairs(REPAIRED_JSON)
        return Found((*others, fixed), close + len(CLOSE))
    return Found((*others, last.with_repairs(MISSING_CLOSE_TAG)), found.end)


def _behind_close(source: Source, position: int) -> int:
    return source.skip(position, _CLOSING)


def mistral(source: Source, start: int) -> Found:
    """What stands behind `[TOOL_CALLS]`: a JSON list, or names with objects."""
    limit = source.find("[TOOL_CALLS]", start)
    start = source.skip(start, _BLANK)
    found = objects(source, start, limit, "mistral")
    if not found.calls:
        found = named_object(source, start, limit, "mistral")
    if not found.calls:
        reason = TRUNCATED if limit == len(source.text) else "there is no JSON behind [TOOL_CALLS]"
        return Found((source.failed(reason, "mistral"),), limit)
    return found
