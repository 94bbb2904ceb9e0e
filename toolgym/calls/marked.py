"""Recognisers of calls: those behind the mark of a format, and those that no mark announces.

A recogniser returns a `Found`: the calls it read and where it stopped. A mark behind which nothing
can be read gives a call with an error. Loose text is mostly prose, so little of it is a call: a
line that begins, perhaps in a code fence, with a JSON object that has a tool's name and a place for
arguments, or with a Python call of a tool that exists. No pattern here can backtrack over more than
it needs: where two runs of blanks could meet, the first is possessive.
"""

from __future__ import annotations

import re

from toolgym.calls.json_reading import TRUNCATED
from toolgym.calls.python_forms import read_python
from toolgym.calls.repairs import MISSING_CLOSE_TAG, REPAIRED_JSON
from toolgym.calls.source import CLOSE, LOOSE, MAX_CALLS, Found, Source, named_object, objects
from toolgym.calls.tool_index import match_name
from toolgym.calls.xml_forms import read_arg_keys, read_function

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
        here: A line begins at `position`, whatever stands before it.
    """
    reads: list[Found] = []
    count = 0
    for _ in range(MAX_STARTS):
        start = next_start(source.text, position, here=here)
        here = False
        if start is None or count >= MAX_CALLS:
            break
        reading = read_start(source, start.end())
        if reading.calls:
            reads.append(reading)
            count += len(reading.calls)
        position = max(reading.end, start.end() + 1)
    return reads


def next_start(
    text: str, position: int, end: int | None = None, *, here: bool = False
) -> re.Match[str] | None:
    """The next line that could begin a call; with `here`, one may begin at `position` itself."""
    end = len(text) if end is None else end
    match = _HERE.match(text, position, end) if here else None
    return match or _START.search(text, position, end)


def read_start(source: Source, begin: int) -> Found:
    """The calls that begin where a line does; none if it is prose."""
    if _CALL_SHAPED.match(source.text, begin):
        limit = min(source.find("```", begin), source.find(CLOSE, begin))
        reading = objects(source, begin, limit, LOOSE)
        reading.start = begin
        return reading
    if source.text[begin] == "{":
        return Found((), begin)
    python = read_python(source, begin)
    return Found(python.calls, python.end, begin, open_at=python.open_at)


OPEN = "<tool_call>"
MARK = re.compile(r"(?:<tool_call>\s*+)++|<function=|\[TOOL_CALLS\]|<\|python_tag\|>")
PYTHON_TAG = "<|python_tag|>"
_BLANK = re.compile(r"\s*+(?:```\w*+\s*+)?+")
_CLOSING = re.compile(r"\s*+</tool_call>")
_BARE_NAME = re.compile(r"([\w.\-/:]++)\s*+(?=</tool_call>|<arg_key>|$)")
UNBALANCED = "its brackets are not closed before the next tag"


def behind_mark(source: Source, mark: re.Match[str]) -> Found:
    """The calls behind a mark, and where the next one may stand."""
    kind = mark.group()
    if kind.startswith(OPEN):
        reading = hermes(source, mark.end())
        reading = reading.repaired(MISSING_CLOSE_TAG) if kind.count("<") > 1 else reading
    elif kind == "<function=":
        reading = read_function(source, mark.start())
    elif kind == "[TOOL_CALLS]":
        reading = mistral(source, mark.end())
    else:
        reading = llama(source, mark.end())
    reading.start, reading.end = mark.start(), max(reading.end, mark.end())
    return reading


def llama(source: Source, start: int) -> Found:
    """The calls behind `<|python_tag|>`: JSON objects, or Python calls up to the end."""
    reading = objects(source, source.skip(start, _BLANK), len(source.text), "llama")
    if reading.calls:
        return reading
    reads = unmarked(source, start, here=True)
    read_to = reads[-1].understood if reads else start
    return Found(
        tuple(call for read in reads for call in read.calls), len(source.text), -1, read_to
    )


def hermes(source: Source, start: int) -> Found:
    """The calls behind `<tool_call>`: JSON, or another format inside the same tag."""
    text = source.text
    limit = min(source.find(CLOSE, start), source.find(OPEN, start))
    body = source.skip(start, _BLANK)
    fenced, start = "`" in text[start:body], body
    if start >= limit:
        reason = TRUNCATED if limit == len(text) else "it is empty"
        return Found((source.failed(reason, "hermes"),), _behind_close(source, limit))
    if text[start] in "{[":
        reading = objects(source, start, limit, "hermes")
        if fenced or text[start] == "[" or len(reading.calls) > 1:
            reading.calls = tuple(call.with_repairs(REPAIRED_JSON) for call in reading.calls)
        if _is_unbalanced(source, reading, limit):
            reading.calls = (source.failed(UNBALANCED, "hermes"),)
    elif text.startswith("<function=", start):
        reading = read_function(source, start)
    else:
        reading = _named_or_python(source, start, limit)
    if not reading.calls:
        reason = "there is no JSON object in its tag"
        return Found((source.failed(reason, "hermes"),), _behind_close(source, limit))
    return _closed(source, reading)


def _is_unbalanced(source: Source, reading: Found, limit: int) -> bool:
    """Whether brackets were put in front of a tag that need not be the end of the object.

    The tag may stand in a string whose quotes are broken: so it does if what comes next is not
    this object's closing tag, or if one more closing tag comes than was opened.
    """
    if reading.end != limit or limit == len(source.text) or not reading.calls or reading.whole:
        return False
    if reading.calls[-1].error or not source.text.startswith(CLOSE, limit):
        return reading.calls[-1].error is None
    behind = limit + len(CLOSE)
    return source.text.find(CLOSE, behind, source.find(OPEN, behind)) >= 0


def _named_or_python(source: Source, start: int, limit: int) -> Found:
    """Behind `<tool_call>`: a name with GLM's keys, with a JSON object, or with Python brackets."""
    bare = _BARE_NAME.match(source.text, start)
    if bare:
        if bare.end() == len(source.text):
            return Found((source.failed(TRUNCATED, "glm"),), limit)
        reading = read_arg_keys(source, bare.group(1), bare.end())
        call = reading.calls[0]
        if call.arguments or call.error or match_name(bare.group(1), source.specs).name:
            return reading
        return Found((), limit)
    reading = named_object(source, start, limit, "hermes")
    if reading.calls:
        return reading.repaired(REPAIRED_JSON)
    python = read_python(source, start, sure=True)
    return Found(python.calls, python.end)


