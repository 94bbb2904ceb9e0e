"""How large a statement becomes when SQLite writes out its views and table expressions.

SQLite copies a table expression wherever it is named, and puts the expression behind a column of a
subquery wherever that column is used. Thirty lines that each say `x || x` of the line before are a
billion words, and compiling cannot be interrupted. So this counts them beforehand: a name weighs as
much as what it stands for. It is an upper bound, in one pass over the words; SQLite itself stays the
judge of what is valid, and text that it would not read weighs nothing.

    WITH a AS (SELECT id + 1 AS x FROM t), b AS (SELECT x + x AS x FROM a) SELECT x FROM b
    x of a: 3 words; x of b: 3 + 1 + 3; the statement: that, the rest, and what a and b hold.

A select over a UNION of n parts is copied n times; what is pushed down or flattened is counted too.
A function call weighs as much as many words, since a line of calls cannot be interrupted either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Tokens = list["str | Tokens"]
"""Words of a text; those in brackets are a list of their own. Names in quotes begin with one."""
ENOUGH = 1 << 40
"""No weight is told beyond this."""
_DEEPEST = 200
_WORD = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|\s+"
    r"|('(?:[^']|'')*'?|\"(?:[^\"]|\"\")*\"?|`(?:[^`]|``)*`?|\[[^\]]*\]?"
    r"|[A-Za-z_\u0080-\U0010ffff][\w$\u0080-\U0010ffff]*|[0-9.][\w.]*|.)",
    re.DOTALL,
)
_ARMS = frozenset({"union", "intersect", "except"})
_AFTER_FROM = ("where", "group", "having", "window", "order", "limit")
_JOINS = frozenset({",", "join"})
CALL = 100
"""Words that a function call weighs."""
_PATTERNS = ("like", "glob")
_NO_CALLS = frozenset(
    "in values over exists and or not on using as when then else case between like glob is from "
    "join where having select by limit offset filter distinct all union except intersect with "
    "materialized recursive + - * / % | = < > , . ~ &".split()
)
_SELECT_LENGTH = 14  # "select" and "from", with blanks
_OVERHEAD = 2  # characters that each mention of a name takes at least


def may_be_large(lowered: str, most: int) -> bool:
    """Whether a statement could weigh more than `most`: quick, and yes where it is unsure."""
    selects = lowered.count("select") + lowered.count("values")
    if selects < 2:
        return False
    left = max(0, len(lowered) - _SELECT_LENGTH * selects) / _OVERHEAD
    calls = CALL * (lowered.count("(") - lowered.count("(select"))
    inner = min(selects, 40) - 1
    return (left / inner) ** inner * max(left / selects, calls) > most


@dataclass
class Query:
    """What is known of a SELECT.

    Attributes:
        weight: Its words, all written out.
        arms: Into how many parts it falls at most, where it is a UNION.
        columns: The weight of each column, by its name in lower case; of the heaviest, by "".
    """

    weight: int = 1
    arms: int = 1
    columns: dict[str, int] = field(default_factory=dict)


class _Unreadable(Exception):
    """SQLite would not read it either."""


class _Name:
    """A table expression or view: its words, and what its own names stand for."""

    def __init__(self, body: Tokens, names: Names, columns: list[str]) -> None:
        self._body, self._names, self._columns = body, names, columns
        self._known: Query | None = None

    def query(self) -> Query:
        """What it stands for; within itself it is a plain table."""
        if self._known is None:
            self._known = Query()
            found = _query(self._body, self._names, {})
            if self._columns:
                heaviest = max(found.columns.values(), default=1)
                ordered = dict.fromkeys([*self._columns, ""], heaviest)
                found = Query(found.weight, found.arms, ordered)
            self._known = found
        return self._known


class Names(dict[str, _Name]):
    """What names stand for, and what is counted: all words, or LIKE and GLOB only."""

    def __init__(self, patterns_only: bool, known: Mapping[str, _Name] | None = None) -> None:
        super().__init__(known or {})
        self.patterns_only = patterns_only

    def plain(self, token: str, is_call: bool) -> int:
        """The weight of a word that stands for nothing else."""
        if self.patterns_only:
            return int(token in _PATTERNS)
        return CALL if is_call and token not in _NO_CALLS else 1


def weight(sql: str, views: Mapping[str, str], patterns_only: bool = False) -> tuple[int, int]:
    """How many words a statement has when it is written out, and its heaviest column.

    Args:
        sql: One statement.
        views: The CREATE statements of the file's views, by their names in lower case.
        patterns_only: Only LIKE and GLOB are counted.
    """
    names = Names(patterns_only)
    try:
        for name, created in views.items():
            names[name] = _view(_tree(created), names)
        found = _query(_tree(sql), names, {})
    except (_Unreadable, IndexError, ValueError):
        return 0, 0
    except RecursionError:
        return ENOUGH, ENOUGH
    return found.weight, max(found.columns.values(), default=1)


def _view(tokens: Tokens, names: Names) -> _Name:
    place = tokens.index("as") if "as" in tokens else len(tokens)
    before = tokens[place - 1 : place]
    listed = before[0] if before and isinstance(before[0], list) else []
    return _Name(tokens[place + 1 :], names, _names_in(listed))


def _tree(sql: str) -> Tokens:
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
                raise _Unreadable
            open_lists.pop()
        elif word:
            open_lists[-1].append(_plain(word))
    return open_lists[0]


def _plain(word: str) -> str:
    """A word in lower case; one in quotes without them, behind a mark of its kind."""
    first = word[0]
    if first in '"`[':
        last = "]" if first == "[" else first
        return '"' + word[1:].removesuffix(last).replace(last * 2, last).lower()
    return word.lower() if first != "'" else "'" + word[1:-1].replace("''", "'").lower()


def _names_in(tokens: Tokens) -> list[str]:
    return [_bare(token) for token in tokens if isinstance(token, str) and token != ","]


def _bare(token: str) -> str:
    return token[1:] if token[0] in "\"'" else token


def _is_query(tokens: Tokens) -> bool:
    return bool(tokens) and tokens[0] in ("select", "with", "values")


def _query(tokens: Tokens, names: Names, outer: dict[str, int]) -> Query:
    """A whole query: its WITH, and its parts."""
    if tokens and tokens[0] == "with":
        tokens, names = _with(tokens, names)
    parts: list[Tokens] = [[]]
    for token in tokens:
        if isinstance(token, str) and token in _ARMS:
            parts.append([])
        else:
            parts[-1].append(token)
    arms = [_arm(part[1:] if part[:1] == ["all"] else part, names, outer) for part in parts]
    columns = arms[0].columns
    if len(arms) > 1:
        heaviest = max(max(arm.columns.values(), default=1) for arm in arms)
        columns = dict.fromkeys(columns, heaviest)
    return Query(
        min(sum(arm.weight for arm in arms), ENOUGH),
        min(sum(arm.arms for arm in arms), ENOUGH),
        columns,
    )


def _with(tokens: Tokens, outer: Names) -> tuple[Tokens, Names]:
    """What stands behind a WITH, and the names that it adds to the others."""
    names = Names(outer.patterns_only, outer)
    at = 2 if tokens[1] == "recursive" else 1
    while True:
        name, columns = tokens[at], tokens[at + 1]
        at = tokens.index("as", at + 1) + 1
        while isinstance(tokens[at], str):  # NOT MATERIALIZED
            at += 1
        body = tokens[at]
        if not isinstance(name, str) or not isinstance(body, list):
            raise _Unreadable
        listed = _names_in(columns) if isinstance(columns, list) else []
        names[_bare(name)] = _Name(body, names, listed)
        if tokens[at + 1] != ",":
            return tokens[at + 1 :], names
        at += 2


def _arm(tokens: Tokens, names: Names, outer: dict[str, int]) -> Query:
    """One SELECT or VALUES."""
    result, sources, rest = _clauses(tokens)
    found, conditions = _sources(sources, names, outer)
    visible = dict(outer)
    for source in found:
        _keep_heaviest(visible, source.columns)
    weight = sum(_words(words, names, visible) for words in conditions)
    columns: dict[str, int] = {}
    for expression in _split(result):
        name, expression = _named(expression)
        if expression[-1:] == ["*"] and (len(expression) == 1 or expression[-2] == "."):
            for source in found:
                weight += sum(source.columns.values())
                _keep_heaviest(columns, source.columns)
            continue
        heavy = _words(expression, names, visible)
        weight += heavy
        _keep_heaviest(columns, {name: heavy, "": heavy})
    _keep_heaviest(visible, columns)  # an alias may be named in the clauses behind FROM
    weight += _words(rest, names, visible) + 1
    arms = 1
    for source in found:
        arms = min(arms * source.arms, ENOUGH)
    written = weight * arms + sum(source.weight for source in found)
    return Query(min(written, ENOUGH), arms, columns)


def _keep_heaviest(known: dict[str, int], more: Mapping[str, int]) -> None:
    for name, heavy in more.items():
        known[name] = max(heavy, known.get(name, 1))


def _clauses(tokens: Tokens) -> tuple[Tokens, Tokens, Tokens]:
    """The columns, the tables, and the rest of a SELECT."""
    start = 1
    while tokens[start : start + 1] in (["distinct"], ["all"]):
        start += 1
    from_at = end = len(tokens)
    for at in range(start, len(tokens)):
        if tokens[at] == "from" and not (
            tokens[at - 1] == "distinct" and tokens[at - 2] in ("is", "not")
        ):
            from_at = min(from_at, at)
        elif at > start and tokens[at] in _AFTER_FROM and end == len(tokens):
            end = at if tokens[at] != "group" or tokens[at + 1 : at + 2] == ["by"] else end
    from_at = min(from_at, end)
    return tokens[start:from_at], tokens[from_at + 1 : end], tokens[end:]


def _sources(
    tokens: Tokens, names: Names, outer: dict[str, int]
) -> tuple[list[Query], list[Tokens]]:
    """The queries that a FROM reads, and the words of its conditions."""
    found: list[Query] = []
    conditions: list[Tokens] = [[]]
    expected = True
    for at, token in enumerate(tokens):
        if expected and isinstance(token, list):
            if _is_query(token):
                found.append(_query(token, names, outer))
            else:
                inner, more = _sources(token, names, outer)
                found += inner
                conditions += more
        elif expected and tokens[at + 1 : at + 2] != ["."] and token != ".":
            known = names.get(_bare(str(token)))
            found += [known.query()] if known else []
        elif not expected:
            conditions[-1].append(token)
        if expected and token != "." and tokens[at + 1 : at + 2] != ["."]:
            expected = False
        if isinstance(token, str) and token in _JOINS:
            expected = True
    return found, conditions


def _split(tokens: Tokens) -> Iterator[Tokens]:
    part: Tokens = []
    for token in tokens:
        if token == ",":
            yield part
            part = []
        else:
            part.append(token)
    yield part


def _named(expression: Tokens) -> tuple[str, Tokens]:
    """The name that a result column gets, and its words without an alias."""
    last = expression[-1] if expression else ""
    if not isinstance(last, str) or not last or not (last[0] in "\"'_" or last[0].isalpha()):
        return "", expression
    if len(expression) > 2 and expression[-2] == "as":
        return _bare(last), expression[:-2]
    return _bare(last), expression  # an alias without AS, or the column itself


def _words(tokens: Tokens, names: Names, visible: dict[str, int]) -> int:
    """The weight of an expression, or of what else has words."""
    total = 0
    for at, token in enumerate(tokens):
        if isinstance(token, list):
            inner = _query(token, names, visible).weight if _is_query(token) else 0
            total += inner or _words(token, names, visible)
            continue
        own = names.plain(token, at + 1 < len(tokens) and isinstance(tokens[at + 1], list))
        if token[0] == '"':
            total += visible.get(token[1:], visible.get("", own))
        else:
            total += visible.get(token, own)
        if at and tokens[at - 1] == "in" and _bare(token) in names:
            total += names[_bare(token)].query().weight
    return min(total, ENOUGH)
