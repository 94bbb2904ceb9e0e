"""Verdicts on a query and on an answer, without an episode: the two questions of a leaderboard.

    sqlgym.compare("world.sqlite", "SELECT max(area) FROM country", prediction)
    sqlgym.check_answer([(17_098_242,)], "17,098,242 km")

Whatever a model wrote gets a `Verdict`, never an exception; what is wrong with the gold is raised,
since no verdict would be fair. The reason of a verdict is for reports: an agent never sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from sqlgym.database.database import Database, QueryResult, open_database
from sqlgym.database.limits import Limits
from sqlgym.judging import results, spider_match
from sqlgym.judging.answers import GoldAnswer, matches
from sqlgym.judging.constant_output import has_constant_output
from sqlgym.judging.results import Verdict, sound
from sqlgym.judging.several_results import several_results
from sqlgym.judging.suite import suite_of
from sqlgym.judging.ties import free_runs
from toolgym.errors import ConfigurationError, TaskRefused, ToolError

__all__ = ["Match", "Verdict", "check_answer", "check_match", "compare", "sound"]

Match = Literal["sound", "spider", "suite"]
LIMITS = Limits(rows=100_000, result_bytes=64_000_000)
"""For a path that is given to `compare`: an answer need not fit into an observation there."""
_LONGEST_NAME = 60


def compare(
    database: Database | Path | str,
    gold_sql: str,
    predicted_sql: str,
    match: Match = "sound",
    keep_distinct: bool = False,
    golds: Sequence[str] = (),
) -> Verdict:
    """Whether a query gives what the gold query gives.

    Args:
        database: An SQLite file, or an open `Database`, whose limits then apply. Both queries run
            under the guard: they can only read.
        predicted_sql: The query to judge; whatever it holds, nothing is raised for it.
        match: "sound" compares soundly, see `sqlgym.judging.results`: DISTINCT and the order of
            columns count, the order of rows if the gold orders at top level. "spider" gives the
            verdict of Spider's official evaluator, see `sqlgym.judging.spider_match`. "suite"
            compares soundly, and where that says right, on other instances of the database too, see
            `sqlgym.judging.suite`.
        keep_distinct: With "spider", DISTINCT counts; with the others it always does.
        golds: With "suite", the gold queries of this database that its instances are made for;
            without them, they are made for this gold alone.

    Returns:
        The verdict, and in its reason the first difference, or `error: ...`.

    Raises:
        TaskRefused: The gold fails (`gold_sql_error`, ...), gives more rows than the limits allow
            (`result_too_large`) or, but with "spider", nothing (`empty_gold`), or any of several
            results (`tied_limit`, `open_choice`).
        EnvironmentFault: The file cannot be read.
        ConfigurationError: There is no such `match`.
    """
    check_match(match)
    if not isinstance(predicted_sql, str):  # a parser may have found a number, or nothing
        predicted_sql = ""
    opened = database if isinstance(database, Database) else open_database(database, LIMITS)
    if match == "spider":
        gold_sql = spider_match.prepare(gold_sql, keep_distinct)
        predicted_sql = spider_match.prepare(predicted_sql, keep_distinct)
    gold = _gold(opened, gold_sql)
    runs: tuple[int, ...] = ()
    if match != "spider":
        runs = _fair_order(opened, gold_sql, gold)
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
    """The sound verdict on a query: on its result, and on whether its output is constant.

    Args:
        runs: From `sqlgym.judging.ties.free_runs`; empty where the order of rows does not count.
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
    """Whether a value is the answer that the gold rows are; see `sqlgym.judging.answers`.

    Args:
        gold_rows: What the gold query gave; at least one row.
        value: The answer, of whatever kind and in whatever format; nothing is raised for it.
        ordered: The order of the rows counts.
        columns: Their names, which an answer may repeat.
        question: The question in words. A number may carry a unit that the question or its column
            names, or any known one but `%` if they name none.

    Raises:
        TaskRefused: There are no gold rows (`empty_gold`).

    >>> check_answer([("Joe",), ("Ann",)], "Ann, Joe").equal
    True
    >>> check_answer([(72,)], "72 kg", question="How many metres long is it?").equal
    False
    """
    if not gold_rows or not gold_rows[0]:
        raise TaskRefused("gold_rows", "empty_gold", "anything that finds nothing would be right.")
    return matches(GoldAnswer.of(columns, gold_rows, ordered, question=question), value)


def check_match(match: str) -> None:
    """Complain of a comparison that does not exist.

    Raises:
        ConfigurationError: There is no such one.
    """
    if match not in get_args(Match):
        raise ConfigurationError(f'match must be "sound", "spider" or "suite", got {match!r}.')


def run_gold(database: Database, sql: str, name: str) -> QueryResult:
    """The result of a gold query; `name` is what a refusal calls it.

    Raises:
        TaskRefused: It fails.
    """
    try:
        return database.query(sql)
    except ToolError as error:
        reason = f"its gold SQL fails: {error.message}"
        raise TaskRefused(name, f"gold_{error.code}", reason) from None


def fair_order(database: Database, sql: str, result: QueryResult, name: str) -> tuple[int, ...]:
    """The runs of rows that may change places; none where the order does not count.

    Raises:
        TaskRefused: The gold leaves something else open: several results are right.
    """
    several = several_results(database, sql, result)
    if several is not None:
        raise TaskRefused(name, *several)
    return free_runs(database, sql, result) if results.is_ordered(sql) else ()


def _gold(database: Database, sql: str) -> QueryResult:
    result = run_gold(database, sql, _name(sql))
    if result.truncated:
        reason = f"its gold SQL gives more than the {len(result.rows):,} rows that are compared."
        raise TaskRefused(_name(sql), "result_too_large", reason)
    return result


def _fair_order(database: Database, sql: str, result: QueryResult) -> tuple[int, ...]:
    """The runs of rows that may change places, of a gold that leaves nothing else open."""
    if not result.rows:
        reason = "its gold SQL finds no rows: anything that finds nothing would be right."
        raise TaskRefused(_name(sql), "empty_gold", reason)
    return fair_order(database, sql, result, _name(sql))


def _name(sql: str) -> str:
    """What a refusal calls a gold query that belongs to no task."""
    return sql if len(sql) <= _LONGEST_NAME else f"{sql[: _LONGEST_NAME - 4]} ..."
