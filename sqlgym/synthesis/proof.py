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
from sqlgym.synthesis import english, roles
from sqlgym.synthesis.drafting import Candidate
from sqlgym.synthesis.schema import LARGE, Entity
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
    return prove_on_file(database, candidate, entities, first_look(candidate, entities, small))


def first_look(
    candidate: Candidate, entities: Mapping[str, Entity], small: SmallCopy | None
) -> frozenset[str] | None:
    """What a small copy shows of a candidate about a large table, without asking the file.

    Returns:
        Its contrasts and supports that need not be asked any more; None where nothing is shown.

    Raises:
        Rejected: It is no fair task, or would cost too much.
    """
    if joins_idly(candidate.sql):
        raise Rejected("idle_join")
    return _try(small, candidate) if small is not None and _is_large(candidate, entities) else None


def _is_large(candidate: Candidate, entities: Mapping[str, Entity]) -> bool:
    return any(entities[name].rows > LARGE for name in candidate.tables)


def prove_on_file(
    database: Database,
    candidate: Candidate,
    entities: Mapping[str, Entity],
    shown: frozenset[str] | None,
) -> QueryResult:
    """The result of a candidate of which `first_look` has shown something; it raises as `prove`."""
    is_large = _is_large(candidate, entities)
    if is_large:
        _check_start(database, candidate.sql)
    is_cut_clearly = shown is not None and _cuts_clearly(database, candidate.sql)
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
    elif not is_cut_clearly and tied_limit(database, candidate.sql, result) is not None:
        raise Rejected("tied_limit")
    return result


def _within_half(database: Database) -> Database:
    """The same file, where a statement ends at half of the budget."""
    limits = database.limits
    return open_database(database.path, replace(limits, steps=limits.steps // 2))


def _try(small: SmallCopy, candidate: Candidate) -> frozenset[str] | None:
    """Try a candidate on a small copy, and tell which of its contrasts and supports that settles.

    Whether the order of rows leaves a choice, but for ties at a LIMIT, is told by the copy too:
    that lies in how a query is written.

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
    if not small.unlike.isdisjoint(candidate.tables):
        return frozenset()
    shown = [each for each in candidate.contrasts if _differs_by_rows(sql, each)]
    shown += [
        each
        for each in candidate.supports
        if _counts_rows(each) and int(_run(small.database, each).rows[0][0]) >= 2
    ]
    return frozenset(shown)


def _differs_by_rows(sql: str, other: str) -> bool:
    """Whether a list or a count that differs on some rows of a table differs on all of them.

    That is so where it is without one of the conditions: each row of the copy that this lets in, or
    leaves out, is one of the file, and nothing takes its place there.

    >>> gold = "SELECT count(*) FROM loan WHERE day > 3 AND fine < 2"
    >>> _differs_by_rows(gold, "SELECT count(*) FROM loan WHERE fine < 2")
    True
    >>> _differs_by_rows(gold, "SELECT count(*) FROM loan WHERE day < 3 AND fine < 2")
    False
    >>> _differs_by_rows("SELECT sum(fine) FROM loan WHERE day > 3", "SELECT sum(fine) FROM loan")
    False
    """
    selected, _, rest = sql.partition(" FROM ")
    is_count = "count(*)" in selected.removeprefix("SELECT ").split(", ")
    is_list = "(" not in selected and "DISTINCT" not in selected
    if not (is_count or is_list) or _OF_MORE.search(rest) or len(sql) <= len(other):
        return False
    pairs = enumerate(zip(sql, other, strict=False))
    start = next((place for place, (a, b) in pairs if a != b), len(other))
    end = len(sql) - (len(other) - start)
    # Words that both sides of a condition share may lie on either side of the cut.
    return sql[end:] == other[start:] and any(
        _CONDITION.fullmatch(sql[start - back : end - back])
        for back in range(min(start, end - start, _SHARED) + 1)
        if sql[start - back : start] == sql[end - back : end]
    )


_OF_MORE = re.compile(r"\b(?:SELECT|GROUP BY|HAVING|LIMIT|LEFT|RIGHT|FULL|NOT EXISTS)\b", re.I)
"""A query with one of these may have a result that no single row decides."""
_CONDITION = re.compile(
    r"(?!.* (?:JOIN|FROM|CASE) )(?: WHERE (?!.* WHERE ).*|(?: AND| OR) .*|.* (?:AND|OR) )"
)
"""What is left out with a condition."""
_SHARED = 40
"""Letters that the words before a condition may share with its last ones."""


def _counts_rows(sql: str) -> bool:
    """Whether a statement counts rows, or their values, and so never less where there are more.

    >>> _counts_rows("SELECT count(DISTINCT day) FROM loan WHERE fine > 2")
    True
    >>> _counts_rows("SELECT count(*) FROM loan WHERE fine > (SELECT avg(fine) FROM loan)")
    False
    """
    counted, _, rest = sql.partition(" FROM ")
    return bool(_COUNT.fullmatch(counted)) and not _OF_MORE.search(rest)


_COUNT = re.compile(r'SELECT count\((?:\*|(?:DISTINCT )?(?:\w+\.)?(?:\w+|"[^"()]*"))\)')


def _cuts_clearly(database: Database, sql: str) -> bool:
    """Whether the last row within a LIMIT and the first behind it are told apart by their order.

    One look at these two says the same as two at all rows that come before, for a query of one
    SELECT that orders by one thing. It comes before the gold: on a large table most rows tie.

    Returns:
        False where it is another query, of which nothing is told.

    Raises:
        Rejected: The two rows tie.
    """
    blank = _LITERAL.sub(lambda each: f"'{'_' * (len(each[0]) - 2)}'", sql)
    ordered = _ORDERED.fullmatch(blank)
    if ordered is None:
        return False
    key, source = sql[slice(*ordered.span("key"))], sql[slice(*ordered.span("source"))]
    last = int(ordered["limit"]) - 1
    rows = f"SELECT {key} AS place FROM {source} LIMIT 2 OFFSET {last}"
    try:
        tied = database.query(f"SELECT count(DISTINCT place) < count(*) FROM ({rows})").rows[0][0]
    except ToolError:
        return False
    if tied:
        raise Rejected("tied_limit")
    return True


_ORDERED = re.compile(
    r"SELECT (?!DISTINCT )[^\s,\"]+(?:, [^\s,\"]+)*"  # without other names, which an order may mean
    r" FROM (?P<source>(?:(?!SELECT|LIMIT|ORDER BY).)*"
    r" ORDER BY (?P<key>(?!\d+ )(?:(?!SELECT|LIMIT)[^,])*) (?:ASC|DESC))"
    r" LIMIT (?P<limit>[1-9]\d*)"
)


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
    if not any(word in sql for word in ("(", "GROUP BY", "ORDER BY", "LIMIT", "EXCEPT")):
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
    """That each condition matters, and that no other reading of the question finds another result.

    Args:
        shown: Contrasts and supports that need not be asked.
    """
    for sql in candidate.supports:
        if sql not in shown and int(_run(database, sql).rows[0][0]) < 2:
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
