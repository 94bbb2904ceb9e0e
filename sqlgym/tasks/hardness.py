"""The hardness of an SQL query: one of Spider's four levels, computed from its text.

Spider (Yu et al., EMNLP 2018) counts three kinds of components:

* Clauses are WHERE, GROUP BY, ORDER BY and LIMIT, every table after the first, every OR operator
  and every LIKE operator.
* Nested queries are set operations, and subqueries in conditions.
* Extras are several aggregates, several result columns, several WHERE conditions, and several
  GROUP BY columns. Each of these counts at most once.

The numbers of components determine the level:

* `easy`: No nested query, no extra, and at most one clause.
* `medium`: No nested query, and either one clause with up to two extras, or two clauses with up to
  one extra.
* `hard`: One nested query with at most one clause and no extras. Or no nested query, with at most
  two clauses and three or four extras, or with three clauses and at most two extras.
* `extra`: Everything else, such as two clauses with exactly two extras.

Components are counted only in the outermost query, and only in the first branch of a set operation.
A nested query is counted once, and its own components are ignored. The program that produced the
released labels has peculiarities, which are reproduced so that levels are comparable. NOT before a
condition counts as an aggregate. In HAVING, AND and OR count as aggregates, and real aggregates do
not. A subquery in FROM counts as a table. In SQL outside Spider's grammar, subqueries in SELECT or
ORDER BY, EXISTS and WITH count as nested queries.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.parsing import shared_tree

Hardness = Literal["easy", "medium", "hard", "extra"]


def hardness(sql: str) -> Hardness:
    """Return the Spider level of one SELECT statement in SQLite's dialect.

    Raises:
        ValueError: The text is not one query that can be parsed.

    >>> hardness("SELECT name FROM singer")
    'easy'
    >>> hardness("SELECT name FROM singer WHERE age > (SELECT avg(age) FROM singer)")
    'hard'
    """
    try:
        query: Any = shared_tree(sql)
    except SqlglotError as error:
        raise ValueError(f"This is not one query that can be parsed: {sql!r}") from error
    while isinstance(query, exp.Subquery):
        query = query.this  # only parentheses
    select = query  # the first branch of a set operation; `a UNION b UNION c` is one operation
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    if not isinstance(select, exp.Select):
        raise ValueError(f"Only a SELECT statement has a hardness, not {sql!r}")
    where, group, order, having = map(select.args.get, ("where", "group", "order", "having"))
    joins = select.args.get("joins") or []
    conditions = [*(join.args.get("on") for join in joins), where, having]
    clauses = sum(map(bool, (where, group, order, select.args.get("limit")))) + len(joins)
    clauses += _count(conditions, exp.Or | exp.Like | exp.Glob)
    parts = [*select.expressions, group, order]
    nested = (query is not select) + len(query.ctes) + _count([*conditions, *parts], exp.Query)
    filters, limits = _terms(where), _terms(having)
    aggregates = _count(parts, exp.AggFunc) + max(len(limits) - 1, 0)
    aggregates += sum(isinstance(term, exp.Not) for term in filters + limits)
    columns, groups = len(select.expressions), len(group.expressions) if group else 0
    extras = sum(number > 1 for number in (aggregates, columns, len(filters), groups))
    if nested:
        return "hard" if nested == 1 and clauses <= 1 and extras == 0 else "extra"
    if clauses <= 1 and extras == 0:
        return "easy"
    if (clauses <= 1 and extras <= 2) or (clauses <= 2 and extras <= 1):
        return "medium"
    few, many = clauses <= 2 and extras > 2, clauses == 3 and extras <= 2
    return "hard" if few or many else "extra"


def _count(parts: Iterable[exp.Expr | None], kind: Any) -> int:
    """Return the number of nodes of a kind in the parts. Only the root of a subquery counts."""
    found = (part.walk(prune=lambda node: isinstance(node, exp.Query)) for part in parts if part)
    return sum(isinstance(node, kind) for nodes in found for node in nodes)


def _terms(clause: exp.Expr | None) -> list[exp.Expr]:
    """Return the terms of WHERE or HAVING that AND and OR connect, without parentheses."""
    waiting, terms = [clause.this] if clause else [], []
    while waiting:  # no recursion, because a chain of a thousand terms is a thousand levels deep
        term = waiting.pop().unnest()
        if isinstance(term, exp.And | exp.Or):
            waiting += [term.right, term.left]
        else:
            terms.append(term)
    return terms
