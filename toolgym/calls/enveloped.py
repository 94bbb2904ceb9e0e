"""Readers of what stands behind a mark, chosen by the table of formats.

A mark says that a call, or a list of calls, follows; the entry of its format in
`toolgym.calls.families` says in which shape: JSON objects, a name with JSON arguments, Python
calls, bare text in tags, or Gemma's braces. What cannot be read there is a call with its error,
unless the mark is an ordinary one of the chat (`certain` is false) or the text only speaks of the
format (`toolgym.calls.mentions`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from toolgym.calls.braces import read_braces
from toolgym.calls.families import FORMATS, Format
from toolgym.calls.mend import TRUNCATED
from toolgym.calls.python_forms import read_python_calls
from toolgym.calls.repairs import MISSING_CLOSE_TAG, REPAIRED_JSON
from toolgym.calls.source import Found, Source, headed_object, object_of, objects
from toolgym.calls.tag_sets import Tags
from toolgym.calls.xml_forms import read_arg_keys, read_function

_BLANK = re.compile(r"\s*+(?:```\w*+\s*+)?+")
_CALLED = re.compile(r"([\w.\-/:]++)\s*+")
_RECIPIENT = re.compile(r"to=(?:functions\.)?([\w.\-/]{1,100})\s*\Z")
UNBALANCED = "its brackets are not closed before the next tag"


@dataclass(frozen=True)
class Opening:
    """A mark, with what all formats that have it say together.

    Attributes:
        mark: The text.
        format: The first of the formats.
        reading: Which readers are tried, in order.
        closes: What closes a call or the list.
        closing: As many of those as follow one another.
        must_close: Whether one of them has to come.
        tags: The tags of the first format that has some.
    """

    mark: str
    format: Format
    reading: tuple[str, ...]
    closes: tuple[str, ...]
    closing: re.Pattern[str]
    must_close: bool
    tags: Tags | None


def _opening(mark: str, formats: list[Format]) -> Opening:
    reading = tuple(dict.fromkeys(name for entry in formats for name in entry.reading))
    closes = tuple(dict.fromkeys(close for entry in formats for close in entry.closes))
    any_close = "|".join(map(re.escape, closes)) or "(?!)"
    closing = re.compile(rf"(?:\s*+(?:{any_close}|```))*+")
    must_close = all(entry.must_close for entry in formats)
    tags = next((entry.tags for entry in formats if entry.tags), None)
    return Opening(mark, formats[0], reading, closes, closing, must_close, tags)


OPENINGS: Final = {
    mark: _opening(mark, [entry for entry in FORMATS if mark in entry.marks])
    for mark in dict.fromkeys(mark for entry in FORMATS for mark in entry.marks)
}
"""Every mark of the table."""


def read_enveloped(source: Source, mark: re.Match[str], opening: Opening) -> Found:
    """The calls behind a mark, up to what closes them."""
    text, name = source.text, opening.format.name
    begin = source.skip(mark.end(), _BLANK)
    ends = (opening.mark, *opening.closes)
    limit = min(source.find(end, begin) for end in ends)
    for reading in opening.reading:
        found = _READERS[reading](source, mark, begin, limit, opening)
        if found.calls:
            break
    else:
        if not opening.format.certain:
            return Found((), mark.end())
        cut = limit == len(text) or begin >= len(text)
        reason = TRUNCATED if cut else "there is no call behind its mark"
        return Found((source.failed(reason, name),), limit)
    if is_unbalanced(source, found, limit, opening.mark, opening.closes):
        found.calls = (source.failed(UNBALANCED, name),)
    return _closed(source, found, opening)


def is_unbalanced(
    source: Source, found: Found, limit: int, mark: str, closes: tuple[str, ...]
) -> bool:
    """Whether brackets were put in front of a tag that need not be the end of the object.

    The tag may stand in a string whose quotes are broken: so it does if what comes next is not
    this object's closing tag, or if one more closing tag comes than was opened.
    """
    if found.end != limit or limit == len(source.text) or not found.calls or found.whole:
        return False
    close = next((each for each in closes if source.text.startswith(each, limit)), None)
    if found.calls[-1].error or close is None:
        return found.calls[-1].error is None
    behind = limit + len(close)
    return source.text.find(close, behind, source.find(mark, behind)) >= 0


def _closed(source: Source, found: Found, opening: Opening) -> Found:
    """Step behind what closes the calls; note on the last call that it lacks."""
    found.read_to = found.understood
    end = source.skip(found.end, opening.closing)
    *others, last = found.calls
    if end > found.end or last.error is not None or not opening.must_close:
        found.end = end
        return found
    closes = [(source.find(close, end), close) for close in opening.closes]
    place, close = min(closes)
    if place < min(source.find(opening.mark, end), len(source.text)):
        found.calls, found.end = (*others, last.with_repairs(REPAIRED_JSON)), place + len(close)
    else:
        found.calls = (*others, last.with_repairs(MISSING_CLOSE_TAG))
    return found


def _objects(source: Source, _: re.Match[str], begin: int, limit: int, opening: Opening) -> Found:
    if not source.text.startswith(("{", "["), begin):
        return Found((), begin)
    return objects(source, begin, limit, opening.format.name)


def _named(source: Source, mark: re.Match[str], _: int, limit: int, opening: Opening) -> Found:
    return headed_object(source, _head(source, mark, opening), limit, opening.format.name)


def _head(source: Source, mark: re.Match[str], opening: Opening) -> re.Match[str] | None:
    """What stands between a mark and the arguments, if it is what the format has there."""
    pattern = opening.format.head_pattern
    return pattern.match(source.text, mark.end()) if pattern else None


def _channel(source: Source, mark: re.Match[str], _: int, limit: int, opening: Opening) -> Found:
    """A message of a channel to a tool; its recipient stands behind the channel, or before it."""
    head = _head(source, mark, opening)
    if head is None or head.group(1):
        return headed_object(source, head, limit, opening.format.name)
    before = _RECIPIENT.search(source.text, max(0, mark.start() - 120), mark.start())
    if before is None:
        return Found((), mark.end())
    return object_of(source, before.group(1), head.end(), limit, opening.format.name)


def _python(source: Source, _: re.Match[str], begin: int, __: int, opening: Opening) -> Found:
    return read_python_calls(source, begin, opening.format.name)


def _tags(source: Source, mark: re.Match[str], _: int, __: int, opening: Opening) -> Found:
    if opening.tags is None:
        return Found((), mark.end())
    return read_function(source, mark.start(), opening.tags)


def _pairs(source: Source, _: re.Match[str], begin: int, limit: int, opening: Opening) -> Found:
    """A name, then keys and values in tags, or nothing."""
    tags, text = opening.tags, source.text
    called = _CALLED.match(text, begin)
    if called is None or tags is None:
        return Found((), begin)
    if called.end() == len(text):
        return Found((source.failed(TRUNCATED, tags.kind),), limit)
    if not text.startswith((tags.opens[0], tags.ends[0]), called.end()):
        return Found((), begin)
    return read_arg_keys(source, called.group(1), called.end(), tags)


def _braces(source: Source, _: re.Match[str], begin: int, __: int, opening: Opening) -> Found:
    return read_braces(source, begin, opening.format.quote, opening.format.name)


_Reader = Callable[[Source, re.Match[str], int, int, Opening], Found]
_READERS: Final[dict[str, _Reader]] = {
    "objects": _objects,
    "keyed": _objects,
    "named": _named,
    "channel": _channel,
    "python": _python,
    "tags": _tags,
    "pairs": _pairs,
    "braces": _braces,
}
