"""The text beside a workflow: whether it is prose, or looks like more of the workflow.

The words of a sentence that names operators, such as `I use Review because it is cheap`, are of a
few sorts: names, words that could be names in small letters, words that lead on (`then`, `until`),
and plain ones. Signs are those of the language and of mathematics; other marks say nothing.

A workflow in a text is run only if the rest of the text is prose. The rest is taken sentence by
sentence. A sentence in which an operator's name touches a sign, or that says little but names, is
no prose. What stands in one sentence with the workflow may be a part of it, so it has to be
plainer: no sign, no count, no `then` and its like, and no operator that the workflow has not got,
unless it begins as an explanation does. In doubt it is no prose: an error costs one more try, a
workflow without its end runs as something else.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from aflowgym.dsl.tokens import Token, tokenize
from aflowgym.operators.operator import DONE_WORDS, Operators

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


def items_of(tokens: Sequence[Token], text: str, operators: Operators) -> list[Item]:
    """The tokens with their sorts, those left out that say nothing."""
    items = []
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
            items.append(item)
    return items


def _may_name(tokens: Sequence[Token], text: str, operators: Operators) -> bool:
    if tokens[0].kind == "word":
        return _word(tokens, text, operators).sort in ("name", "loose")
    return tokens[0].kind in "([?:"


def _word(tokens: Sequence[Token], text: str, operators: Operators) -> Item:
    token = tokens[0]
    name = operators.resolve(token.text)
    if name is not None:
        return Item("loose" if token.text.islower() else "name", token, name)
    for count in (3, 2):
        if len(tokens) >= count and all(each.kind == "word" for each in tokens[:count]):
            name = operators.resolve(text[token.start : tokens[count - 1].end])
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


_THEN = frozenset({"then", "next", "finally", "afterwards", "lastly", "plus"})
_LINKS = frozenset({"and", "or", "then", "plus", "nor", "x", "times", "not", "never", "avoid"})
_COUNTED = frozenset({"x", "times", "rounds", "twice", "thrice", "iterations"})
_REPEATS = frozenset({"repeat", "repeated", "loop"})
# Words with which an explanation begins: it may name operators that the workflow has not got.
_REASONS = frozenset({"because", "since", "as", "instead", "rather", "though", "although"})
_EXPLAINS = _REASONS | frozenset({
    "so", "which", "where", "that", "this", "it", "i", "we", "my", "for", "here", "there",
})  # fmt: skip
# Words that stand alone behind a workflow and add nothing to it.
_ALONE = frozenset({"here", "now", "please", "thanks", "ok", "okay", "today"})
# Words behind an operator's name that make an order of it, `Revise it`.
_OBJECTS = frozenset({
    "it", "the", "this", "that", "them", "a", "an", "its", "if", "when", "until", "again", "too",
    "also", "all", "once", "at", "and", "or", "with",
})  # fmt: skip


def more_of_it(
    items: list[Item], own: frozenset[str], start: int | None, end: int | None, text: str
) -> tuple[list[Item], bool] | None:
    """The first part of what stands beside a workflow that looks like more of it.

    Args:
        items: What stands between two mentions of the workflow, before the first or behind the
            last one.
        known: The operators that the workflow has.
        start: Where the mention before it ends; None if there is none.
        end: Where the mention behind it begins; None if there is none.
        text: The whole text.

    Returns:
        The part, and whether it stands before the workflow; None if all is prose.
    """
    parts = sentences(items, text)
    if start is not None:
        parts = _join(parts, start, text)
        if parts[0] and _goes_on(parts[0], own, text, start):
            return parts[0], False
        parts = parts[1:]
    if end is not None and parts:
        last = parts.pop()
        apart = bool(last) and "\n" in text[last[-1].token.end : end]
        if last and not _leads_in(last) and _begins(last, own, apart):
            return last, True
        parts.append(last)
    for part in parts:
        if part and _no_prose(part, own, behind=start is not None):
            return part, start is None
    return None


def _join(parts: list[list[Item]], start: int, text: str) -> list[list[Item]]:
    """The parts, the first of them what stands in one sentence with the workflow, or nothing."""
    if len(parts) > 1 and parts[0] and all(item.sort == "pause" for item in parts[0]):
        parts = [parts[0] + parts[1], *parts[2:]]
    first = next((item for item in parts[0] if item.sort != "pause"), None)
    if first is None or "\n" not in text[start : first.token.start]:
        return parts
    lines = text[start : first.token.start].split("\n")
    small = first.sort in ("plain", "loose", "on") and first.token.text.islower()
    next_line = all(line.strip() for line in lines[1:-1])
    goes_on = next_line and (small or first.sort in ("sign", "int"))
    if goes_on or first.token.kind in ("arrow", "times", "?"):
        return parts
    return [[], *parts]


def _names(items: Sequence[Item]) -> list[Item]:
    return [item for item in items if item.sort == "name"]


def _new(items: Sequence[Item], own: frozenset[str]) -> bool:
    return any(item.name not in own for item in _names(items))


def _plain(items: Sequence[Item]) -> int:
    return sum(item.sort == "plain" for item in items)


def _goes_on(part: list[Item], own: frozenset[str], text: str, start: int) -> bool:
    """Whether the rest of the workflow's own sentence may be more of it."""
    at = next((at for at, item in enumerate(part) if item.sort != "pause"), len(part))
    pauses, words = part[:at], part[at:]
    explains = bool(words) and words[0].word in _EXPLAINS
    explains = explains and [item.word for item in words[:2]] != ["as", "well"]
    if any(item.token.kind in "()" for item in pauses):
        touches = pauses[0].token.start == start
        if touches or not explains:
            return True
    if not words:
        return False
    first = words[0]
    if any(mark in text[start : first.token.start] for mark in "'‘“«"):
        return True
    if first.sort in ("sign", "int", "on", "loose") or any(item.sort == "sign" for item in words):
        return True
    if first.sort == "name" and (not pauses or first.name not in own):
        return True
    if first.sort == "plain" and not pauses and not first.token.text.islower() and not explains:
        return True  # an unknown name
    if not explains and (_new(words, own) or any(item.word in _COUNTED for item in words)):
        return True
    if any(item.word in _REPEATS for item in words) or _then_a_new_name(words, own):
        return True
    plain = _plain(words)
    return plain < len(_names(words)) or (plain < 2 and first.word not in _ALONE)


