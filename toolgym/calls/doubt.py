"""Calls in tags that may have ended too early: a closing tag behind them that none of them opened.

The formats of bare text (`toolgym.calls.xml_forms`) escape nothing, so a value may hold the tags
that end its call, and even a whole call behind them. The value's own closing tag then stands
further on, with no opening one: so the first call in tags, and all that seemed to be calls up to
that tag, may be one value. They become errors. A call with neither is not touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolgym.calls.source import CLOSERS, Found, Shown, Source
from toolgym.calls.xml_forms import UNCLEAR, bare_text_error


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
        last = _closer_between(source, shown, _claimed(read), end)
        if last >= 0:
            break
        end = read.start
    return [
        _doubted(source, read) if k >= first and read.start < last else read
        for k, read in enumerate(reads)
    ]


def _claimed(read: Found) -> int:
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


def _doubted(source: Source, read: Found) -> Found:
    calls = [
        call if call.error else bare_text_error(source, call.name, UNCLEAR, call.format)
        for call in read.calls
    ]
    return replace(read, calls=tuple(calls))
