"""Detects queries whose output depends on no column, as `SELECT 34 FROM student LIMIT 1`."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.parsing import careful, shared_tree
from sqlgym.judging.several_results import is_aggregate


@lru_cache(maxsize=4_096)
def has_constant_output(sql: str) -> bool:
    """Whether a query gives constants only, whatever the tables hold.

    Aggregates, window functions and EXISTS depend on the tables, so they are no constants, nor is a
    constant on condition of them. A query
    that cannot be parsed counts as one that depends on columns.

    >>> has_constant_output("SELECT * FROM (SELECT 34 FROM student LIMIT 1)")
    True
    >>> has_constant_output("SELECT count(*) FROM student")
    False
    """
    try:
        return careful(lambda: _gives_constants(shared_tree(sql), {}))
    except SqlglotError:
        return False


Known = dict[str, bool]
"""Whether a table expression gives constants only, by its lower-case name."""


def _gives_constants(query: exp.Expr, known: Known) -> bool:
    while isinstance(query, exp.Subquery | exp.Paren):
        query = query.this
    expressions = query.args.get("with_") or query.args.get("with")
    known = dict(known)
    for cte in expressions.expressions if expressions is not None else ():
        name, own = cte.alias.lower(), dict(known)
        if expressions is not None and expressions.args.get("recursive"):
            own[name] = True  # where it reads itself; its other parts decide
        known[name] = _gives_constants(cte.this, own)
    if isinstance(query, exp.SetOperation):
        return _gives_constants(query.this, known) and _gives_constants(query.expression, known)
    if not isinstance(query, exp.Select):
        return isinstance(query, exp.Values)
    conditions = [query.args.get(part) for part in ("where", "having")]
    if any(part is not None and _looks(part) for part in conditions):
        return False
    sources = {}
    joins = [join.this for join in query.args.get("joins") or ()]
    origin = query.args.get("from_") or query.args.get("from")
    for source in [*([origin.this] if origin is not None else []), *joins]:
        is_constant = known.get(source.name.lower(), False) and not source.args.get("db")
        if not isinstance(source, exp.Table):
            is_constant = _gives_constants(source, known)
        sources[source.alias_or_name.lower()] = is_constant
    return all(_is_constant(each, sources, known) for each in query.expressions)


def _looks(condition: exp.Expr) -> bool:
    """Whether a condition asks if there are rows, or counts them, which decides what is given."""
    return any(isinstance(n, exp.Exists) or is_aggregate(n) for n in condition.find_all(exp.Func))


def _is_constant(expression: exp.Expr, sources: Known, known: Known) -> bool:
    """Whether an expression has the same values whatever the tables hold."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Query):
            if isinstance(node.parent, exp.Exists | exp.In) or not _gives_constants(node, known):
                return False
        elif isinstance(node, exp.Exists | exp.Window) or is_aggregate(node):
            return False
        elif isinstance(node, exp.Star | exp.Column):
            named = [node.table.lower()] if isinstance(node, exp.Column) and node.table else sources
            if not all(sources.get(name, False) for name in named):
                return False
        else:
            waiting += node.iter_expressions()
    return True
