"""Bounds on the work that SQLite does for a statement before it can be interrupted.

SQLite copies a subquery, a view or a `WITH` table to each place that refers to it, and the
expression of a column to each use of that column. For example, thirty lines, each of which
concatenates the previous one with itself (`x || x`), expand to a billion words. Older versions of
SQLite check no limit during this expansion. Therefore the expanded size of a statement is bounded
before SQLite reads it:

    WITH a AS (SELECT id + 1 AS x FROM t), b AS (SELECT x + x AS x FROM a) SELECT x FROM b

Column x of `a` has 3 words, and x of `b` has 3 + 1 + 3. Most statements pass a quick check that
only counts keywords and characters. All other statements are parsed, and a statement that cannot be
parsed is rejected.

A search in a full-text table is a single step that can take any amount of time, so the length of
the search text is bounded too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import expressions as exp
from sqlglot.errors import ParseError, SqlglotError

from sqlgym.database.parsing import careful, parse

MOST_WORDS = 500_000
"""Maximum number of words of an expanded statement. A SELECT or a table counts as 20 words, a
function call as 100, and a LIKE as 2,000.
"""
MOST_PLAIN_WORDS = 3_000
"""Maximum number of words of a statement with several SELECTs, excluding lists and parentheses.
SQLite walks expressions recursively, and this limit bounds their total depth.
"""
MOST_PARSED = 20_000
"""Maximum length of a statement that is parsed, in characters."""
MOST_SEARCH = 1_000
"""Maximum length of a statement that reads a full-text table, in characters."""
CALL, SELECT, PATTERN = 100, 20, 2_000
_SELECT_LENGTH = 14  # "select" and "from", with spaces
_WORD = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|[ \t\n\f\r]+"
    r"|([xX]'[0-9a-fA-F]*'|'(?:[^']|'')*'?|\"(?:[^\"]|\"\")*\"?|`(?:[^`]|``)*`?|\[[^\]]*\]?"
    r"|[A-Za-z_\u0080-\U0010ffff][\w$\u0080-\U0010ffff]*|[0-9.][\w.]*"
    r"|->>|\|\||<<|>>|->|[<>=!]=|<>|.)",
    re.DOTALL,
)
_NOT_CALLS = exp.Connector, exp.Case, exp.Cast, exp.Coalesce
makes_text = re.compile(
    r"\|\||\[|printf|format|replace|concat|agg|hex|quote|char|json|strftime|unistr"
).search
"""Matches a lower-case statement that may build a string much longer than itself."""


class StatementSize:
    """Checks the sizes of statements on one file.

    Args:
        views: The CREATE statements of the file's views by name, all in lower case.
        searched: Names of the virtual tables of the file, in lower case.
    """

    def __init__(self, views: Mapping[str, str], searched: Iterable[str]) -> None:
        self._searched = tuple(searched)
        self._views = views
        self._read_by = {name: self._closure(name) for name in views}

    def _closure(self, name: str) -> str:
        """Return the text of a view and of all views that it may read."""
        found = [name]
        for each in found:
            found += [v for v in self._views if v not in found and v in self._views[each]]
        return " ".join(self._views[each] for each in found)

    def refusal(self, lowered: str) -> str:
        """Return the reason why a statement in lower case is too large, or "" if it is not."""
        if any(name in lowered for name in self._searched) and (
            len(lowered) > MOST_SEARCH or makes_text(lowered)
        ):
            return f"a full-text search with more than {MOST_SEARCH:,} characters or computed text"
        text = " ".join([lowered, *(v for name, v in self._read_by.items() if name in lowered)])
        selects = text.count("select") + text.count("values")
        if selects < 2:
            return ""
        patterns = text.count("like") + text.count("glob")
        calls = text.count("(") - text.count("(select")
        uses = max(0, len(text) - _SELECT_LENGTH * selects) / 2
        inner = min(selects, 40) - 1
        copies = (uses / inner + 1) ** inner
        is_small = copies * max(uses / selects, CALL * calls, PATTERN * patterns) <= MOST_WORDS
        if is_small and len(text) <= MOST_PLAIN_WORDS:
            return ""
        words = list(filter(None, _WORD.findall(text)))
        if (
            len(words) - 2 * words.count(",") - words.count("(") - words.count(")")
            > MOST_PLAIN_WORDS
        ):
            return f"more than {MOST_PLAIN_WORDS:,} words in several SELECTs"
        if is_small:
            return ""
        if len(lowered) > MOST_PARSED:
            return f"several SELECTs with more than {MOST_PARSED:,} characters"
        names: _Names = {}
        try:
            for name in [name for name in self._views if name in text]:
                head, body = re.split(r"\bas\b", self._views[name], maxsplit=1)
                names[name] = _Named(_tree(body), re.findall(r"\w+", head.partition("(")[2]), names)
            weight = careful(lambda: _query(_tree(lowered), names, {}).weight)
        except SqlglotError:
            return "several SELECTs that cannot be measured"
        return f"more than {MOST_WORDS:,} words when written out" if weight > MOST_WORDS else ""


def _tree(text: str) -> exp.Expr:
    """Return a statement as a tree of words, split as in SQLite, without comments."""
    return parse(" ".join(filter(None, _WORD.findall(text))))


@dataclass
class _Query:
    """Size of a query: all words, the parts of its UNION, and the words of its columns.

    `columns[""]` is the size of the largest column.
    """

    weight: float = 0
    arms: float = 1
    columns: dict[str, float] = field(default_factory=lambda: {"": 1})

    def listed(self, names: Iterable[str]) -> _Query:
        """Return the query with the given column names, if there are any."""
        columns = dict.fromkeys([*names, ""], self.columns[""])
        return _Query(self.weight, self.arms, columns) if len(columns) > 1 else self


@dataclass
class _Named:
    """A view or `WITH` table, with the names that it may refer to."""

    body: exp.Expr
    listed: list[str]
    names: _Names
    known: _Query | None = None

    def query(self) -> _Query:
        """Return the size of the table's query. A reference of the query to itself counts as a
        plain table.
        """
        if self.known is None:
            self.known = _Query()
            self.known = _query(self.body, self.names, {}).listed(self.listed)
        return self.known


_Names = dict[str, _Named]


def _query(node: exp.Expr, names: _Names, outer: dict[str, float]) -> _Query:
    """Return the size of a query.

    Args:
        node: A SELECT, a compound query, VALUES, or one of these in parentheses.
        names: The views and `WITH` tables that it may name.
        outer: Sizes of the columns of the enclosing queries.
    """
    if isinstance(node, exp.Query) and node.ctes:
        names = dict(names)
        for cte in node.ctes:
            names[cte.alias] = _Named(cte.this, cte.alias_column_names, names)
    if isinstance(node, exp.Subquery):
        return _query(node.this, names, outer)
    if isinstance(node, exp.SetOperation):
        parts = [_query(part, names, outer) for part in (node.left, node.right)]
        whole = _Query(sum(p.weight for p in parts), sum(p.arms for p in parts), parts[0].columns)
        whole.columns[""] = max(part.columns[""] for part in parts)
        return whole.listed(whole.columns)
    if not isinstance(node, exp.Select):
        weight = _words(node, names, outer)
        return _Query(weight, 1, {"": weight}).listed(f"column{i}" for i in range(1, 9))
    sources: list[_Query] = []
    rest = [v for k, v in node.args.items() if k.strip("_") not in ("with", "from", "joins")]
    rest.remove(node.expressions)
    joins = node.args.get("joins") or []
    rest += [join.args.get("on") for join in joins]
    start = node.args.get("from_") or node.args.get("from")
    for source in [*([start] if start else []), *joins]:
        table = source.this
        if isinstance(table, exp.Table) and not table.args.get("joins"):
            rest.append(table.this)  # may call a table function
            if table.name in names:
                sources.append(names[table.name].query())
        elif isinstance(table, exp.Subquery | exp.Values) and not isinstance(table.this, exp.Table):
            sources.append(_query(table, names, outer))
        else:
            raise ParseError("joins in brackets")
    visible = dict(outer)
    for query in sources:
        _keep_largest(visible, query.columns)
    weight = SELECT * (1.0 + len(sources))
    columns: dict[str, float] = {"": 1}
    for each in node.expressions:
        size = _words(each, names, visible)
        # Without an alias, `(x)`, `x COLLATE NOCASE` and `likely(x)` are named `x`.
        aliases = [each.alias] if each.alias else [c.name for c in each.find_all(exp.Column)]
        _keep_largest(columns, dict.fromkeys([*aliases, ""], size))
        weight += size
        for query in sources if each.is_star else ():
            weight += sum(query.columns.values())
            _keep_largest(columns, query.columns)
    _keep_largest(visible, columns)
    weight += sum(_words(each, names, visible) for each in rest)
    arms = math.prod(query.arms for query in sources)
    return _Query(weight * arms + sum(query.weight for query in sources), arms, columns)


def _words(node: Any, names: _Names, visible: dict[str, float]) -> float:
    """Return the size of an expression, or of a list of them."""
    nodes = list(node) if isinstance(node, list) else [node]
    total = 0.0
    while nodes:
        each = nodes.pop()
        if not isinstance(each, exp.Expr):
            continue
        if isinstance(each, exp.Query):
            total += _query(each, names, visible).weight
            continue
        if isinstance(each, exp.Column):
            quoted = isinstance(each.this, exp.Identifier) and each.this.quoted
            total += visible.get(each.name, visible.get("", 1) if quoted else 1)
            continue
        if isinstance(each, exp.Like | exp.ILike | exp.Glob):
            total += PATTERN
        elif isinstance(each, exp.Func) and not isinstance(each, _NOT_CALLS):
            total += CALL
        elif not isinstance(each, exp.Identifier | exp.Alias):
            total += 1
        listed = getattr(each.args.get("field"), "name", "")  # x IN table
        if isinstance(each, exp.In) and listed in names:
            total += names[listed].query().weight
        nodes += each.iter_expressions()
    return total


def _keep_largest(sizes: dict[str, float], more: Mapping[str, float]) -> None:
    for name, size in more.items():
        sizes[name] = max(size, sizes.get(name, 0))
