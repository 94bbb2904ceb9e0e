"""The skeleton of a query: what it asks, whatever the values it asks it of.

Every literal becomes a question mark, one with a sign before it too, and a list of them one alone.
Two queries with one skeleton differ in their constants and in nothing else. The writer of tasks
bounds how many of these it keeps, and splits are cut so that no skeleton is in two of them; both go
by this one rule. Names of tables and columns stay, so that queries on different schemas have
different skeletons.
"""

from __future__ import annotations

import functools
import re

from sqlglot import exp
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import SqlglotError

from sqlgym.database.parsing import careful, parse

# A quote that is doubled ends one text and begins the next, so an open one is looked for once.
_LITERAL = re.compile(r"(?:'[^']*+')++|\b\d++(?:\.\d++)?\b")


@functools.lru_cache(maxsize=8192)
def skeleton(canonical: str) -> str:
    """A query without its literals: what it asks, whatever the value.

    >>> skeleton("SELECT name FROM singer WHERE age > 30 AND city IN ('Rome', 'Oslo')")
    'SELECT name FROM singer WHERE age > ? AND city IN (?)'
    """
    try:
        return careful(lambda: str(_Skeleton(dialect=SQLite()).generate(parse(canonical))))
    except SqlglotError:
        return _LITERAL.sub("?", canonical)


class _Skeleton(SQLite.Generator):  # type: ignore[misc, valid-type]  # a variable, to mypy
    """Prints a query with a question mark for each literal, and one for a list of them.

    The tree stays as it is: to replace one of many nodes side by side, sqlglot goes through all.
    """

    def literal_sql(self, expression: exp.Literal) -> str:
        """A question mark."""
        return "?"

    def neg_sql(self, expression: exp.Neg) -> str:
        """A question mark for a number with a sign."""
        return "?" if _is_literal(expression) else str(super().neg_sql(expression))

    def in_sql(self, expression: exp.In) -> str:
        """One question mark for a list of literals."""
        listed = expression.expressions
        if listed and all(map(_is_literal, listed)):
            return f"{self.sql(expression, 'this')} IN (?)"
        return str(super().in_sql(expression))


def _is_literal(node: exp.Expr) -> bool:
    return isinstance(node.this if isinstance(node, exp.Neg) else node, exp.Literal)
