"""How far an exploration has come: a potential between 0 and 1, never a count.

    progress = TABLES * share of the gold query's tables looked at
             + RESULT * closeness of the best query result to the gold result

A table is looked at by `describe`, by `sample`, or by a query that read it (the authorizer knows).
The closeness is an F1 of columns and rows, so that dumping a table earns little; and only a query
that read at least one of the gold's tables can raise it, so that a constant earns nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlgym.database import QueryResult
from sqlgym.results import overlap
from sqlgym.tasks import Gold

TABLES, RESULT = 0.3, 0.7


class Exploration:
    """The state of one episode's exploration.

    Args:
        gold: What is to be found.
    """

    def __init__(self, gold: Gold) -> None:
        self._gold = gold
        self._wanted = frozenset(gold.result.tables_read)
        self._seen: set[str] = set()
        self._closest = 0.0

    def saw(self, tables: Iterable[str]) -> float:
        """Tables were looked at; returns the progress."""
        self._seen |= {table.lower() for table in tables} & self._wanted
        return self.progress

    def got(self, result: QueryResult) -> float:
        """A query returned a result; returns the progress."""
        if result.tables_read & self._wanted:
            closeness = overlap(self._gold.result.rows, result.rows)
            self._closest = max(self._closest, closeness)
        return self.saw(result.tables_read)

    @property
    def progress(self) -> float:
        """The potential, 0 to 1."""
        share = len(self._seen) / len(self._wanted)
        return min(1.0, TABLES * share + RESULT * self._closest)