def _closed(source: Source, reading: Found) -> Found:
    """Step behind the closing tag; note on the last call what stood before it, or that it lacks."""
    reading.read_to = reading.understood
    end = source.skip(reading.end, _BLANK)
    if source.text.startswith(CLOSE, end):
        reading.end = end + len(CLOSE)
        return reading
    *others, last = reading.calls
    if last.error is not None:
        reading.end = _behind_close(source, reading.end)
        return reading
    close = source.find(CLOSE, end)
    if close < min(source.find(OPEN, end), len(source.text)):
        reading.calls, reading.end = (*others, last.with_repairs(REPAIRED_JSON)), close + len(CLOSE)
    else:
        reading.calls = (*others, last.with_repairs(MISSING_CLOSE_TAG))
    return reading


def _behind_close(source: Source, position: int) -> int:
    return source.skip(position, _CLOSING)


def mistral(source: Source, start: int) -> Found:
    """The calls behind `[TOOL_CALLS]`: a JSON list, or names with objects."""
    limit = source.find("[TOOL_CALLS]", start)
    start = source.skip(start, _BLANK)
    reading = objects(source, start, limit, "mistral")
    if not reading.calls:
        reading = named_object(source, start, limit, "mistral")
    if not reading.calls:
        reason = TRUNCATED if limit == len(source.text) else "there is no JSON behind [TOOL_CALLS]"
        return Found((source.failed(reason, "mistral"),), limit)
    return reading
