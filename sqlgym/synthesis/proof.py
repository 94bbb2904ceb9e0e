"""Proof that a candidate is a fair task: every check before it is kept.

The gold SQL runs under the guard and within half a query's budget, so that whatever checks it later
has room. Its result has no NULL, no row twice, fits an observation and is the only right one. Each
condition of the question matters (`contrasts`), and another reading of the words would find the
same (`readings`). The answer is not a word of the question, and not what a first look shows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from sqlgym.database.database import Database, QueryResult, open_database
from sqlgym.database.limits import STEPS_PER_TICK
from sqlgym.judging.answers import refusal
from sqlgym.judging.results import compare
from sqlgym.judging.several_results import several_results
from sqlgym.judging.ties import tied_limit
from sqlgym.synthesis.drafting import Candidate
from sqlgym.synthesis.language import english
from sqlgym.synthesis.reading import roles
from sqlgym.synthesis.reading.world import LARGE, Entity
from sqlgym.synthesis.small_copy import SmallCopy
from toolgym.errors import ToolError

LEAST_ROWS = 3
"""A table of so many rows or fewer is seen at one glance, so nothing is asked about it alone."""
MOST_ROWS = 25
"""Rows of an answer."""
LONGEST_CELL = 100
"""Characters of a value of an answer."""


class Rejected(Exception):
    """A candidate is not kept; `code` is one of `REJECTIONS`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def prove(
    database: Database,
    candidate: Candidate,
    entities: Mapping[str, Entity],
    small: SmallCopy | None = None,
) -> QueryResult:
    """The result of a candidate that is a fair task.

    Args:
        small: A small copy of a large database, on which it is tried first.

    Raises:
        Rejected: It is none; the first reason that is found.
    """
    if joins_idly(candidate.sql):
        raise Rejected("idle_join")
    is_large = any(entities[name].rows > LARGE for name in candidate.tables)
    shown = _try(small, candidate) if small is not None and is_large else None
    if is_large:
        _check_start(database, candidate.sql)
    result = _run(_within_half(database) if is_large else database, candidate.sql)
    if result.ticks * STEPS_PER_TICK > database.limits.steps // 2:
        raise Rejected("gold_fails")
    _check_result(result, candidate)
    _check_guess(result, candidate, entities)
    _check_conditions(database, result, candidate, shown or frozenset())
    if shown is None:
        several = several_results(database, candidate.sql, result)
        if several is not None:
            raise Rejected(several[0])
    elif tied_limit(database, candidate.sql, result) is not None:
        raise Rejected("tied_limit")
    return result


