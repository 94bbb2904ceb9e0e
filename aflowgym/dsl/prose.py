"""What the tokens of a text are, where it is not a workflow but may be about one.

The words of a sentence that names operators, such as `I use Review because it is cheap`, are of a
few sorts: names, words that could be names in small letters, words that lead on (`then`, `until`),
and plain ones. Signs are those of the language and of mathematics; other marks say nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from aflowgym.dsl.tokens import Token
from aflowgym.operators.catalogue import DONE_WORDS, Registry

Sort = Literal["name", "loose", "plain", "on", "int", "sign", "stop", "pause", "mark"]

_SIGNS = frozenset('+|&/\\<>^~=@%{}"·∘•▶►[]')
_STOPS = frozenset(".!;。！；…")
_PAUSES = frozenset(",:-–—()")
# Words that lead from one step to the next, or say when and how often.
_ON = frozenset({
    "then", "and", "or", "plus", "next", "after", "afterwards", "before", "followed", "finally",
    "lastly", "again", "also", "else", "otherwise", "if", "when", "unless", "until", "while",
    "repeat", "repeated", "loop", "twice", "thrice", "times", "time", "rounds", "x", "step",
    "stage", "phase", "nor", "second", "third",
})  # fmt: skip


class Item(NamedTuple):
    """A token of prose: its sort, and the operator that it may name; a string that names some.

    The sort is `name`; `loose` for a name in small letters, which may be a word, and for `done`;
    `on` for a word that leads on; `plain` for any other word; `int`; `sign`; `stop` for the end of
    a sentence; `pause` for what divides one; `mark` for what says nothing.
    """

    sort: Sort
    token: Token
    name: str = ""

    @property
    def word(self) -> str:
        """The token in small letters."""
        return self.token.text.lower()


def items_of(tokens: Sequence[Token], text: str, operators: Registry) -> list[Item]:
    """The tokens with their sorts, those left out that say nothing."""
    found = []
    for at, token in enumerate(tokens):
        after = tokens[at + 1] if at + 1 < len(tokens) else None
        if token.kind == "word":
            item = _word(tokens[at : at + 3], text, operators)
        elif token.kind == "string":
            named = any(map(operators.resolve, re.findall(r"[A-Za-z][\w-]*", token.text)))
            item = Item("sign", token, token.text if named else "")
        elif token.kind == "?":
            asks = after is None or "\n" in text[token.end : after.start]
            named = after is not None and _may_name(tokens[at + 1 : at + 4], text, operators)
            item = Item("stop" if asks or not named else "sign", token)
        elif token.text in _STOPS:
            apart = after is None or after.start > token.end
            before = text[token.start - 1] if token.start else " "
            denies = token.text == "!" and before.isspace()
            item = Item("stop" if apart and not denies else "sign", token)
        else:
            item = Item(_sort(token), token)
        if item.sort != "mark":
            found.append(item)
    return found


def _may_name(tokens: Sequence[Token], text: str, operators: Registry) -> bool:
    if tokens[0].kind == "word":
        return _word(tokens, text, operators).sort in ("name", "loose")
    return tokens[0].kind in "([?:"


def _word(tokens: Sequence[Token], text: str, operators: Registry) -> Item:
    token = tokens[0]
    name = operators.resolve(token.text)
    if name is not None:
        return Item("loose" if token.text.islower() else "name", token, name)
    for count in (3, 2):
        if len(tokens) >= count and all(each.kind == "word" for each in tokens[:count]):
            name = operators.resolve_words(text[token.start : tokens[count - 1].end])
            if name is not None:
                return Item("loose", token, name)
    lower = token.text.lower()
    return Item("loose" if lower in DONE_WORDS else "on" if lower in _ON else "plain", token)


def _sort(token: Token) -> Sort:
    if token.kind == "int":
        return "int"
    if token.kind in ("arrow", "times") or token.text in _SIGNS or token.kind in "[]":
        return "sign"
    if token.kind in "(),:" or token.text in _PAUSES:
        return "pause"
    if token.text.isalpha():
        return "plain"
    return "sign" if unicodedata.category(token.text) in ("Sm", "No") else "mark"


def sentences(items: Iterable[Item], text: str) -> list[list[Item]]:
    """The items by sentence: one ends at a stop and at the end of a line."""
    parts: list[list[Item]] = [[]]
    for item in items:
        last = parts[-1]
        if last and "\n" in text[last[-1].token.end : item.token.start]:
            parts.append([])
        if item.sort == "stop":
            parts.append([])
        else:
            parts[-1].append(item)
    return parts
