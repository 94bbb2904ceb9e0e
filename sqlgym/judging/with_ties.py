"""Rewrites queries so that a LIMIT includes the rows that tie with its last one.

`ORDER BY age LIMIT 1` and `age = (SELECT min(age) ...)` give the same result while a single row has
the lowest age. On an instance where several rows have it, the second finds all of them, and so does
the first after it is rewritten:

    SELECT name FROM (SELECT name, rank() OVER (ORDER BY age) AS place FROM ...) WHERE place <= 1
"""

from __future__ import annotations

import functools
from itertools import islice
from typing import Any, Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.parsing import careful, parse

_PLACE: Final = "toolgym place"
_MOST: Final = 2_000
"""Parts of a query that is still rewritten; what is ordered by is copied, and may be nested."""


@functools.lru_cache(maxsize=4_096)
def with_ties(sql: str, by_first: bool = False) -> str | None:
    """Rewrite each LIMIT after an ORDER BY to include the rows that tie with its last one.

    A `row_number()` becomes a `rank()` as well. A LIMIT stays unchanged if it has an OFFSET or is
    no plain number, if `*` is selected, or if it is more than 1 in a SELECT DISTINCT.

    Args:
        by_first: Rows tie where the first key of the ORDER BY is the same; the other keys, which
            only break ties, are left out.

    Returns:
        The rewritten query; None if nothing is changed, or the query is too long.

    >>> with_ties("SELECT name FROM t ORDER BY age LIMIT 1")[:50]
    'SELECT "toolgym 0" AS "name" FROM (SELECT *, RANK('
    >>> with_ties("SELECT name FROM t LIMIT 1")
    """
    try:
        return careful(lambda: _changed(parse(sql), by_first))
    except SqlglotError:
        return None


def _changed(tree: exp.Expr, by_first: bool) -> str | None:
    is_changed = False
    for number in list(tree.find_all(exp.RowNumber)):
        window = number.parent
        if isinstance(window, exp.Window) and window.args.get("order") is not None:
            number.replace(exp.Anonymous(this="rank"))
            is_changed = True
    for select in reversed(list(tree.find_all(exp.Select))):  # the inner ones first
        if len(list(islice(tree.walk(), _MOST))) == _MOST:
            return None
        ranked = _ranked(select, by_first)
        if ranked is None:
            continue
        is_changed = True
        around = select.parent
        if select is tree:
            tree = ranked
            continue
        select.replace(ranked)
        equal = around.parent if isinstance(around, exp.Subquery) else None
        if isinstance(equal, exp.EQ):  # a subquery for one value may now give several
            value = equal.this if equal.expression is around else equal.expression
            equal.replace(exp.In(this=value.copy(), query=exp.Subquery(this=ranked.copy())))
    return tree.sql(dialect="sqlite") if is_changed else None


def _ranked(select: exp.Select, by_first: bool) -> exp.Expr | None:
    """A SELECT that filters by rank in place of its LIMIT; None if the LIMIT has to stay.

    The innermost query gives the outputs and the keys, the one around it the rank by these keys.
    """
    order, limit, offset = (select.args.get(part) for part in ("order", "limit", "offset"))
    if order is None or not isinstance(limit, exp.Limit) or select.is_star:
        return None
    if not isinstance(limit.expression, exp.Literal) or not limit.expression.is_int:
        return None
    if offset is not None and offset.expression.sql() != "0":
        return None
    is_distinct = bool(select.args.get("distinct"))
    if is_distinct and limit.expression.name != "1":
        return None
    outputs: list[Any] = select.expressions
    names = [
        each.alias if isinstance(each, exp.Alias) else f"toolgym {place}"
        for place, each in enumerate(outputs)
    ]
    if len({name.lower() for name in names}) < len(names):
        return None
    aliases = {each.alias.lower(): each.this for each in outputs if isinstance(each, exp.Alias)}

    def written_out(node: exp.Expr) -> exp.Expr:
        is_alias = isinstance(node, exp.Column) and not node.table
        if not is_alias or node.name.lower() not in aliases:
            return node
        return exp.Paren(this=aliases[node.name.lower()].copy())

    inner, ranks = select.copy(), []
    shown: list[Any] = [
        exp.alias_(each.unalias().copy(), name, quoted=True)
        for each, name in zip(outputs, names, strict=True)
    ]
    for number, key in enumerate(order.expressions[: 1 if by_first else None]):
        value = key.this
        if isinstance(value, exp.Literal) and value.is_int and 0 < int(value.name) <= len(outputs):
            name = names[int(value.name) - 1]
        elif value.find(exp.Column, exp.AggFunc, exp.Window) is None:
            return None  # a constant, by which all rows tie, or a place in the output in disguise
        elif isinstance(value, exp.Column) and not value.table and value.name.lower() in aliases:
            name = value.name
        else:
            name = f"toolgym key {number}"
            shown.append(exp.alias_(value.copy().transform(written_out), name, quoted=True))
        rank = key.copy()
        rank.set("this", exp.column(name, quoted=True))
        ranks.append(rank)
    for part in ("order", "limit", "offset", "distinct"):
        inner.set(part, None)
    inner.set("expressions", shown)
    rank = exp.Window(this=exp.Anonymous(this="rank"), order=exp.Order(expressions=ranks))
    ranked = exp.select("*", exp.alias_(rank, _PLACE, quoted=True)).from_(_derived(inner))
    outer = [
        exp.alias_(exp.column(name, quoted=True), each.output_name or name, quoted=True)
        for each, name in zip(outputs, names, strict=True)
    ]
    place = exp.column(_PLACE, quoted=True)
    return (
        exp.select(*outer)
        .distinct(distinct=is_distinct)
        .from_(_derived(ranked))
        .where(exp.LTE(this=place.copy(), expression=limit.expression.copy()))
        .order_by(exp.Ordered(this=place.copy(), nulls_first=True))
    )


def _derived(query: exp.Expr) -> exp.Expr:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier("ranked")))
