"""Calls in tags: `<function=f><parameter=x>...` (Qwen 3.5, Nemotron) and `<arg_key>` pairs (GLM).

Both write each value as bare text between tags. The text is taken as it stands, but for one line
break at either end; what type it has is for the binder to find out. No character is escaped, so a
value can hold the very tag that closes it. These rules keep it whole or make it an error:

* A value ends at the first closing tag that is followed by what may follow a value: the next
  parameter, the end of the call, the end of the text. Other closing tags in it are a part of it.
* If an opening tag of the format stands before that end, or two closing tags side by side, the
  value could also end earlier. That is an error, not a guess.
* A closing tag may be missing only where nothing else follows, and not inside of quotes.
* A closing tag of a value behind the calls, that none of them opened, makes them an error
  (`toolgym.calls.formats`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from toolgym.calls import errors as call_errors
from toolgym.calls.mend import CONFLICT, THOUGHT, TRUNCATED
from toolgym.calls.repairs import MISSING_CLOSE_TAG, REPAIRED_JSON, Repair
from toolgym.calls.source import Found, RawCall, Source, as_read
from toolgym.calls.tag_sets import FUNCTION, GLM, TAG_SETS, Tags

MAX_PARAMETERS = 64
STRAY = "what stands in it is no parameter"
UNCLEAR = "it is not clear where a value of it ends, as tags stand inside or behind it"


# Possessive throughout: a run of blanks is never divided between two places that may take it.
_ANY_MARK = re.compile(
    r"\s*+(?:" + "|".join(dict.fromkeys(tags.marks.pattern for tags in TAG_SETS)) + ")"
)
_HALF_CLOSED = re.compile(r"</|/\w*(?:value|param)\w*>|<[|/\uff5c]")  # a damaged tag, perhaps
_BLANK = re.compile(r"\s*+")
_QUOTES = re.compile(r"(?:[^'\"]++|(?<=\w)'(?=\w)|'[^']*+'|\"[^\"]*+\")*+")


@dataclass
class _Values:
    """The values of one call as far as they were read: `problem` tells why no further.

    Then `resume` is where the next call may begin; None if the end of the value is nowhere.
    """

    values: dict[str, str]
    end: int
    problem: str = ""
    resume: int | None = None
    repairs: tuple[Repair, ...] = ()
    last: str = ""


def read_function(source: Source, start: int, tags: Tags = FUNCTION) -> Found:
    """The call that begins with the tag of a function at `start`."""
    text, close = source.text, tags.ends[0]
    head = tags.head.compiled.match(text, start) if tags.head else None
    if head is None:
        reason = TRUNCATED if text.find(">", start) < 0 else "its function tag has no name"
        return _failed(source, "", reason, tags.kind, start, start + len(tags.call))
    name = head.group(1)
    if head.group(2):  # `<invoke name="tables"/>`
        return Found((RawCall(name, {}, tags.kind, textual=True),), head.end(), start)
    begin = source.skip(head.end(), _BLANK)
    if text.startswith("{", begin):
        return _json_body(source, name, start, begin, tags)
    read = _parameters(source, head.end(), tags)
    if read.problem:
        return _stopped(source, name, read, tags.kind, start)
    call = RawCall(name, read.values, tags.kind, read.repairs, textual=True)
    end = source.skip(read.end, _BLANK)
    if text.startswith(close, end) and not read.repairs:
        return Found((call,), end + len(close), start)
    if read.values:
        return _unclosed(source, call, read, tags, start)
    if end == len(text) or _is_half_tag(text, end):
        return _failed(source, name, TRUNCATED, tags.kind, start, len(text))
    if not text.startswith((*tags.ends, *tags.opens), end):
        return _failed(source, name, STRAY, tags.kind, start, end)
    return _stepped_over(source, call, start, end, tags)


def read_arg_keys(source: Source, name: str, start: int, tags: Tags = GLM) -> Found:
    """The call whose pairs of keys and values begin at `start`, behind its name."""
    text = source.text
    read = _parameters(source, start, tags)
    if read.problem:
        return _stopped(source, name, read, tags.kind, start)
    call = RawCall(name, read.values, tags.kind, read.repairs, textual=True)
    end = source.skip(read.end, _BLANK)
    if text.startswith(tags.ends[0], end) and not read.repairs:
        return Found((call,), read.end, start)
    if not read.values:
        return _failed(source, name, TRUNCATED, tags.kind, start, len(text))
    return _unclosed(source, call, read, tags, start)


def _unclosed(source: Source, call: RawCall, read: _Values, tags: Tags, start: int) -> Found:
    """A call that lacks a closing tag: forgiven at the end of the message only."""
    text = source.text
    if not tags.end.compiled.match(text, read.end):
        cut = not read.repairs and _is_half_tag(text, source.skip(read.end, _BLANK))
        reason = TRUNCATED if cut else UNCLEAR
        return _failed(source, call.name, reason, tags.kind, start, len(text), start)
    if _is_open(read.last):
        return _failed(source, call.name, TRUNCATED, tags.kind, start, len(text), read.end)
    call = replace(call, whole=False, unfinished=True)
    closed = text.startswith(tags.ends[0], end := source.skip(read.end, _BLANK))
    if tags.head and not read.repairs:
        call = call.with_repairs(MISSING_CLOSE_TAG)
    return Found((call,), end + len(tags.ends[0]) if closed and tags.head else read.end, start)


def _is_open(value: str) -> bool:
    """Whether a text stops inside of quotes; an apostrophe between letters opens none."""
    taken = _QUOTES.match(value)
    return taken is not None and taken.end() < len(value)


def _is_half_tag(text: str, position: int) -> bool:
    return text.startswith("<", position) and text.find(">", position) < 0


def _json_body(source: Source, name: str, start: int, begin: int, tags: Tags) -> Found:
    """An object instead of tags, as Llama and Functionary have: `<function=f>{"x": ...}`."""
    text = source.text
    stop = tags.stop.compiled.search(text, begin)
    read = source.json.read(begin, stop.start() if stop else len(text))
    if read.problem:
        return _failed(source, name, read.problem, tags.kind, start, read.end)
    call = as_read(RawCall(name, read.value, tags.kind, read.repairs), read)
    end = source.skip(read.end, _BLANK)
    if text.startswith(tags.ends[0], end):
        return Found((call,), end + len(tags.ends[0]), start)
    return _stepped_over(source, call, start, read.end, tags)


def _stepped_over(source: Source, call: RawCall, start: int, end: int, tags: Tags) -> Found:
    """A call without its closing tag where it should be: it comes later, or not at all."""
    stop = tags.stop.compiled.search(source.text, end)
    if stop and stop.group() == tags.ends[0]:
        return Found((call.with_repairs(REPAIRED_JSON),), stop.end(), start, end)
    return Found((call.with_repairs(MISSING_CLOSE_TAG),), end, start)


def _parameters(source: Source, start: int, tags: Tags) -> _Values:
    """The values that follow one another from `start`."""
    text = source.text
    read = _Values({}, start)
    for _ in range(MAX_PARAMETERS):
        opening = tags.opening.compiled.match(text, read.end)
        if opening is None:
            begun = source.skip(read.end, _BLANK)
            opened = text.startswith(tags.opens[0], begun) and not text.startswith(tags.ends, begun)
            if opened:  # the tag of a parameter, but no whole one
                cut = text.find(tags.close, begun) < 0
                read.problem = TRUNCATED if cut else "a tag of a parameter has no name"
            return read
        _value(source, opening.end(), opening.group(1), tags, read)
        if read.problem or read.repairs:
            return read
    read.problem, read.resume = "it has too many parameters", read.end
    return read


def _value(source: Source, begin: int, key: str, tags: Tags, read: _Values) -> None:
    """Read one value and step behind it."""
    text = source.text
    stop, end, problem = _end_of_value(text, begin, tags)
    if not problem and source.json.is_cut(begin, stop):
        problem = THOUGHT
    value = text[begin:stop]
    if not problem and end == stop and _HALF_CLOSED.search(value):
        problem = UNCLEAR
    if value.startswith("\n") and (value.endswith("\n") or end == stop):
        value = value[1:].removesuffix("\n")  # a line of its own, as Qwen's template has it
    opening, closing = tags.quotes
    if opening and value.startswith(opening) and value.endswith(closing):
        value = value[len(opening) : -len(closing)]
    if not problem and read.values.setdefault(key, value) != value:
        problem = CONFLICT
    read.problem, read.resume = problem, end if end > begin else None
    if problem in (UNCLEAR, TRUNCATED):
        return
    read.last, read.end = value, end
    if end == stop:
        read.repairs = (MISSING_CLOSE_TAG,)


def _end_of_value(text: str, begin: int, tags: Tags) -> tuple[int, int, str]:
    """Where a value ends, where its closing tag ends, and the problem if that is not clear."""
    first: re.Match[str] | None = None
    doubtful = False
    for mark in tags.marks.compiled.finditer(text, begin):
        tag = mark.group()
        closes = tag.startswith(tags.close) and tag not in tags.ends
        if closes and tags.follow.compiled.match(text, mark.end()):
            return mark.start(), mark.end(), UNCLEAR if doubtful else ""
        first = first or mark
        doubtful = doubtful or tag in tags.opens or bool(_ANY_MARK.match(text, mark.end()))
    if first is None:
        return begin, begin, TRUNCATED
    closes = first.group() in tags.ends
    if closes and tags.end.compiled.match(text, first.start()):
        return first.start(), first.start(), ""
    return begin, begin, UNCLEAR if closes else TRUNCATED


def bare_text_error(source: Source, name: str, reason: str, kind: str) -> RawCall:
    """A call in tags that cannot be read; `reason` is TRUNCATED or half a sentence."""
    error = call_errors.unreadable(reason == TRUNCATED, reason, source.specs)
    return RawCall(name, {}, kind, error=error, textual=True)


def _stopped(source: Source, name: str, read: _Values, kind: str, start: int) -> Found:
    """A call that could be read up to one of its values only."""
    end = len(source.text) if read.resume is None else read.resume
    return _failed(source, name, read.problem, kind, start, end, read.end)


def _failed(
    source: Source, name: str, reason: str, kind: str, start: int, end: int, read_to: int = -1
) -> Found:
    """A call that cannot be read; `read_to` is where its last whole value ends."""
    call = bare_text_error(source, name, reason, kind)
    return Found((call,), end, start, start if read_to < 0 else read_to)