def _within_half(database: Database) -> Database:
    """The same file, where a statement ends at half of the budget."""
    limits = database.limits
    return open_database(database.path, replace(limits, steps=limits.steps // 2))


def _try(small: SmallCopy, candidate: Candidate) -> frozenset[str] | None:
    """Try a candidate on a small copy, and tell which of its contrasts that settles.

    A condition that leaves out a row of the copy leaves out that row of the file. So a count or a
    list that is another without it is another on the file. Whether the order of rows leaves a
    choice, but for ties at a LIMIT, is told by the copy too: that lies in how a query is written.

    Returns:
        None where the copy has no result, and so tells nothing.
    """
    sql = candidate.sql
    result = _run(small.database, sql)
    steps = small.ticks(result.ticks, candidate.tables) * STEPS_PER_TICK
    if steps > small.database.limits.steps // 2:
        raise Rejected("gold_fails")
    if len(result.rows) > MOST_ROWS:
        raise Rejected("too_long")
    if not result.rows or result.rows == ((0,),):
        return None
    _check_conditions(small.database, result, replace(candidate, supports=()))
    several = several_results(small.database, sql, result)
    if several is not None:
        raise Rejected(several[0])
    selected, _, rest = sql.partition(" FROM ")
    is_count = "count(*)" in selected.removeprefix("SELECT ").split(", ")
    is_of_rows = is_count or ("(" not in selected and "DISTINCT" not in selected)
    return frozenset(candidate.contrasts if is_of_rows and not _OF_MORE.search(rest) else ())


_OF_MORE = re.compile(r"\bSELECT\b|\bGROUP BY\b|\bLIMIT\b")
"""A query with one of these may have a result that no single row decides."""


def joins_idly(sql: str) -> bool:
    """Whether a joined table serves for nothing but the column by which it is joined.

    The other side of the reference has its value already.

    >>> start = "SELECT T1.day FROM loan AS T1 JOIN member AS T2 ON T1.member = T2.id WHERE"
    >>> joins_idly(f"{start} T2.id = 3"), joins_idly(f"{start} T2.name = 'Ann'")
    (True, False)
    """
    if " JOIN " not in sql:
        return False
    plain = _LITERAL.sub("''", sql)
    joined, used = defaultdict(set), defaultdict(set)
    for clause in _ON.findall(plain):
        for alias, column in _COLUMN.findall(clause):
            joined[alias].add(column)
    for alias, column in _COLUMN.findall(_ON.sub("", plain)):
        used[alias].add(column)
    return any(used[alias] and used[alias] == joined[alias] for alias in joined)


_LITERAL = re.compile(r"'[^']*'")
_COLUMN = re.compile(r"\b(T\d)\.(\"[^\"]*\"|\w+)")
_ON = re.compile(r" ON T\d\.(?:\"[^\"]*\"|\w+) = T\d\.(?:\"[^\"]*\"|\w+)")


def _check_start(database: Database, sql: str) -> None:
    """Whether a list is too long, told without reading all of a large table."""
    if not any(word in sql for word in ("(", "GROUP BY", "ORDER BY", "LIMIT")):
        started = _run(database, f"SELECT * FROM ({sql}) LIMIT {MOST_ROWS + 1}")
        if len(started.rows) > MOST_ROWS:
            raise Rejected("too_long")


def _run(database: Database, sql: str) -> QueryResult:
    try:
        return database.query(sql)
    except ToolError as error:
        raise Rejected("gold_fails") from error


def _check_result(result: QueryResult, candidate: Candidate) -> None:
    """What can be seen of the result alone."""
    rows = result.rows
    if not rows:
        raise Rejected("empty")
    if len(rows) == 1 and rows[0][0] == 0 and "count(" in candidate.sql.partition(" FROM ")[0]:
        raise Rejected("empty")
    if any(value is None for row in rows for value in row):
        raise Rejected("has_null")
    if refusal(result, MOST_ROWS) is not None:
        raise Rejected("too_long")
    texts = [value for row in rows for value in row if isinstance(value, str)]
    if any(len(text) > LONGEST_CELL for text in texts):
        raise Rejected("too_long")
    if any(isinstance(value, bytes) for row in rows for value in row) or any(
        roles.is_unclean(text) or roles.is_blank(text) for text in texts
    ):
        raise Rejected("unclean_value")
    if len(set(rows)) < len(rows):
        raise Rejected("repeated_row")
    if candidate.one_row and len(rows) > 1:
        raise Rejected("not_one_row")
    if candidate.several and len(rows) < 2:
        raise Rejected("one_row_only")
    if candidate.number and len(rows) != candidate.number:
        raise Rejected("not_as_many")
    for place in candidate.alphabetical:
        _check_alphabet([str(row[place]) for row in rows])


def _check_alphabet(texts: list[str]) -> None:
    """Whether the order of bytes is that of the alphabet, as everybody would have it."""
    plain = [re.sub(r"[^a-z0-9]", "", text.casefold()) for text in texts]
    up = sorted(plain)
    if not all(text.isascii() for text in texts) or plain not in (up, up[::-1]):
        raise Rejected("not_alphabetical")


def _check_guess(result: QueryResult, candidate: Candidate, entities: Mapping[str, Entity]) -> None:
    """Whether the answer can be had without asking."""
    cells = {str(value).casefold() for row in result.rows for value in row}
    question = candidate.question.casefold()
    if all(not cell or english.stands_alone(cell, question) for cell in cells):
        raise Rejected("in_question")
    used = [entities[name] for name in candidate.tables]
    if all(entity.rows <= LEAST_ROWS for entity in used):
        raise Rejected("seen_at_once")
    if len(result.rows) == 1 and "(" not in candidate.sql.partition(" FROM ")[0]:
        texts = {str(value) for value in result.rows[0]}
        in_first_row = any(texts <= entity.first_row for entity in used)
        if in_first_row and candidate.sql.rstrip("0123456789").endswith("LIMIT "):
            raise Rejected("seen_at_once")


def _check_conditions(
    database: Database,
    result: QueryResult,
    candidate: Candidate,
    shown: frozenset[str] = frozenset(),
) -> None:
    """That each condition matters, but for those of which it is shown, and that no other reading
    of the question finds another result."""
    for sql in candidate.supports:
        if int(_run(database, sql).rows[0][0]) < 2:
            raise Rejected("one_row_only")
    for sql in candidate.contrasts:
        if sql not in shown and _is_same(result, _run(database, sql)):
            raise Rejected("condition_without_effect")
    for sql in candidate.readings:
        if not _is_same(result, _run(database, sql)):
            raise Rejected("several_readings")


def _is_same(result: QueryResult, other: QueryResult) -> bool:
    if len(result.rows) != len(other.rows):
        return False
    return compare(result.rows, other.rows, ordered=False).equal
