"""Proves that a candidate is a suitable task.

The gold SQL runs within half of a query's budget, so that enough remains for later checks. The
result of the gold SQL must contain no NULL and no duplicate row, must fit into an observation, and
must be the only correct result. Every condition of the question must change the result
(`contrasts`), and other interpretations of the question must give the same result (`readings`). A
candidate is rejected if all values of its result occur in the question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlgym.database.database import Database, QueryResult, open_database
from sqlgym.judging.answers import refusal
from sqlgym.judging.results import compare
from sqlgym.judging.several_results import several_results
from sqlgym.synthesis import english, roles
from sqlgym.synthesis.drafting import Candidate
from sqlgym.synthesis.schema import Entity
from toolgym.errors import ToolError

LEAST_ROWS = 3
"""Maximum number of rows of a table that an agent can read at a glance. A question must involve at
least one larger table.
"""
MOST_ROWS = 25
"""Maximum number of rows of an answer."""
LONGEST_CELL = 100
"""Maximum length of a value of an answer, in characters."""


class Rejected(Exception):
    """Raised if a candidate is rejected. `code` is a key of `REJECTIONS`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def for_proofs(database: Database) -> Database:
    """Return the same file with half of the step budget and a lower row limit."""
    limits = database.limits
    return open_database(
        database.path, replace(limits, steps=limits.steps // 2, rows=MOST_ROWS + 1)
    )


def prove(database: Database, candidate: Candidate, entities: Mapping[str, Entity]) -> QueryResult:
    """Return the result of a candidate after checking that the candidate is a suitable task.

    Args:
        database: A database from `for_proofs`.
        candidate: The question with its gold SQL.
        entities: The tables by name.

    Raises:
        Rejected: The candidate is not suitable, with the first reason found.
    """
    if all(entities[name].rows <= LEAST_ROWS for name in candidate.tables):
        raise Rejected("seen_at_once")
    result = _run(database, candidate.sql)
    _check_result(result, candidate)
    cells = {str(value).casefold() for row in result.rows for value in row}
    question = candidate.question.casefold()
    if all(not cell or english.stands_alone(cell, question) for cell in cells):
        raise Rejected("in_question")
    for sql in candidate.supports:
        if int(_run(database, sql).rows[0][0]) < 2:
            raise Rejected("one_row_only")
    for sql in candidate.contrasts:
        if _is_same(result, _run(database, sql)):
            raise Rejected("condition_without_effect")
    for sql in candidate.readings:
        if not _is_same(result, _run(database, sql)):
            raise Rejected("several_readings")
    several = several_results(database, candidate.sql, result)
    if several is not None:
        raise Rejected(several[0])
    return result


def _run(database: Database, sql: str) -> QueryResult:
    try:
        return database.query(sql)
    except ToolError as error:
        raise Rejected("gold_fails") from error


def _is_same(result: QueryResult, other: QueryResult) -> bool:
    return len(result.rows) == len(other.rows) and (
        compare(result.rows, other.rows, ordered=False).equal
    )


def _check_result(result: QueryResult, candidate: Candidate) -> None:
    """Check the properties that depend only on the result."""
    rows = result.rows
    is_count = "count(" in candidate.sql.partition(" FROM ")[0]
    if not rows or (len(rows) == 1 and rows[0][0] == 0 and is_count):
        raise Rejected("empty")
    values = [value for row in rows for value in row]
    texts = [value for value in values if isinstance(value, str)]
    if any(value is None for value in values):
        raise Rejected("has_null")
    if refusal(result, MOST_ROWS) is not None or any(len(text) > LONGEST_CELL for text in texts):
        raise Rejected("too_long")
    if any(isinstance(value, bytes) for value in values) or any(
        roles.is_unclean(text) or roles.is_blank(text) for text in texts
    ):
        raise Rejected("unclean_value")
    if len(set(rows)) < len(rows):
        raise Rejected("repeated_row")
    if candidate.one_row and len(rows) > 1:
        raise Rejected("not_one_row")
    if candidate.several and len(rows) < 2:
        raise Rejected("one_row_only")
