"""Verdicts on a query or an answer, without an episode.

    sqlgym.compare("world.sqlite", "SELECT max(area) FROM country", prediction)
    sqlgym.check_answer([(17_098_242,)], "17,098,242 km")

Any model output results in a `Verdict`. A gold query or result that cannot be used raises
`TaskRefused`. The reason in a verdict is intended for reports and is never shown to an agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from sqlgym.database.database import Database, QueryResult, open_database
from sqlgym.database.diagnosis import TRANSIENT
from sqlgym.database.limits import Limits
from sqlgym.judging import results, spider_match
from sqlgym.judging.answers import GoldAnswer, matches
from sqlgym.judging.constant_output import has_constant_output
from sqlgym.judging.results import Verdict, sound
from sqlgym.judging.several_results import several_results
from sqlgym.judging.suite import suite_of
from sqlgym.judging.ties import free_runs
from toolgym.errors import ConfigurationError, EnvironmentFault, TaskRefused, ToolError

__all__ = ["Match", "Verdict", "check_answer", "check_match", "compare", "sound"]

Match = Literal["sound", "spider", "suite"]
LIMITS = {"rows": 100_000, "result_bytes": 64_000_000}
"""Default limits of `compare`, whose results need not fit into an observation."""
_LONGEST_NAME = 60
"""Number of characters of a gold query that are shown in a refusal."""


def compare(
    database: Database | Path | str,
    gold_sql: str,
    predicted_sql: str,
    match: Match = "sound",
    keep_distinct: bool = False,
    golds: Sequence[str] = (),
    limits: Limits | Mapping[str, float] | None = None,
) -> Verdict:
    """Return whether a query returns the result of the gold query.

    Args:
        database: An SQLite file, or an open `Database`. Both queries have read-only access.
        predicted_sql: The query to check.
        match: The comparison. With "sound", DISTINCT and the order of columns matter, and the order
            of rows matters if the gold query has a top-level ORDER BY; see
            `sqlgym.judging.results`. "spider" reproduces Spider's official evaluator; see
            `sqlgym.judging.spider_match`. "suite" applies "sound" to the database and to other
            instances of it; see `sqlgym.judging.suite`.
        keep_distinct: Whether DISTINCT matters with "spider". With the other comparisons, DISTINCT
            always matters.
        golds: With "suite", the gold queries of this database for which the instances are made; an
            empty sequence means only `gold_sql`.
        limits: Limits of each statement, as `sqlgym.database.limits.Limits` or a mapping such as
            `{"steps": 2_000_000_000}`. None means the limits of an open `Database`; for a file, the
            default limits of an environment, but with 100,000 rows.

    Returns:
        The verdict. The reason in the verdict is the first difference, or `error: ...`.

    Raises:
        TaskRefused: The gold query fails (`gold_sql_error`, ...) or returns more rows than the
            limits allow (`result_too_large`). With "sound" and "suite", a gold query is also
            rejected if it returns no rows (`empty_gold`) or has several correct results
            (`tied_limit`, `open_choice`).
        EnvironmentFault: The file cannot be read, or a query ran out of time.
        ConfigurationError: `match` is unknown, or a limit is invalid.
    """
    check_match(match)
    if not isinstance(predicted_sql, str):  # a parser may have returned a number or nothing
        predicted_sql = ""
    if not isinstance(database, Database):
        given = LIMITS if limits is None else limits
        if isinstance(given, Mapping):
            given = {**LIMITS, **given}
        opened = open_database(database, Limits.of(given))
    else:
        opened = database if limits is None else open_database(database.path, Limits.of(limits))
    if match == "spider":
        gold_sql = spider_match.prepare(gold_sql, keep_distinct)
        predicted_sql = spider_match.prepare(predicted_sql, keep_distinct)
    name = gold_sql if len(gold_sql) <= _LONGEST_NAME else f"{gold_sql[: _LONGEST_NAME - 4]} ..."
    gold = run_gold(opened, gold_sql, name)
    check_whole(gold, name)
    runs: tuple[int, ...] = ()
    if match != "spider":
        if not gold.rows:
            reason = "its gold SQL finds no rows, so any query without rows would be correct."
            raise TaskRefused(name, "empty_gold", reason)
        runs = fair_order(opened, gold_sql, gold, name)
    try:
        result = opened.query(predicted_sql)
    except ToolError as error:
        return Verdict(False, f"error: {error.code}: {error.message}")
    if match == "spider":
        return spider_match.compare(gold.rows, result.rows, spider_match.is_ordered(gold_sql))
    verdict = sound_query(gold, gold_sql, result, predicted_sql, runs)
    if match == "suite" and verdict.equal:
        suite = suite_of(opened.path, golds or [gold_sql], opened.limits)
        return suite.judge(gold_sql, predicted_sql).verdict
    return verdict


def sound_query(
    gold: QueryResult, gold_sql: str, result: QueryResult, sql: str, runs: Sequence[int]
) -> Verdict:
    """Check a query as with `match="sound"`: its result must be correct and depend on columns.

    Args:
        runs: Lengths of runs of tied rows, from `sqlgym.judging.ties.free_runs`; empty if the order
            of rows does not matter.
    """
    verdict = sound(gold, result, runs)
    if verdict.equal and has_constant_output(sql) and not has_constant_output(gold_sql):
        return Verdict(False, "constant output")
    return verdict


def check_answer(
    gold_rows: Sequence[Sequence[Any]],
    value: Any,
    ordered: bool = False,
    columns: Sequence[str] = (),
    question: str = "",
) -> Verdict:
    """Return whether a value is the correct answer for the gold rows; see `sqlgym.judging.answers`.

    Args:
        gold_rows: The result of the gold query, which has at least one row.
        value: The answer, of any type and in any format. This function raises no exception,
            whatever the value is.
        ordered: Whether the order of the rows matters.
        columns: The names of the columns, which an answer can repeat.
        question: The question in words. A number can have a unit that the question or the column
            name mentions. If neither mentions a unit, any known unit except `%` is accepted.

    Raises:
        TaskRefused: There are no gold rows (`empty_gold`).

    >>> check_answer([("Joe",), ("Ann",)], "Ann, Joe").equal
    True
    >>> check_answer([(72,)], "72 kg", question="How many metres long is it?").equal
    False
    """
    if not gold_rows or not gold_rows[0]:
        raise TaskRefused("gold_rows", "empty_gold", "any answer without rows would be correct.")
    runs = (1,) * len(gold_rows) if ordered else ()
    gold = GoldAnswer(tuple(columns), tuple(map(tuple, gold_rows)), runs, question)
    return matches(gold, value)


def check_match(match: str) -> None:
    """Check that the name of a comparison is valid.

    Raises:
        ConfigurationError: The name is unknown.
    """
    if match not in get_args(Match):
        raise ConfigurationError(f'match must be "sound", "spider" or "suite", got {match!r}.')


def run_gold(database: Database, sql: str, name: str) -> QueryResult:
    """Run a gold query.

    Args:
        name: Name of the task or gold query in error messages.

    Raises:
        TaskRefused: The gold query fails.
        EnvironmentFault: The query ran out of time or memory.
    """
    try:
        return database.query(sql)
    except ToolError as error:
        if error.code in TRANSIENT:
            raise EnvironmentFault(
                f"A gold query on {database.path} ended before its step limit: {error.message}",
                "Increase `memory_bytes` in limits=.",
            ) from None
        reason = f"its gold SQL fails: {error.message}"
        raise TaskRefused(name, f"gold_{error.code}", reason) from None


def check_whole(gold: QueryResult, name: str) -> None:
    """Check that the result of a gold query is within the limits.

    Raises:
        TaskRefused: The result is truncated (`result_too_large`).
    """
    if gold.truncated:
        reason = f"its gold SQL returns more than the {len(gold.rows):,} rows that are compared."
        raise TaskRefused(name, "result_too_large", reason)


def fair_order(database: Database, sql: str, result: QueryResult, name: str) -> tuple[int, ...]:
    """Return the lengths of the runs of tied rows, or () if the order of rows does not matter.

    Raises:
        TaskRefused: The gold query has several correct results.
    """
    several = several_results(database, sql, result)
    if several is not None:
        raise TaskRefused(name, *several)
    return free_runs(database, sql, result) if results.is_ordered(sql) else ()
