"""Detect queries whose output depends on no column, such as `SELECT 34 FROM student LIMIT 1`."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.parsing import careful, shared_tree
from sqlgym.judging.several_results import is_aggregate


@lru_cache(maxsize=4_096)
def has_constant_output(sql: str) -> bool:
    """Return whether a query returns only constants, regardless of the contents of the tables.

    Aggregates, window functions and EXISTS depend on the tables, even if they occur in a condition.
    A query that cannot be parsed counts as depending on columns.

    >>> has_constant_output("SELECT * FROM (SELECT 34 FROM student LIMIT 1)")
    True
    >>> has_constant_output("SELECT count(*) FROM student")
    False
    """
    try:
        return careful(lambda: not _depends_on_tables(shared_tree(sql)))
    except SqlglotError:
        return False


def _depends_on_tables(tree: exp.Expr) -> bool:
    """Return whether any SELECT outside of conditions returns a column of a table or computes a
    value.
    """
    made_here = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    tables = [t for t in tree.find_all(exp.Table) if t.db or t.name.lower() not in made_here]
    names = {table.alias_or_name.lower() for table in tables}
    for select in tree.find_all(exp.Select):
        if select.find_ancestor(exp.Where, exp.Having) is not None:
            continue
        reads = "from_" not in select.args and "from" not in select.args
        reads = reads or any(table.parent_select is select for table in tables)
        conditions = filter(None, map(select.args.get, ("where", "having")))
        if any(is_aggregate(n) or isinstance(n, exp.Exists) for c in conditions for n in c.walk()):
            return True
        nodes = list(select.expressions)
        while nodes:
            node = nodes.pop()
            if is_aggregate(node) or isinstance(node, exp.Exists | exp.Window):
                return True
            if isinstance(node, exp.Column | exp.Star):
                table = node.table.lower() if isinstance(node, exp.Column) else ""
                if table in names if table else reads:
                    return True
            elif not isinstance(node, exp.Query):
                nodes += node.iter_expressions()
    return False