def _then_a_new_name(items: Sequence[Item], own: frozenset[str]) -> bool:
    return any(
        each.word in _THEN and after.sort in ("name", "loose") and after.name not in {"", *own}
        for each, after in itertools.pairwise(items)
    )


def _leads_in(part: list[Item]) -> bool:
    """Whether a sentence ends in a colon, or in `answer =`."""
    last = part[-1].token
    named = len(part) > 1 and part[-2].sort == "plain"
    return last.kind == ":" or (last.text == "=" and named)


def _begins(part: list[Item], own: frozenset[str], apart: bool) -> bool:
    """Whether what stands before a workflow may be its beginning; `apart` on a line of its own."""
    last = next((item for item in reversed(part) if item.sort != "pause"), None)
    if last is None:
        return any(item.token.kind == "," for item in part)
    if last.sort == "sign" or last.word in _LINKS:
        return True
    if apart:
        return False
    explains = part[0].word in _REASONS
    if last.sort in ("int", "name") or (_new(part, own) and not explains):
        return True
    arrows = any(item.token.kind == "arrow" for item in part)
    denied = any(item.word in ("not", "never", "avoid") for item in part[-3:])
    return arrows or denied or _plain(part) == 0


def _no_prose(part: list[Item], own: frozenset[str], behind: bool) -> bool:
    """Whether a sentence of its own, before or behind a workflow, may be a part of it."""
    first, names, plain = part[0], _names(part), _plain(part)
    if _has_link(part):
        return True
    quoted = len(part) > 1 and part[1].token.text.startswith('"')
    if behind and (
        first.word in _REPEATS
        or first.token.kind in ("arrow", "times", "?", ":")
        or (first.token.kind == "(" and quoted)
    ):
        return True
    if not names:
        counts = any(item.word in _COUNTED or item.sort == "int" for item in part)
        loose = [item for item in part if item.sort == "loose"]
        bare = bool(loose) and not all(item.word in DONE_WORDS for item in loose)
        goes_on = behind and _then_a_new_name(part, own)
        return goes_on or (plain == 0 and (bare or (behind and counts)))
    if plain == 0 or plain < len(names) or _bare_behind_a_colon(part):
        return True
    new = _new(part, own)
    if not behind or not new:
        return False
    ordered = len(part) > 1 and _new([first], own) and part[1].word in _OBJECTS
    return ordered or first.sort == "on" or _then_a_new_name(part, own)


def _has_link(part: list[Item]) -> bool:
    """Whether a sign touches a name, a string holds one, or an arrow links what could be one."""
    if any(item.sort == "sign" and item.name for item in part):
        return True
    for one, two in itertools.pairwise(part):
        for sign, other in ((one, two), (two, one)):
            if sign.sort == "sign" and other.sort == "name":
                return True
            arrow = sign.token.kind == "arrow" and other.sort == "plain"
            if arrow and other.token.text[0].isupper():
                return True
    return False


def _bare_behind_a_colon(part: list[Item]) -> bool:
    colons = [at for at, item in enumerate(part) if item.token.kind == ":"]
    behind = part[colons[-1] :] if colons else []
    return bool(_names(behind)) and _plain(behind) == 0


def is_prose(text: str, operators: Operators, own: frozenset[str]) -> bool:
    """Whether a text that goes with a workflow of these operators is no part of it."""
    tokens, _ = tokenize(text)
    parts = sentences(items_of(tokens[:-1], text, operators), text)
    return not any(part and _no_prose(part, own, behind=True) for part in parts)


# --- beside a tag, a fence, a label or a comment -------------------------------------------------


def follows(text: str, operators: Operators) -> list[Item]:
    """The items that go on with a workflow at the beginning of a text behind it; none if none do.

    That the workflow ended was told by a tag, a fence, a label or the sign of a comment, so only
    what no prose begins with counts: an arrow, a sign before a name, a count, or names alone.
    """
    tokens, _ = tokenize(text)
    parts = sentences(items_of(tokens[:-1], text, operators), text)
    part = next((part for part in parts if part), [])
    words = [item for item in part if item.sort != "pause"]
    if not words:
        return []
    first, second = words[0], words[1] if len(words) > 1 else None
    if first.token.kind in ("arrow", "?") or first.token.text[0] == '"' or _has_link(part):
        return part
    if part[0].token.kind == ":" and first.sort in ("name", "loose"):
        return part
    named = second is not None and second.sort in ("name", "int")
    if first.sort == "sign" or first.word in _COUNTED:
        return part if named or first.word in ("twice", "thrice") else []
    if first.sort == "int":
        return part if second is None or second.word in _COUNTED else []
    return part if _names(words) and _plain(words) == 0 else []


def leads(text: str, operators: Operators) -> list[Item]:
    """The items that a workflow goes on with at the end of a text before it: an arrow from one."""
    tokens, _ = tokenize(text)
    items = items_of(tokens[-3:-1], text, operators)
    if not items or items[-1].token.kind != "arrow":
        return []
    before = items[-2] if len(items) > 1 else None
    linked = before is None or before.sort in ("name", "int") or before.token.kind in ("]", ")")
    return items[-1:] if linked else []
