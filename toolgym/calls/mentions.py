"""Texts that speak of a call, or of a format, and make none.

A model explains what it could do, repeats the format that it was shown, or quotes a message. So a
mark in quotation marks within a sentence opens nothing; neither does one within a sentence behind
which no call stands; and a placeholder such as `<function-name>` is no name that anybody meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from toolgym.calls.source import RawCall
from toolgym.tools import ToolSpec

_LOOK_BACK = 200  # characters of the line before a mark
_QUOTES = "`\"'\u201c\u2018\u00ab"
_WORD = re.compile(r"[^\W\d_]{2}")
_BODY = re.compile(r"\s*+(?:[{\[<`(]|[\w.\-/:]++\s*+[({<\[]|\Z)")
_PLACEHOLDER = re.compile(
    r"[<{\[$(]\W*[\w .\-]{0,60}\W*|\.{2,}|\u2026|x{2,}|"
    r"(?:(?:my|your|the|some|example)[_ \-]?)?(?:tool|function|func|fn)"
    r"(?:[_ \-]?name)?(?:[_ \-]?\d)?|"
    r"(?:example[_ \-]?)?(?:tool|function)[_ \-]name|name",
    re.IGNORECASE,
)
_PLACEHOLDERS = re.compile(
    r"\s*+(?:\[\s*+)?+\{\s*+[\"'](?:name|tool_name|tool|function)[\"']\s*+:\s*+"
    r"(?:[\"']?+[<{$][\w .\-]{1,60}[>}]|\.\.\.|\u2026|[\"']\.\.\.[\"'])"
)


def _line_before(text: str, place: int, floor: int) -> str:
    """What stands on the line before a place, as far back as where the last call ended."""
    begin = max(floor, place - _LOOK_BACK)
    return text[max(begin, text.rfind("\n", begin, place) + 1) : place]


def is_quoted(text: str, place: int, floor: int) -> bool:
    """Whether a mark stands in quotation marks within a sentence."""
    if place <= floor or text[place - 1] not in _QUOTES:
        return False
    return bool(_WORD.search(_line_before(text, place, floor).rstrip(_QUOTES)))


def is_mention(text: str, mark: re.Match[str], floor: int, calls: Sequence[RawCall]) -> bool:
    """Whether a mark is only spoken of: no call could be read, and none was begun.

    Args:
        floor: Where the call before it ends.
        calls: What was read behind the mark.
    """
    if len(calls) != 1 or calls[0].error is None:
        return False
    if _PLACEHOLDERS.match(text, mark.end()):
        return True
    return bool(
        not _BODY.match(text, mark.end()) and _WORD.search(_line_before(text, mark.start(), floor))
    )


def is_placeholder(call: RawCall, specs: Mapping[str, ToolSpec]) -> bool:
    """Whether a call is an example of the format: its name stands for a name."""
    name = call.name
    if call.error is not None or not isinstance(name, str) or name in specs:
        return False
    return len(name) <= 80 and _PLACEHOLDER.fullmatch(name) is not None
