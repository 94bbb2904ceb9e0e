"""Finding the calls in a text that a model wrote, in any format of the table.

First the tokens that end a turn are taken off, and what is hidden: thinking, and results and turns
that the model made up (`toolgym.calls.hidden`). Then calls behind marks are looked for, from left
to right (`toolgym.calls.marked`), and only in a text without any of them a line that begins as a
call does (`toolgym.calls.lines`).

A mark, or a tag of thinking, inside a value of a call is a part of that value and nothing else:
what a whole call holds is not looked at again. At most `MAX_CALLS` are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from toolgym.calls.alternation import branches
from toolgym.calls.families import FORMATS, FRAMES
from toolgym.calls.hidden import without_hidden
from toolgym.calls.lines import first_line, next_start, read_start, unmarked
from toolgym.calls.marked import MARK, PYTHON_TAG, behind_mark
from toolgym.calls.mend import MAX_MENDED, TRUNCATED
from toolgym.calls.mentions import is_placeholder
from toolgym.calls.source import MAX_CALLS, Found, RawCall, Shown, Source
from toolgym.calls.tag_sets import CLOSERS
from toolgym.calls.xml_forms import UNCLEAR, bare_text_error
from toolgym.tools import ToolSpec

MAX_TRIED = 8 * MAX_MENDED
_TAIL = 120  # characters at the end of a text that may be tokens


class _Calls:
    """The whole calls outside of thoughts, read from left to right, none of them twice.

    What is read in vain costs its length from a budget; when that is spent, no call is looked for.
    """

    def __init__(self, text: str, specs: Mapping[str, ToolSpec]) -> None:
        self._source = Source(text, specs)
        first = first_line(self._source, 0)
        self._first_end = first.understood if first.whole else 0
        self._position = 0
        self._left = MAX_TRIED
        self._mark: re.Match[str] | None = None
        self._searched = -1  # from where on the next mark is known

    def across(self, begin: int, tag: int) -> int | None:
        """Where the call ends that begins at or behind `begin` and holds the tag at `tag`."""
        if begin == 0 and tag < self._first_end:
            return self._first_end
        here = self._position <= begin  # behind a thought, a line begins
        self._position = max(self._position, begin)
        while self._left > 0:
            start = self._next(tag, here=here)
            if start is None:
                return None
            here = False
            if start.group() == PYTHON_TAG:
                self._position, here = start.end(), True
                continue
            reading = self._read(start)
            if reading.whole:
                self._position = reading.understood
            else:
                self._position = start.end() + (start is not self._mark)
                self._left -= max(reading.end - start.start(), 16)
            if reading.whole and reading.understood > tag:
                return reading.understood
        return None

    def _next(self, tag: int, *, here: bool) -> re.Match[str] | None:
        """The next place before the tag where a call could begin: a line, or a mark."""
        if self._searched < 0 or (self._mark and self._mark.start() < self._position):
            self._searched = self._position
            self._mark = MARK.search(self._source.text, self._position)
        mark = self._mark if self._mark and self._mark.start() < tag else None
        end = mark.start() if mark else tag
        return next_start(self._source.text, self._position, end, here=here) or mark

    def _read(self, start: re.Match[str]) -> Found:
        if start is self._mark:
            return behind_mark(self._source, start, self._position)
        return read_start(self._source, start.end())


# Calls in tags that may have ended too early: a closing tag behind them that none of them opened.
#
# The formats of bare text (`toolgym.calls.xml_forms`) escape nothing, so a value may hold the tags
# that end its call, and even a whole call behind them. The value's own closing tag then stands
# further on, with no opening one: so the first call in tags, and all that seemed to be calls up to
# that tag, may be one value. They become errors. A call with neither is not touched.


def in_doubt(source: Source, reads: Sequence[Found], shown: Shown) -> Sequence[Found]:
    """The same calls, but errors where a value may have gone on behind its call.

    A value may also begin, go on, or end in what was taken for thinking.
    """
    text = source.text
    if not shown.begun and not shown.closers and not any(map(text.__contains__, CLOSERS)):
        return reads
    first = next((k for k, read in enumerate(reads) if shown.begun or _is_textual(read)), None)
    if first is None:
        if shown.begun and _closer_between(source, shown, 0, len(source.text)) >= 0:
            return [Found((bare_text_error(source, "", UNCLEAR, "xml"),), len(source.text), 0)]
        return reads
    last, end = -1, len(source.text)
    for read in reversed(reads[first:]):
        last = _closer_between(source, shown, _claimed_end(read), end)
        if last >= 0:
            break
        end = read.start
    return [
        _as_unclear(source, read) if k >= first and read.start < last else read
        for k, read in enumerate(reads)
    ]


def _claimed_end(read: Found) -> int:
    """Up to where the closing tags are known to be its own; an error of another format has none."""
    own = all(call.textual or not call.error for call in read.calls)
    return read.understood if own else read.start


def _closer_between(source: Source, shown: Shown, start: int, end: int) -> int:
    """The last tag between two positions that closes a value, be it in a thought; -1 if none."""
    hidden = [position for position in shown.closers if start <= position <= end]
    return max([*hidden[-1:], *(source.text.rfind(close, start, end) for close in CLOSERS)])


def _is_textual(read: Found) -> bool:
    """Whether a value of the calls was read, or where it ends is not clear."""
    return any(call.textual and (call.arguments or call.error) for call in read.calls)


def _as_unclear(source: Source, read: Found) -> Found:
    calls = [
        call if call.error else bare_text_error(source, call.name, UNCLEAR, call.format)
        for call in read.calls
    ]
    return replace(read, calls=tuple(calls))


STOPS = tuple(
    sorted({stop for entry in FORMATS for stop in entry.stop}, key=lambda stop: (-len(stop), stop))
)
"""The tokens that end a turn, the longest first."""
_SUFFIXED = re.compile(
    r"(</?(?:tool_calls?|tool_sep|arg_key|arg_value|tool_responses?|think)):\w{1,16}>"
)
"""Marks of Hunyuan 3, whose names end in a word of the tokenizer: `<tool_call:6124c78e>`."""
_BEGUN = re.compile(rf"(?:{'|'.join(branches(FRAMES))})\s*\Z")


def find_calls(text: str, specs: Mapping[str, ToolSpec]) -> list[RawCall]:
    """All calls in a text, in their order; an empty list if it holds none."""
    text = without_last_tokens(without_suffixes(text))
    shown = without_hidden(text, specs, lambda: _Calls(text, specs).across)
    if shown.cuts:
        shown.text = without_last_tokens(shown.text)
    source = Source(shown.text, specs, shown.cuts)
    reads = in_doubt(source, _calls_in(source), shown)
    calls = [call for read in reads for call in read.calls if not is_placeholder(call, specs)]
    return calls[:MAX_CALLS] or _begun(source)


def without_last_tokens(text: str) -> str:
    """The text without the tokens that end a turn, which some decoders leave in it."""
    tail = text[-_TAIL:]
    kept = tail.rstrip()
    if not kept.endswith(STOPS):
        return text
    while kept.endswith(STOPS):
        kept = kept[: -len(next(stop for stop in STOPS if kept.endswith(stop)))].rstrip()
    return text[: len(text) - len(tail)] + kept


def without_suffixes(text: str) -> str:
    """The text with the marks of Hunyuan 3 as they are without their suffix."""
    if "<tool_call:" not in text and "<tool_calls:" not in text:
        return text
    return _SUFFIXED.sub(r"\1>", text)


def _begun(source: Source) -> list[RawCall]:
    """A call of which nothing but what opens it was written, as an error."""
    begun = _BEGUN.search(source.text, max(0, len(source.text) - _TAIL))
    return [source.failed(TRUNCATED, "hermes")] if begun else []


def _calls_in(source: Source) -> Sequence[Found]:
    first = first_line(source, 0)
    begin = first.end if first.calls else 0
    reads = _marked(source, begin)
    for read in reads:
        if read.calls:
            return [first, *reads] if first.calls else reads
    spoken_of = [(read.start, read.end) for read in reads]
    reads = unmarked(source, begin, leave_out=spoken_of)
    return [first, *reads] if first.calls else reads


def _marked(source: Source, position: int) -> Sequence[Found]:
    """The calls behind marks; none if every mark stands inside a call that needs none."""
    reads: list[Found] = []
    count = 0
    mark = MARK.search(source.text, position)
    loose = _loose_before(source, mark.start()) if mark and mark.start() > position else []
    while mark is not None and count < MAX_CALLS:
        begin = mark.start()
        over = [end for start, end in loose if start < begin < end] if loose else None
        if over:
            position = over[0]
        else:
            reading = behind_mark(source, mark, position)
            reads.append(reading)
            count += len(reading.calls)
            position = reading.end
        mark = MARK.search(source.text, position)
    return reads


def _loose_before(source: Source, position: int) -> list[tuple[int, int]]:
    """Where calls without a mark begin and end, if one could begin before a position.

    Only what is whole, or belongs to a call up to the very end of the text, counts as a call.
    """
    if next_start(source.text, 0, position) is None:
        return []
    reads = unmarked(Source(source.text, source.specs, source.cuts))  # with a budget of its own
    end = len(source.text)
    open_ends = [(read.open_at, end) for read in reads if read.open_at >= 0]
    return [(read.start, read.understood) for read in reads if read.whole] + open_ends
