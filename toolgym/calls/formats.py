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

A mark, or a tag of thinking, inside a value of a call is a part of that value and nothing else: a
text is read from left to right, and what a whole call holds is not looked at again. At most
`MAX_CALLS` are read (`toolgym.calls.marked` has the recognisers).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from toolgym.calls.doubt import in_doubt
from toolgym.calls.loose import next_start, unmarked
from toolgym.calls.marked import MARK, behind_mark
from toolgym.calls.source import MAX_CALLS, Found, RawCall, Source
from toolgym.calls.thinking import without_thinking
from toolgym.tools import ToolSpec

_LAST_TOKENS = re.compile(
    r"(?:<\|(?:im_end|endoftext|eot_id|eom_id|end_of_text|user|observation)\|>|</s>|<end_of_turn>)\s*$"
)


def find_calls(text: str, specs: Mapping[str, ToolSpec]) -> list[RawCall]:
    """All calls in a text, in their order; an empty list if it holds none."""
    shown = without_thinking(without_last_tokens(text), specs)
    if shown.cuts:
        shown.text = without_last_tokens(shown.text)
    source = Source(shown.text, specs, shown.cuts)
    reads = in_doubt(source, _calls_in(source), shown)
    calls = [call for read in reads for call in read.calls]
    return calls[:MAX_CALLS]


def without_last_tokens(text: str) -> str:
    """The text without the end-of-turn token that some decoders leave in it."""
    tail = text[-64:]
    if not tail.rstrip().endswith(">"):
        return text
    return text[: len(text) - len(tail)] + _LAST_TOKENS.sub("", tail)


def _calls_in(source: Source) -> Sequence[Found]:
    reads = _marked(source)
    for read in reads:
        if read.calls:
            return reads
    return unmarked(source)


def _marked(source: Source) -> Sequence[Found]:
    """The calls behind marks; none if every mark stands inside a call that needs none."""
    reads: list[Found] = []
    count = 0
    mark = MARK.search(source.text)
    loose = _loose_before(source, mark.start()) if mark and mark.start() > 0 else []
    while mark is not None and count < MAX_CALLS:
        begin = mark.start()
        over = [end for start, end in loose if start < begin < end] if loose else None
        if over:
            position = over[0]
        else:
            found = behind_mark(source, mark)
            reads.append(found)
            count += len(found.calls)
            position = found.end
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
