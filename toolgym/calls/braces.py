"""Calls in the notation of Gemma 4 and FunctionGemma: `call:f{x:<|"|>text<|"|>,n:5,l:[1,2]}`.

Texts stand between two marks of the format, which nothing escapes; keys, numbers, `true`, `false`
and `null` stand bare. A bare word, or a text in JSON's quotes, is read as text and noted as a
repair. One pass, each character once.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from toolgym.calls.mend import CONFLICT, MAX_NESTING, THOUGHT, TRUNCATED
from toolgym.calls.repairs import REPAIRED_JSON
from toolgym.calls.source import Found, RawCall, Source

_HEAD = re.compile(r"call:\s*+([\w.\-/:]++)\s*+(?=\{)")
_BLANK = re.compile(r"\s*+")
_KEY = re.compile(r"([^\s:,{}\[\]<>\"'][^:,{}\[\]<>\"'\n]*+):")
_BARE = re.compile(r"[^,:{}\[\]<>\"'\n]++")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?+(?:[eE][+-]?\d++)?+")
_CONSTANTS = {"true": True, "false": False, "null": None}
_JSON = json.JSONDecoder()
_LONGEST_NUMBER = 300


class _Broken(ValueError):
    """It cannot be read, for a reason (half a sentence, or TRUNCATED)."""


def read_braces(source: Source, begin: int, quote: str, kind: str) -> Found:
    """The call that begins at a position; none if there is no head of one.

    Args:
        quote: The mark on both sides of a text.
        kind: The name of the format.
    """
    head = _HEAD.match(source.text, begin)
    if head is None:
        return Found((), begin)
    reading = _Braces(source, quote)
    try:
        arguments, end = reading.members(head.end(), 0)
    except _Broken as problem:
        return Found((source.failed(str(problem), kind),), len(source.text))
    if source.json.is_cut(begin, end):
        return Found((source.failed(THOUGHT, kind),), end)
    repairs = (REPAIRED_JSON,) if reading.mended else ()
    return Found((RawCall(head.group(1), arguments, kind, repairs),), end)


class _Braces:
    """The values of one call; `mended` tells whether something was not as the format has it."""

    def __init__(self, source: Source, quote: str) -> None:
        self.mended = False
        self._source, self._text, self._quote = source, source.text, quote

    def members(self, position: int, depth: int) -> tuple[dict[str, Any], int]:
        """The object whose brace stands at a position, and where it ends."""
        members: dict[str, Any] = {}
        position = self._next(position + 1)
        while not self._text.startswith("}", position):
            key, position = self._key(position)
            value, position = self._value(self._next(position), depth + 1)
            if members.setdefault(key, value) != value:
                raise _Broken(CONFLICT)
            position = self._separated(position, "}")
        return members, position + 1

    def _entries(self, position: int, depth: int) -> tuple[list[Any], int]:
        entries: list[Any] = []
        position = self._next(position + 1)
        while not self._text.startswith("]", position):
            value, position = self._value(position, depth + 1)
            entries.append(value)
            position = self._separated(position, "]")
        return entries, position + 1

    def _next(self, position: int) -> int:
        position = self._source.skip(position, _BLANK)
        if position >= len(self._text):
            raise _Broken(TRUNCATED)
        return position

    def _separated(self, position: int, close: str) -> int:
        """Behind a comma, or at the bracket that closes."""
        position = self._next(position)
        if self._text.startswith(",", position):
            return self._next(position + 1)
        if not self._text.startswith(close, position):
            raise _Broken(f"there is neither a comma nor {close} behind a value")
        return position

    def _key(self, position: int) -> tuple[str, int]:
        bare = _KEY.match(self._text, position)
        if bare:
            return bare.group(1).rstrip(), bare.end()
        if not self._text.startswith((self._quote, '"'), position):
            raise _Broken("it has a value without a key")
        key, position = self._quoted(position)
        self.mended = True
        position = self._next(position)
        if not self._text.startswith(":", position):
            raise _Broken("it has a key without a value")
        return key, position + 1

    def _quoted(self, position: int) -> tuple[str, int]:
        if self._text.startswith(self._quote, position):
            begin = position + len(self._quote)
            end = self._source.find(self._quote, begin)
            if end == len(self._text):
                raise _Broken(TRUNCATED)
            return self._text[begin:end], end + len(self._quote)
        try:
            value, end = _JSON.raw_decode(self._text, position)
        except ValueError as problem:
            raise _Broken(TRUNCATED) from problem
        self.mended = True
        return str(value), end

    def _value(self, position: int, depth: int) -> tuple[Any, int]:
        if depth > MAX_NESTING:
            raise _Broken("it is nested too deeply")
        if self._text.startswith("{", position):
            return self.members(position, depth)
        if self._text.startswith("[", position):
            return self._entries(position, depth)
        if self._text.startswith((self._quote, '"'), position):
            return self._quoted(position)
        bare = _BARE.match(self._text, position)
        if bare is None:
            raise _Broken("it has a key without a value")
        if bare.end() == len(self._text):
            raise _Broken(TRUNCATED)
        return self._bare(bare.group().strip()), bare.end()

    def _bare(self, word: str) -> Any:
        if word in _CONSTANTS:
            return _CONSTANTS[word]
        if len(word) <= _LONGEST_NUMBER and _NUMBER.fullmatch(word):
            number = json.loads(word)
            if math.isfinite(number):
                return number
        self.mended = True
        return word
