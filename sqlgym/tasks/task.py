"""The type `SqlTask`, a question about a database, which all parts of this package use.

A task contains the gold SQL and the path of the database, but no results; `sqlgym.tasks.gold` runs
the gold SQL. A question that the database cannot answer is also a task. An unanswerable task has
`answerable=False` and needs no SQL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sqlgym.database.schema import ForeignKey
from toolgym.tasks import Task


@dataclass(frozen=True)
class SqlTask(Task):
    """A question about a database. The attribute `item` is the id of the database.

    Attributes:
        gold_sql: The SQL whose result is the answer.
        hardness: Spider's level, if the data set states it.
        evidence: BIRD's external knowledge, shown with the question.
        foreign_keys: Foreign keys from `tables.json` that the file does not declare.
        answerable: Whether the database contains the answer. If not, `cannot_answer` is the correct
            call.
        problem: Code and reason if the entry cannot be used.
    """

    gold_sql: str = ""
    database: Path = Path()
    hardness: str | None = None
    evidence: str = ""
    foreign_keys: tuple[ForeignKey, ...] = field(default=(), compare=False)
    answerable: bool = True
    problem: tuple[str, str] | None = None
