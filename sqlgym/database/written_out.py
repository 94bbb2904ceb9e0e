"""The size of a statement with its views and table expressions written out, as SQLite does.

SQLite copies a table expression wherever it is named, and puts the expression behind a column of a
subquery wherever that column is used. Thirty lines that each say `x || x` of the line before are a
billion words, and compiling cannot be interrupted. So this counts them beforehand: a name weighs
as much as what it stands for. It is an upper bound, in one pass over the words as their brackets
nest them. Not a parser: SQLite stays the judge of what is valid, and other text weighs anything.

    WITH a AS (SELECT id + 1 AS x FROM t), b AS (SELECT x + x AS x FROM a) SELECT x FROM b
    x of a: 3 words; x of b: 3 + 1 + 3; the statement: that, the rest, and what a and b hold.

A select over a UNION of n parts is copied n times; what is pushed down or flattened is counted too.
A function call weighs as much as many words, since a line of calls cannot be interrupted either.
The depth of the expressions counts too: SQLite walks them by recursion, on the thread's stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Literal

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
    """The parts between commas."""
    part: Tokens = []
    for token in tokens:
        if token == ",":
            yield part
            part = []
        else:
            part.append(token)
    yield part


def column_names(expression: Tokens) -> tuple[list[str], Tokens]:
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
    names: list[str] = []
    for token in tokens:
        if isinstance(token, list):
            names += names_in(token)
        elif _is_name(token):
            names.append(bare(token))
    return names


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


Of = Literal["words", "patterns", "depth"]
ENOUGH = 1 << 40
"""No weight is told beyond this."""
_ARMS = frozenset({"union", "intersect", "except"})
_JOINS = frozenset({",", "join"})
CALL, CHEAP_CALL, SELECT = 500, 20, 20
"""Words that a function call weighs, one that makes no text, and a select or a table of it."""
_MAKES_NO_TEXT = (
    "abs avg cast ceil ceiling coalesce count cume_dist dense_rank first_value floor ifnull iif "
    "julianday lag last_value lead length max min nth_value ntile nullif percent_rank rank round "
    "row_number sign sqrt sum total typeof"
)
_CHEAP = frozenset(_MAKES_NO_TEXT.split())
_PATTERNS = ("like", "glob")
_DEEPER = "+ - * / % | & ~ < > = and or not is in like glob case collate"
_OPERATORS = frozenset(_DEEPER.split())
_BESIDE = ", when then else end from where select group having order on"
_SIDE_BY_SIDE = frozenset(_BESIDE.split())
_BEFORE_BRACKETS = (
    "in values over exists and or not on using as when then else case between like glob is from "
    "join where having select by limit offset filter distinct all union except intersect with "
    "materialized recursive + - * / % | = < > , . ~ &"
)
_NO_CALLS = frozenset(_BEFORE_BRACKETS.split())


@dataclass
class Query:
    """The weight of a SELECT and of its columns.

    Attributes:
        weight: Its words, all written out.
        arms: Into how many parts it falls at most, where it is a UNION.
        columns: The weight of each column, by its name in lower case; of the heaviest, by "".
    """

    weight: int = 0
    arms: int = 1
    columns: dict[str, int] = field(default_factory=dict)


class _Name:
    """A table expression or view: its words, and what its own names stand for."""

    def __init__(self, body: Tokens, names: Names, columns: list[str]) -> None:
        self._body, self._names, self._columns = body, names, columns
        self._known: Query | None = None

    def query(self) -> Query:
        """The query that it stands for; within itself it is a plain table."""
        if self._known is None:
            self._known = Query()
            query = _query(self._body, self._names, {})
            if self._columns:
                heaviest = max(query.columns.values(), default=0)
                ordered = dict.fromkeys([*self._columns, ""], heaviest)
                query = Query(query.weight, query.arms, ordered)
            self._known = query
        return self._known


class Names(dict[str, _Name]):
    """The queries that names stand for, and the measure by which words are weighed."""

    def __init__(self, of: Of, outer: Mapping[str, _Name] | None = None) -> None:
        super().__init__(outer or {})
        self.of = of
        self.join: Callable[[Iterable[int]], int] = (
            partial(max, default=0) if of == "depth" else sum
        )

    def own(self, token: str, is_call: bool) -> int:
        """The weight of a word by itself."""
        if self.of == "patterns":
            return int(token in _PATTERNS)
        if self.of == "depth":
            return int(is_call or token in _OPERATORS)
        if not is_call or token in _NO_CALLS:
            return 1
        return CHEAP_CALL if token in _CHEAP else CALL


def weight(sql: str, views: Mapping[str, str], of: Of = "words") -> int:
    """The weight of a statement when it is written out; 0 if SQLite could not read it.

    Args:
        views: The CREATE statements of the file's views, by their names in lower case.
        of: Its words and calls; its LIKE and GLOB; or how deep its expressions are.
    """
    names = Names(of)
    try:
        for name, created in views.items():
            names[name] = _view(view_tree(created), names)
        return _query(tree(sql), names, {}).weight
    except (Unreadable, IndexError, ValueError):
        return 0
    except RecursionError:
        return ENOUGH


def _view(tokens: Tokens, names: Names) -> _Name:
    place = tokens.index("as") if "as" in tokens else len(tokens)
    before = tokens[place - 1 : place]
    listed = before[0] if before and isinstance(before[0], list) else []
    return _Name(tokens[place + 1 :], names, names_in(listed))


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
        heaviest = max(max(arm.columns.values(), default=0) for arm in arms)
        columns = dict.fromkeys(columns, heaviest)
    return Query(
        min(names.join(arm.weight for arm in arms), ENOUGH),
        min(sum(arm.arms for arm in arms), ENOUGH),
        columns,
    )


def _with(tokens: Tokens, outer: Names) -> tuple[Tokens, Names]:
    """What stands behind a WITH, and the names that it adds to the others."""
    names = Names(outer.of, outer)
    at = 2 if tokens[1] == "recursive" else 1
    while True:
        name, columns = tokens[at], tokens[at + 1]
        at = tokens.index("as", at + 1) + 1
        while isinstance(tokens[at], str):  # NOT MATERIALIZED
            at += 1
        body = tokens[at]
        if not isinstance(name, str) or not isinstance(body, list):
            raise Unreadable
        listed = names_in(columns) if isinstance(columns, list) else []
        names[bare(name)] = _Name(body, names, listed)
        if tokens[at + 1] != ",":
            return tokens[at + 1 :], names
        at += 2


def _arm(tokens: Tokens, names: Names, outer: dict[str, int]) -> Query:
    """One SELECT or VALUES."""
    result, sources, rest = clauses(tokens)
    queries, conditions = _sources(sources, names, outer)
    visible = dict(outer)
    for source in queries:
        _keep_heaviest(visible, source.columns)
    weights = [_words(words, names, visible) for words in conditions]
    columns: dict[str, int] = {}
    for expression in split(result):
        if expression[-1:] == ["*"] and (len(expression) == 1 or expression[-2] == "."):
            for source in queries:
                weights += source.columns.values()
                _keep_heaviest(columns, source.columns)
            continue
        aliases, expression = column_names(expression)
        heavy = _words(expression, names, visible)
        weights.append(heavy)
        _keep_heaviest(columns, dict.fromkeys([*aliases, ""], heavy))
    _keep_heaviest(visible, columns)  # an alias may be named in the clauses behind FROM
    weights.append(_words(rest, names, visible))
    weights.append(SELECT * (1 + len(queries)) if names.of == "words" else 0)
    arms = 1
    for source in queries:
        arms = min(arms * source.arms, ENOUGH)
    whole = names.join(weights) if names.of == "depth" else sum(weights) * arms
    return Query(min(names.join([whole, *(s.weight for s in queries)]), ENOUGH), arms, columns)


def _keep_heaviest(weights: dict[str, int], more: Mapping[str, int]) -> None:
    for name, heavy in more.items():
        weights[name] = max(heavy, weights.get(name, 0))


def _sources(
    tokens: Tokens, names: Names, outer: dict[str, int]
) -> tuple[list[Query], list[Tokens]]:
    """The queries that a FROM reads, and the words of its conditions."""
    queries: list[Query] = []
    conditions: list[Tokens] = [[]]
    expected = True
    for at, token in enumerate(tokens):
        if expected and isinstance(token, list):
            if is_query(token):
                queries.append(_query(token, names, outer))
            else:
                inner, more = _sources(token, names, outer)
                queries += inner
                conditions += more
        elif expected and tokens[at + 1 : at + 2] != ["."] and token != ".":
            name = names.get(bare(str(token)))
            queries += [name.query()] if name else []
        elif not expected:
            conditions[-1].append(token)
        if expected and token != "." and tokens[at + 1 : at + 2] != ["."]:
            expected = False
        if isinstance(token, str) and token in _JOINS:
            expected = True
    return queries, conditions


def _words(tokens: Tokens, names: Names, visible: dict[str, int]) -> int:
    """The weight of an expression, or of what else has words."""
    total = most = 0
    parts = []
    for at, token in enumerate(tokens):
        if isinstance(token, list):
            a_query = is_query(token)
            parts.append(
                _query(token, names, visible).weight if a_query else _words(token, names, visible)
            )
            continue
        if names.of == "depth" and token in _SIDE_BY_SIDE:
            most, total = max(most, total), 0
        stands_for = visible.get(token)
        if stands_for is None and token[0] == '"':
            stands_for = visible.get(token[1:], visible.get(""))
        if stands_for is None:
            total += names.own(token, at + 1 < len(tokens) and isinstance(tokens[at + 1], list))
        else:
            parts.append(stands_for)
        if at and tokens[at - 1] == "in" and bare(token) in names:
            parts.append(names[bare(token)].query().weight)
    return min(max(most, total) + names.join(parts), ENOUGH)
