"""How far an exploration has come: a potential between 0 and 1, never a count.

    progress = TABLES * share of the gold query's tables looked at
             + RESULT * closeness of the best query result to the gold result

A table is looked at by `describe`, by `sample`, or by a query that read it (the authorizer knows).
The closeness is an F1 of columns and rows, so that dumping a table earns little; and only a query
that read at least one of the gold's tables can raise it, so that a constant earns nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlgym.database.database import QueryResult
from sqlgym.judging.results import overlap
from sqlgym.tasks.gold import Gold

TABLES, RESULT = 0.3, 0.7
NEGLIGIBLE = 0.02
"""A result so much larger than the gold that it cannot come closer than this is not compared."""


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
        self._seen.update(self._wanted.intersection(map(str.lower, tables)))
        return self.progress

    def got(self, result: QueryResult) -> float:
        """A query returned a result; returns the progress."""
        read = result.tables_read & self._wanted
        self._seen |= read
        if read and self._closest < 1.0 and self._closest < _at_most(self._gold, result):
            self._closest = max(self._closest, closeness(self._gold, result))
        return self.progress

    @property
    def progress(self) -> float:
        """The potential, 0 to 1."""
        share = len(self._seen) / len(self._wanted)
        return min(1.0, TABLES * share + RESULT * self._closest)


def closeness(gold: Gold, result: QueryResult) -> float:
    """How close a result comes to the gold, 0 to 1; worked out once for a group of rollouts."""

    def work() -> tuple[Gold, float]:  # the gold is kept with it, so that its id stays its own
        same = gold.result.rows == result.rows
        return gold, 1.0 if same else overlap(gold.result.rows, result.rows)

    return result.once(("closeness", id(gold)), work)[1]


def _at_most(gold: Gold, result: QueryResult) -> float:
    """What the sizes of the two results alone let the closeness be; 0 where it is negligible."""
    rows, columns = len(result.rows), len(result.columns)
    gold_rows, gold_columns = len(gold.result.rows), len(gold.result.columns)
    bound = min(rows, gold_rows) / (rows + gold_rows) * min(columns, gold_columns)
    bound *= 4 / (columns + gold_columns)
    return bound if bound >= NEGLIGIBLE else 0.0
