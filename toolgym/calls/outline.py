"""The brackets of a text that is no valid JSON: where its first value ends, or what is missing.

Tokens are taken one after another and none is looked at twice, so the time grows with the length
of the text and with nothing else. The repetitions are possessive (`*+`): they never give back what
they took, so a string without its end costs one look at the rest of the text. Three quotes that
are not closed where a value could begin are an open string; elsewhere they are looked for once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_NESTING = 60


@dataclass(slots=True)
class Outline:
    """The brackets of a text: where the first value ends, or how it stops short of that.

    Attributes:
        end: Position behind the value, or None if brackets stay open.
        closers: The brackets that are missing.
        complete: With brackets open: whether the text stops behind a whole value of an object.
        depth: The deepest nesting that was met.
        open_at: Where the string begins inside of which the text stops; -1 if it does not.
    """

    end: int | None
    closers: str = ""
    complete: bool = False
    depth: int = 0
    open_at: int = -1


THREE_DOUBLE = r'"""(?:[^"\\]++|\\.|"(?!""))*+"""'
THREE_SINGLE = r"'''(?:[^'\\]++|\\.|'(?!''))*+'''"
DOUBLE = r'"(?:[^"\\]++|\\.)*+"'
SINGLE = r"'(?:[^'\\]++|\\.)*+'"
_QUOTED = {
    mark: re.compile(pattern, re.DOTALL)
    for mark, pattern in (
        ('"""', THREE_DOUBLE),
        ("'''", THREE_SINGLE),
        ('"', DOUBLE),
        ("'", SINGLE),
    )
}
_TOKEN = re.compile(r"\s++|[{}\[\](),:]|[^\s\"'{}\[\](),:]++|.", re.DOTALL)
_CLOSER = {"{": "}", "[": "]", "(": ")"}
_QUOTES = "\"'"
_BEFORE_STRING = "{[(,:="


def outline(text: str) -> Outline:
    """Follow the brackets from the start of `text`, strings in double or single quotes apart."""
    stack: list[str] = []
    deepest = 0
    before, last = "", "{"  # the last two tokens, blanks left out
    position, blank = 0, False
    unclosed: set[str] = set()
    length, match = len(text), _TOKEN.match
    while position < length:
        first = text[position]
        if first in _QUOTES:
            token = _string(text, position, last, unclosed)
            if not token:
                return Outline(None, "".join(reversed(stack)), False, deepest, position)
        else:
            token = match(text, position).group()  # type: ignore[union-attr]
        position += len(token)
        blank = token.isspace()
        if blank:
            continue
        if token in _CLOSER:
            stack.append(_CLOSER[token])
            deepest = max(deepest, len(stack))
            if deepest > MAX_NESTING:
                return Outline(None, "", False, deepest)
        elif token in "}])" and stack:
            stack.pop()
            if not stack:
                return Outline(position, "", True, deepest)
        before, last = last, token[-1:] if token[-1] in "=" else token
    return Outline(None, "".join(reversed(stack)), _whole(stack, before, last, blank), deepest)


def _string(text: str, position: int, last: str, unclosed: set[str]) -> str:
    """The string, or the apostrophe, at a position; empty if the string is not closed."""
    first = text[position]
    if first == "'" and last not in _BEFORE_STRING:
        return first  # an apostrophe, not the start of a string
    three = first * 3
    if text.startswith(three, position) and three not in unclosed:
        found = _QUOTED[three].match(text, position)
        if found:
            return found.group()
        if last in _BEFORE_STRING:
            return ""
        unclosed.add(three)
    found = _QUOTED[first].match(text, position)
    return found.group() if found else ""


def _whole(stack: list[str], before: str, last: str, blank: bool) -> bool:
    """Whether a text with open brackets stops behind a whole value, outside any list."""
    if not stack or "]" in stack:
        return False
    if last in ("}", "]", ")"):
        return True
    if last[0] in "\"'":
        return before in (":", "=") or (stack == [")"] and before in ("(", ","))
    return blank and before in (":", "=", "(") and last not in (",", ":", "=", "{", "[", "(")
