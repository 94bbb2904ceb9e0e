"""The results of a synthesis: tasks, and a report on candidates, rejections and tables.

A rejection has a stable code, which `REJECTIONS` explains. A candidate is rejected for the first
reason found, so the counts do not include all defects.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from sqlgym.tasks.hardness import Hardness

LEVELS: tuple[Hardness, ...] = ("easy", "medium", "hard", "extra")
"""The hardness levels, starting with the easiest."""

REJECTIONS: dict[str, str] = {
    "unfit": "The template needs a table, column or reference that was not drawn.",
    "asked_before": "The same SQL was a candidate before.",
    "gold_fails": "SQLite rejects the SQL, or the SQL takes more than half of a query's budget.",
    "empty": "The SQL returns no rows, or a count of zero.",
    "has_null": "The result contains NULL.",
    "too_long": "The result has too many rows, or values that are too long, for an answer.",
    "unclean_value": "A value of the result cannot be copied from an observation.",
    "repeated_row": "The result contains duplicate rows, which the question does not suggest.",
    "not_one_row": "The question asks for one row, but the result has several.",
    "one_row_only": "The question needs several rows, but there is only one.",
    "tied_limit": "A LIMIT cuts through tied rows, so several results are correct.",
    "open_choice": "The SQL does not determine which of several values it returns.",
    "condition_without_effect": "The question has the same answer without one of its conditions.",
    "several_readings": "Another reading of the question has a different answer.",
    "in_question": "The answer is a word of the question.",
    "seen_at_once": "The first row of a table contains the answer, or the entire table is visible.",
    "common_answer": "Too many tasks already have this answer.",
    "near_duplicate": "Another task has the same canonical SQL.",
    "skeleton_full": "Enough other tasks differ from this one only in their literals.",
    "same_question": "Another task has the same question with different SQL.",
    "unparsed": "The SQL cannot be parsed, so its hardness and canonical form are unknown.",
    "table_full": "A table of the candidate has more than its share of the questions.",
    "level_full": "Enough tasks of this hardness are stored for later.",
}
"""Codes and meanings of all reasons to reject a candidate."""


@dataclass(frozen=True)
class SynthTask:
    """A question about a database, with the SQL that answers it.

    Attributes:
        hardness: Spider's level, measured on the SQL.
        template: The stable name of the question's template, such as "count-filtered".
        canonical: The SQL in canonical form, which is the same for near-duplicates; see
            `canonical_sql`.
    """

    question: str
    sql: str
    hardness: Hardness
    template: str
    tables: tuple[str, ...]
    canonical: str

    def entry(self, db_id: str) -> dict[str, Any]:
        """Return the task as an entry of a data set in the Spider layout, without an id."""
        return {
            "db_id": db_id,
            "question": self.question,
            "query": self.sql,
            "hardness": self.hardness,
            "template": self.template,
        }


@dataclass
class SynthesisReport:
    """Counts of all candidates by outcome, filled while a stream runs.

    Attributes:
        candidates: Number of candidates.
        kept: Number of candidates that became tasks.
        rejected: Number of rejected candidates, by the codes of `REJECTIONS`.
        missing: Reasons why hardness levels have fewer tasks than requested, by level.
        tables_left_out: Reasons why tables have no questions, by table.
        references: Inferred references, such as `song.singer -> singer.id`.
    """

    candidates: int = 0
    kept: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    by_hardness: Counter[str] = field(default_factory=Counter)
    by_template: Counter[str] = field(default_factory=Counter)
    missing: dict[str, str] = field(default_factory=dict)
    tables_left_out: dict[str, str] = field(default_factory=dict)
    references: list[str] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        """Number of proved candidates that were not needed, since other levels had larger
        deficits.
        """
        return self.candidates - self.kept - self.rejected.total()


@dataclass(frozen=True)
class Synthesis:
    """The tasks of one database in the order in which they were found, and the report."""

    tasks: tuple[SynthTask, ...]
    report: SynthesisReport
