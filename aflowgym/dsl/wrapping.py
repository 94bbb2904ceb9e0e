"""What wraps a whole text: an object of JSON around a workflow, and quotes within it.

A workflow in JSON, `{"workflow": "Custom"}`, stands in another alphabet, so it is decoded, with the
place of every character kept. The instructions of operators are words that nothing else may read or
change; `masked` hides them from whatever looks for tags, labels and marks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from aflowgym.operators.catalogue import Registry

#: Stands for a character of an instruction.
MASK = "\ue000"
_INSTRUCTION = re.compile(
    r'(?<![\w-])([A-Za-z_][\w-]*+)(\s*[(（]\s*)("(?:[^"\\\n]|\\[^\n])*+")(?=\s*[)）])'
)
_STRING = r"""(?:"((?:[^"\\]|\\.)*+)"|'([^'"\\]*+)')"""
_PAIR = re.compile(rf"\s*{_STRING}\s*:\s*{_STRING}\s*(,\s*\}}|,|\}})", re.S)
_ESCAPE = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\(.)|[^\\]",
    re.S,
)
_MEANS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_KEYS = frozenset({"workflow", "dsl"})


def masked(text: str, operators: Registry) -> str:
    """The text with every quoted instruction of an operator hidden, character for character."""

    def hidden(found: re.Match[str]) -> str:
        if operators.resolve(found[1]) is None:
            return found[0]
        return found[1] + found[2] + MASK * len(found[3])

    return _INSTRUCTION.sub(hidden, text) if '"' in text else text


@dataclass(frozen=True, slots=True)
class Held:
    """The workflow that an object of JSON holds.

    Args:
        text: What the string says.
        places: Where in the text of the object each of its characters stands; one more for its end.
        others: The other values of the object.
    """

    text: str
    places: tuple[int, ...]
    others: tuple[str, ...]


def held(text: str) -> Held | None:
    """What a text holds that is an object of strings, one of them called workflow or dsl."""
    at = len(text) - len(text.lstrip())
    if not text.startswith("{", at):
        return None
    at += 1
    said: list[str] = []
    inner: list[Held] = []
    closed = False
    while not closed:
        found = _PAIR.match(text, at)
        if found is None:
            return None
        value = _decoded(found, 3 if found[3] is not None else 4)
        if value is None:
            return None
        key = found[1] if found[1] is not None else found[2]
        if key.lower() in _KEYS:
            inner.append(value)
        else:
            said.append(value.text)
        at, closed = found.end(), found[5][-1] == "}"
    if len(inner) != 1 or text[at:].strip():
        return None
    return Held(inner[0].text, inner[0].places, tuple(said))


def _decoded(found: re.Match[str], group: int) -> Held | None:
    """A string of JSON, read; None if it has an escape that JSON has not."""
    chars: list[str] = []
    places: list[int] = []
    at, end = found.span(group)
    while at < end:
        each = _ESCAPE.match(found.string, at, end)
        if each is None or (each[4] is not None and each[4] not in _MEANS):
            return None
        if each[1] is not None:
            both = bytes.fromhex(each[1]) + bytes.fromhex(each[2])
            chars.append(both.decode("utf-16-be"))
        elif each[3] is not None:
            chars.append(chr(int(each[3], 16)))
        else:
            chars.append(_MEANS[each[4]] if each[4] is not None else each[0])
        places.append(at)
        at = each.end()
    return Held("".join(chars), (*places, end), ())
