"""The hardness of a SQL query, on Spider's four levels, from its text.

Spider (Yu et al., EMNLP 2018) grades a query by how many of three sorts of component it has:

* clauses: WHERE, GROUP BY, ORDER BY, LIMIT, every table after the first, every OR, every LIKE;
* nested queries: a set operation, a subquery in a condition;
* extras, at most one each: several aggregates, result columns, WHERE conditions, GROUP BY columns.

    easy      nothing nested, no extra, at most one clause
    medium    nothing nested, and: one clause with up to two extras, or two with up to one
    hard      nothing nested, and: up to two clauses with three or four extras, or three with up
              to two; or one nested query, no extra, at most one clause
    extra     all else; two clauses with exactly two extras are here, not in hard

Only the outermost query counts, and of a set operation the first branch; a nested query adds one,
its own components nothing. The released labels were made by a program with habits of its own, kept
here because the labels are what others compare with: NOT before a condition counts as an aggregate,
and so do AND and OR in HAVING, whose real aggregates do not; a subquery in FROM is a table.
Beyond Spider's grammar, subqueries in SELECT or ORDER BY, EXISTS and WITH count as nested.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.parsing import shared_tree

Hardness = Literal["easy", "medium", "hard", "extra"]


def hardness(sql: str) -> Hardness:
    """The Spider level of one SELECT statement in SQLite's dialect.

    Raises:
        ValueError: The text is not one query that can be parsed.

    >>> hardness("SELECT name FROM singer")
    'easy'
    >>> hardness("SELECT name FROM singer WHERE age > (SELECT avg(age) FROM singer)")
    'hard'
    """
    query = _parse(sql)
    while isinstance(query, exp.Subquery):
        query = query.this  # only brackets
    select = _first_branch(query)
    clauses = _clauses(select)
    nested = int(query is not select) + len(query.ctes) + _nested(select)
    extras = _extras(select)
    if nested:
        return "hard" if nested == 1 and clauses <= 1 and extras == 0 else "extra"
    if clauses <= 1 and extras == 0:
        return "easy"
    if (clauses <= 1 and extras <= 2) or (clauses <= 2 and extras <= 1):
        return "medium"
    few, many = clauses <= 2 and extras > 2, clauses == 3 and extras <= 2
    return "hard" if few or many else "extra"


def _parse(sql: str) -> exp.Query:
    try:
        query = shared_tree(sql)
    except SqlglotError as error:
        raise ValueError(f"This is not one query that can be parsed: {sql!r}") from error
    if not isinstance(query, exp.Query):
        raise ValueError(f"Only a SELECT statement has a hardness, not {sql!r}")
    return query


def _first_branch(query: exp.Query) -> exp.Select:
    """The first SELECT of a set operation, or the query itself.

    A chain is one set operation here: Spider reads `a UNION b UNION c` as `a UNION (b UNION c)`.
    """
    first: exp.Expr = query
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    if not isinstance(first, exp.Select):
        raise ValueError(f"Only a SELECT statement has a hardness, not {query.sql('sqlite')!r}")
    return first


def _clauses(select: exp.Select) -> int:
    """WHERE, GROUP BY, ORDER BY, LIMIT, further tables, OR and LIKE."""
    count = sum(bool(select.args.get(kind)) for kind in ("where", "group", "order", "limit"))
    count += len(select.args.get("joins") or [])
    for part in _conditions(select):
        count += sum(isinstance(node, exp.Or | exp.Like | exp.Glob) for node in _own(part))
    return count


def _nested(select: exp.Select) -> int:
    """Subqueries that are not tables."""
    clauses = (select.args.get("order"), select.args.get("group"))
    parts = [*_conditions(select), *select.expressions, *filter(None, clauses)]
    return sum(isinstance(node, exp.Query) for part in parts for node in _own(part))


def _extras(select: exp.Select) -> int:
    """How many of the four things that may come in plural do so."""
    where, group = select.args.get("where"), select.args.get("group")
    conditions = len(list(_connected(where.this))) if where else 0
    numbers = [_aggregates(select), len(select.expressions), conditions]
    numbers.append(len(group.expressions) if group else 0)
    return sum(number > 1 for number in numbers)


def _aggregates(select: exp.Select) -> int:
    """Aggregates of SELECT, GROUP BY, ORDER BY; NOTs of WHERE, HAVING; connectors of HAVING."""
    count = 0
    for part in (*select.expressions, select.args.get("group"), select.args.get("order")):
        if part is not None:
            count += sum(isinstance(node, exp.AggFunc) for node in _own(part))
    for kind in ("where", "having"):
        part = select.args.get(kind)
        terms = list(_connected(part.this)) if part else []
        count += sum(isinstance(term, exp.Not) for term in terms)
        if kind == "having":
            count += max(len(terms) - 1, 0)
    return count


def _conditions(select: exp.Select) -> Iterator[exp.Expr]:
    """The conditions of joins, WHERE and HAVING."""
    for join in select.args.get("joins") or []:
        if join.args.get("on"):
            yield join.args["on"]
    for kind in ("where", "having"):
        if select.args.get(kind):
            yield select.args[kind]


def _connected(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The terms that AND and OR connect, brackets opened."""
    waiting = [condition]
    while waiting:  # no recursion: a chain of a thousand terms is a thousand levels deep
        term = waiting.pop().unnest()
        if isinstance(term, exp.And | exp.Or):
            waiting += [term.right, term.left]
        else:
            yield term


def _own(part: exp.Expr) -> Iterator[exp.Expr]:
    """All nodes of a part, a subquery itself among them but nothing inside it."""
    yield from part.walk(prune=lambda node: isinstance(node, exp.Query))
