"""A question about a database, as all parts of this package know it.

It holds the gold SQL and where the database lies, and nothing that has been worked out from them:
what the gold SQL returns is told by `sqlgym.tasks.gold`. A question that the database cannot answer
is a task too, and says what is missing; `sqlgym.datasets.unanswerable` makes them.
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
        problem: Of an entry that cannot be used: code and reason.
    """

    gold_sql: str = ""
    database: Path = Path()
    hardness: str | None = None
    evidence: str = ""
    foreign_keys: tuple[ForeignKey, ...] = field(default=(), compare=False)
    problem: tuple[str, str] | None = None


@dataclass(frozen=True)
class UnanswerableTask(SqlTask):
    """A question whose right answer is that the database has none.

    `gold_sql` is what the question that it was made from was answered by.

    Attributes:
        missing: What the database does not have: "value", "column" or "table".
        name: What that is called in the question.
        because: Why there is no answer, in a sentence.
        search: SQL that looks for a missing value, and finds nothing.
        made_from: The id of the answerable task.
    """

    missing: str = ""
    name: str = ""
    because: str = ""
    search: str = ""
    made_from: str = ""
