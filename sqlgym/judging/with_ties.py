"""Rewrites queries so that a LIMIT includes the rows that tie with its last one.

`ORDER BY age LIMIT 1` and `age = (SELECT min(age) ...)` give the same result while a single row has
the lowest age. On an instance where several rows have it, the second finds all of them, and so does
the first after it is rewritten:

    SELECT name FROM (SELECT name, rank() OVER (ORDER BY age) AS place FROM ...) WHERE place <= 1
"""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.parsing import careful, parse

_PLACE: Final = "toolgym place"


def with_ties(sql: str) -> str | None:
    """Rewrite each LIMIT after an ORDER BY to include the rows that tie with its last one.

    A LIMIT stays unchanged if it has an OFFSET or is no plain number, if `*` is selected, or if it
    is more than 1 in a SELECT DISTINCT.

    Returns:
        The rewritten query; None if no LIMIT is changed.

    >>> with_ties("SELECT name FROM t ORDER BY age LIMIT 1")[:50]
    'SELECT "toolgym 0" AS "name" FROM (SELECT name AS '
    >>> with_ties("SELECT name FROM t LIMIT 1")
    """
    try:
        return careful(lambda: _changed(parse(sql)))
    except SqlglotError:
        return None


def _changed(tree: exp.Expr) -> str | None:
    selects = list(tree.find_all(exp.Select))
    is_changed = False
    for select in reversed(selects):  # the inner ones first
        ranked = _ranked(select)
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


def _ranked(select: exp.Select) -> exp.Expr | None:
    """A SELECT that filters by rank in place of its LIMIT; None if the LIMIT has to stay."""
    order, limit = select.args.get("order"), select.args.get("limit")
    if order is None or not isinstance(limit, exp.Limit) or select.args.get("offset"):
        return None
    if select.is_star or not limit.expression.is_int:
        return None
    is_distinct = bool(select.args.get("distinct"))
    if is_distinct and limit.expression.name != "1":
        return None
    outputs: list[Any] = select.expressions
    by_alias = {each.alias.lower(): each.this for each in outputs if isinstance(each, exp.Alias)}
    for key in order.expressions:
        if key.this.is_int and 0 < int(key.this.name) <= len(outputs):
            key.set("this", outputs[int(key.this.name) - 1].unalias().copy())
        elif isinstance(key.this, exp.Column) and not key.this.table:
            key.set("this", by_alias.get(key.this.name.lower(), key.this).copy())
    names = [
        each.alias if isinstance(each, exp.Alias) else f"toolgym {place}"
        for place, each in enumerate(outputs)
    ]
    if len({name.lower() for name in names}) < len(names):
        return None
    inner = select.copy()
    for part in ("order", "limit", "distinct"):
        inner.set(part, None)
    rank = exp.Window(this=exp.Anonymous(this="rank"), order=order.copy())
    inner.set(
        "expressions",
        [
            *(
                exp.alias_(each.unalias().copy(), name, quoted=True)
                for each, name in zip(outputs, names, strict=True)
            ),
            exp.alias_(rank, _PLACE, quoted=True),
        ],
    )
    shown = [
        exp.alias_(exp.column(name, quoted=True), each.output_name or name, quoted=True)
        for each, name in zip(outputs, names, strict=True)
    ]
    place = exp.column(_PLACE, quoted=True)
    return (
        exp.select(*shown)
        .distinct(distinct=is_distinct)
        .from_(exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("ranked"))))
        .where(exp.LTE(this=place.copy(), expression=limit.expression.copy()))
        .order_by(exp.Ordered(this=place.copy(), nulls_first=True))
    )
