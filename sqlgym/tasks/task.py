"""A question about a database, as all parts of this package know it.

It holds the gold SQL and where the database lies, and nothing that has been worked out from them:
what the gold SQL returns is told by `sqlgym.tasks.gold`. A question that the database cannot answer
is a task too: `answerable` is False, and it needs no SQL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sqlgym.database.schema import ForeignKey
from toolgym.tasks import Task


@dataclass(frozen=True)
class SqlTask(Task):
    """A question about a database; `item` is the database's id.

    Attributes:
        gold_sql: The SQL whose result is the answer.
        hardness: Spider's level, where the data set tells it.
        evidence: What BIRD calls external knowledge; shown with the question.
        foreign_keys: References that `tables.json` tells and the file does not declare.
        answerable: Whether the database has an answer. If not, `cannot_answer` is the right call.
        problem: Of an entry that cannot be used: code and reason.
    """

    gold_sql: str = ""
    database: Path = Path()
    hardness: str | None = None
    evidence: str = ""
    foreign_keys: tuple[ForeignKey, ...] = field(default=(), compare=False)
    answerable: bool = True
    problem: tuple[str, str] | None = None
