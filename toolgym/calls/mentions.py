"""Texts that speak of a call, or of a format, and make none.

A model explains what it could do, repeats the format that it was shown, or quotes a message. So a
mark that stands in quotation marks within a sentence opens nothing, and neither does what follows
up to the closing quotation mark; a mark within a sentence behind which no call stands is only
named; and a placeholder such as `<function-name>`, where the name belongs, documents a format.

What is looked at around a mark is bounded, so a text of nothing but marks takes no longer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from toolgym.calls.alternation import LatePattern, branches
from toolgym.calls.families import CONTROLS
from toolgym.calls.source import RawCall
from toolgym.tools import ToolSpec

_LOOK_BACK = 200  # characters of the line before a mark
_LOOK_AHEAD = 4_000  # characters up to a closing quotation mark
_WORD = re.compile(r"[^\W\d_]{2}")
_CONTROL = "|".join(branches(CONTROLS))
_WITH_WORD = LatePattern(rf"(?:{_CONTROL})\w*+")
_ONLY_CONTROL = LatePattern(rf"(?:{_CONTROL}|\s++|\w++)*+")
_BEHIND = r"(?=[\s.;:!?)]|,(?! [\"'])|\Z)"
_CLOSING = {
    "`": re.compile(r"(?<!`)`(?!`)"),
    '"': re.compile(rf"(?<=[>\])}}\u273f])\"{_BEHIND}"),
    "'": re.compile(rf"(?<=[>\])}}\u273f])'{_BEHIND}"),
    "\u201c": re.compile("\u201d"),
    "\u2018": re.compile("\u2019"),
    "\u00ab": re.compile("\u00bb"),
}
_BODY = re.compile(r"\s*+(?:[{\[<`(]|[\w.\-/:]++\s*+(?:json\s*+)?+[({<\[]|\Z)")
_STAND_IN = (
    r"(?:<[a-z][\w \-]{1,40}>|\{[a-z][\w ]{0,40}\}|\$\{?\w{1,40}|\.{3}|\u2026|x{3,}|"
    r"(?:(?:my|your|the|some|example)[_ \-])?(?:tool|function)[_ \-]?name(?:[_ \-]?\d)?|"
    r"(?:your|example)[_ \-]\w{1,30})(?!\w)"
)
_PLACEHOLDER = re.compile(_STAND_IN, re.IGNORECASE)
_TEMPLATE = LatePattern(
    rf"[\s\[{{\"'`:(]*+(?:python\s++|json\s++|functions?(?:\.|\n|{_CONTROL})|call:\s*+|<function=)?+[{{\s]*+"
    rf"(?:[\"']?(?:name|tool_name|tool|function)[\"']?\s*+[:=]\s*+[\"']?)?+{_STAND_IN}",
    re.IGNORECASE,
)


def _is_sentence(text: str, place: int, floor: int) -> bool:
    """Whether words stand on the line before a place, as far back as where the last call ended.

    A word directly behind a text of control belongs to that: `<|open|>tools<|sep|>`.
    """
    begin = max(floor, place - _LOOK_BACK)
    line = text[max(begin, text.rfind("\n", begin, place) + 1) : place]
    return _WORD.search(_WITH_WORD.compiled.sub("", line)) is not None


def quotation_end(text: str, place: int, floor: int) -> int:
    """Where the quotation within a sentence ends that a mark stands in; -1 if it stands in none.

    Args:
        place: Where the mark begins; between it and the quotation mark only others may stand.
        floor: Where the call before it ends.
    """
    begin = max(floor, place - _LOOK_BACK)
    if not text[begin:place].strip():
        return -1
    opening = max(text.rfind(sign, begin, place) for sign in _CLOSING)
    if opening < 0 or not _ONLY_CONTROL.compiled.fullmatch(text, opening + 1, place):
        return -1
    if not _is_sentence(text, opening, floor):
        return -1
    closing = _CLOSING[text[opening]].search(text, place, place + _LOOK_AHEAD)
    return closing.end() if closing else -1


def is_mention(text: str, mark: re.Match[str], floor: int, calls: Sequence[RawCall]) -> bool:
    """Whether a mark is only spoken of: no call could be read, and none was begun.

    Args:
        floor: Where the call before it ends.
        calls: What was read behind the mark.
    """
    if len(calls) != 1 or calls[0].error is None:
        return False
    return not _BODY.match(text, mark.end()) and _is_sentence(text, mark.start(), floor)


def is_template(text: str, place: int) -> bool:
    """Whether a call that begins at a place has a placeholder where its name belongs."""
    return _TEMPLATE.compiled.match(text, place) is not None


def is_placeholder(call: RawCall, specs: Mapping[str, ToolSpec]) -> bool:
    """Whether a call is an example of the format: its name stands for a name."""
    name = call.name
    if call.error is not None or not isinstance(name, str) or name in specs:
        return False
    return len(name) <= 80 and _PLACEHOLDER.fullmatch(name) is not None
