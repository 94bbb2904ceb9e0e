"""The words of a statement as its brackets nest them, and the clauses that they form.

Not a parser: what SQLite would not read may come out as anything. What it does read comes out
right as far as `sqlgym.database.written_out` needs it: which words are names, where subqueries
stand, and what lies between SELECT, FROM and the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

Tokens = list["str | Tokens"]
"""Words of a text in lower case; those in brackets are a list of their own. A name in quotes begins
with a double quote, a text with a single one."""
_DEEPEST = 200
_WORD = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|[ \t\n\f\r]+"
    r"|('(?:[^']|'')*'?|\"(?:[^\"]|\"\")*\"?|`(?:[^`]|``)*`?|\[[^\]]*\]?"
    r"|[A-Za-z_\u0080-\U0010ffff][\w$\u0080-\U0010ffff]*|[0-9.][\w.]*|.)",
    re.DOTALL,
)
_AFTER_FROM = ("where", "group", "having", "order", "limit")
_OPERATOR_WORDS = (
    "and or not is in like glob regexp match between collate escape case when then else distinct "
    "exists over filter all select"
)
_WANTS_MORE = frozenset(_OPERATOR_WORDS.split())


class Unreadable(Exception):
    """SQLite would not read it either."""


def tree(sql: str) -> Tokens:
    """The words of a text, as brackets nest them."""
    open_lists: list[Tokens] = [[]]
    for word in _WORD.findall(sql):
        if word == "(":
            inner: Tokens = []
            open_lists[-1].append(inner)
            open_lists.append(inner)
            if len(open_lists) > _DEEPEST:
                raise RecursionError
        elif word == ")":
            if len(open_lists) == 1:
                raise Unreadable
            open_lists.pop()
        elif word:
            open_lists[-1].append(_plain(word))
    return open_lists[0]


view_tree = lru_cache(maxsize=256)(tree)  # the same views, statement after statement


def _plain(word: str) -> str:
    """A word in lower case; one in quotes without them, behind a mark of its kind."""
    first = word[0]
    if first in '"`[':
        last = "]" if first == "[" else first
        return '"' + word[1:].removesuffix(last).replace(last * 2, last).lower()
    return word.lower() if first != "'" else "'" + word[1:-1].replace("''", "'").lower()


def clauses(tokens: Tokens) -> tuple[Tokens, Tokens, Tokens]:
    """The columns, the tables, and the rest of a SELECT."""
    start = 1
    while tokens[start : start + 1] in (["distinct"], ["all"]):
        start += 1
    places = range(start, len(tokens))
    from_at = next((at for at in places if _is_from(tokens, at)), len(tokens))
    places = range(from_at if from_at < len(tokens) else start, len(tokens))
    end = next((at for at in places if tokens[at] in _AFTER_FROM), len(tokens))
    from_at = min(from_at, end)
    return tokens[start:from_at], tokens[from_at + 1 : end], tokens[end:]


def _is_from(tokens: Tokens, at: int) -> bool:
    """FROM, and not the one of IS DISTINCT FROM."""
    compared = tokens[at - 1] == "distinct" and tokens[at - 2] in ("is", "not")
    return tokens[at] == "from" and not compared


def split(tokens: Tokens) -> Iterator[Tokens]:
    """What commas separate."""
    part: Tokens = []
    for token in tokens:
        if token == ",":
            yield part
            part = []
        else:
            part.append(token)
    yield part


def named(expression: Tokens) -> tuple[list[str], Tokens]:
    """The names that a result column may have, and its words without an alias.

    Without an alias it may be any that stands in it: `(x)`, `x COLLATE NOCASE` and `likely(x)` are
    columns of the name `x`.
    """
    last = expression[-1] if expression else ""
    if len(expression) < 2 or not isinstance(last, str) or not _is_name(last):
        return names_in(expression), expression
    before = expression[-2]
    if before == "as":
        return [bare(last)], expression[:-2]
    if isinstance(before, list) or before == "end" or before[0].isdigit():
        return [bare(last)], expression[:-1]
    if _is_name(before) and before not in _WANTS_MORE:
        return [bare(last)], expression[:-1]
    return names_in(expression), expression


def names_in(tokens: Tokens) -> list[str]:
    """All names, and some other words, at any depth."""
    found: list[str] = []
    for token in tokens:
        if isinstance(token, list):
            found += names_in(token)
        elif _is_name(token):
            found.append(bare(token))
    return found


def _is_name(token: str) -> bool:
    return token[0] in "\"'_" or token[0].isalpha() or token[0] > "\x7f"


def bare(token: str) -> str:
    """A name without its mark."""
    return token[1:] if token[0] in "\"'" else token


def is_query(tokens: Tokens) -> bool:
    """Whether what stands in brackets is a query; `with` may also be a name."""
    if not tokens or tokens[0] not in ("select", "values", "with"):
        return False
    return tokens[0] != "with" or "select" in tokens or "values" in tokens
