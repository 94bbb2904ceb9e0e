"""Recognisers of calls behind the marks of formats.

`MARK` finds the next mark of the table in `toolgym.calls.families`, and `behind_mark` reads what
stands there: by the entry of the table (`toolgym.calls.enveloped`), or by one of the readers here,
for the tags that several formats share. A recogniser returns a `Found`: the calls it read and where
it stopped. A mark behind which nothing can be read gives a call with an error, unless the text only
speaks of the format (`toolgym.calls.mentions`).
"""

from __future__ import annotations

import re
from dataclasses import replace

from toolgym.calls.alternation import branches
from toolgym.calls.enveloped import OPENINGS, UNBALANCED, is_unbalanced, read_enveloped
from toolgym.calls.lines import first_line
from toolgym.calls.mend import TRUNCATED
from toolgym.calls.mentions import is_mention, is_template, quotation_end
from toolgym.calls.python_forms import read_python, read_python_calls
from toolgym.calls.repairs import MISSING_CLOSE_TAG, REPAIRED_JSON
from toolgym.calls.source import CLOSE, Found, Source, named_object, objects
from toolgym.calls.tool_index import match_name
from toolgym.calls.xml_forms import read_arg_keys, read_function

OPEN = "<tool_call>"
PYTHON_TAG = "<|python_tag|>"
_FUNCTIONARY = ">>>"  # the mark of Functionary 3.2, where a name and an object follow


# Each alternative begins with another character, which makes the search for one quick.
MARK = re.compile("|".join([*branches(OPENINGS), rf"{_FUNCTIONARY}(?=[\w.\-/]{{1,100}}\n\{{)"]))
_AGAIN = re.compile(r"\s*+(?:<tool_call>\s*+)*+")
_BLANK = re.compile(r"\s*+(?:```\w*+\s*+)?+")
_CLOSING = re.compile(r"\s*+</tool_call>")
_BARE_NAME = re.compile(r"([\w.\-/:]++)\s*+(?:<tool_sep>\s*+)?+(?=</tool_call>|<arg_key>|$)")


def behind_mark(source: Source, mark: re.Match[str], floor: int = 0) -> Found:
    """The calls behind a mark, and where the next one may stand.

    Args:
        floor: Where the call before it ends.
    """
    quoted = quotation_end(source.text, mark.start(), floor)
    if quoted >= 0:
        return Found((), max(quoted, mark.end()), mark.start())
    reading = _reading(source, mark, mark.group())
    reading.start, reading.end = mark.start(), max(reading.end, mark.end())
    if any(call.error for call in reading.calls) and is_template(source.text, mark.end()):
        reading.calls = ()
    elif is_mention(source.text, mark, floor, reading.calls):
        return Found((), mark.end(), mark.start())
    return reading


def _reading(source: Source, mark: re.Match[str], kind: str) -> Found:
    begin = source.skip(mark.end(), _BLANK)
    nested = None if source.text.startswith("{", begin) else MARK.match(source.text, begin)
    if nested and not (kind == OPEN and nested.group() in (OPEN, "<function=")):
        return Found((), mark.end())  # a section around the calls
    if kind == OPEN:
        again = nested is not None and nested.group() == OPEN
        reading = hermes(source, source.skip(mark.end(), _AGAIN) if again else mark.end())
        return reading.repaired(MISSING_CLOSE_TAG) if again else reading
    if kind == _FUNCTIONARY:
        return first_line(source, mark.end())
    if kind == "[TOOL_CALLS]":
        return mistral(source, mark.end())
    if kind == PYTHON_TAG:
        return llama(source, mark.end())
    return read_enveloped(source, mark, OPENINGS[kind])


def llama(source: Source, start: int) -> Found:
    """The calls behind `<|python_tag|>`: JSON objects, or Python calls; none if it is a program."""
    begin = source.skip(start, _BLANK)
    reading = objects(source, begin, len(source.text), "llama")
    return reading if reading.calls else read_python_calls(source, begin, "llama", sure=False)


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
        if text[start] == "[" and reading.whole and not text[reading.end :].strip():
            reading.calls = tuple(replace(call, format="granite-3.1") for call in reading.calls)
            return reading  # a list at the end, without a closing tag
        if fenced or text[start] == "[" or len(reading.calls) > 1:
            reading.calls = tuple(call.with_repairs(REPAIRED_JSON) for call in reading.calls)
        if is_unbalanced(source, reading, limit, OPEN, (CLOSE,)):
            reading.calls = (source.failed(UNBALANCED, "hermes"),)
    elif text.startswith("<function=", start):
        reading = read_function(source, start)
    else:
        reading = _named_or_python(source, start, limit)
    if not reading.calls:
        reason = "there is no JSON object in its tag"
        return Found((source.failed(reason, "hermes"),), _behind_close(source, limit))
    return _closed(source, reading)


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
    is_audio = source.text.startswith("function\n", start)
    reading = named_object(source, start, limit, "step-audio" if is_audio else "hermes")
    if reading.calls:
        return reading if is_audio else reading.repaired(REPAIRED_JSON)
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
        reading = named_object(source, start, limit, "mistral-args")
    if not reading.calls:
        reason = TRUNCATED if limit == len(source.text) else "there is no JSON behind [TOOL_CALLS]"
        return Found((source.failed(reason, "mistral"),), limit)
    return reading
