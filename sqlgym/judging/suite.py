"""Verdicts on several instances of a database: a query must be right on other data as well.

A wrong query may give the gold's result because the data of one database do not tell the two apart:
no value is on the boundary, every row has a partner, or the agent has looked the values up and
written them down. So a query that is right by the sound rule also runs on other instances of the
database, and must be right on each on which the gold itself runs and has one result. This is
test-suite accuracy (Zhong, Yu and Klein 2020, arXiv:2010.02840) with instances that are made in
another way, see `sqlgym.judging.instances`.

An instance is left out if the gold fails on it, gives nothing but NULL, or has several right
results that cannot be listed. If the gold finds no rows, the query must find none, or a single row
of NULL. If a LIMIT of the gold cuts through rows that tie, any of these rows is right, and so are
all of them.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from sqlgym.database.database import Database, QueryResult, open_database
from sqlgym.database.limits import Limits
from sqlgym.judging.making import instance_files
from sqlgym.judging.results import Verdict, compare, is_ordered, rounded_row, sound
from sqlgym.judging.several_results import several_results
from sqlgym.judging.ties import Rows, free_runs, up_to_tie
from toolgym.errors import ToolError

_ONE_OF_SEVERAL: Final = re.compile(
    r"\b(?:limit|rank|dense_rank|row_number)\b|= ?\( ?select (?:max|min)\b", re.IGNORECASE
)
"""Found in a query for rows with an extreme value, of which a LIMIT may take one."""
_CUTS: Final = re.compile(r"\b(?:limit|row_number)\b", re.IGNORECASE)
_CACHE_BYTES: Final = 128 << 10
"""Memory for the cached results of one instance; there are many instances with small results."""


class Judged(NamedTuple):
    """A verdict, and the number of instances that it rests on.

    Attributes:
        verdict: Right or wrong, and why.
        instances: Number of instances that could have refused the query: on each, the gold finds
            rows, and other ones than on the database itself. If it is 0, the database alone has
            judged.
    """

    verdict: Verdict
    instances: int


@dataclass(frozen=True)
class GoldRun:
    """The result of a gold on one instance.

    Attributes:
        runs: The sizes of the runs of rows that tie, by `sqlgym.judging.ties.free_runs`.
        tied: If a LIMIT cuts through rows that tie and differ: the rows up to the last of these,
            and the sizes of their runs.
    """

    result: QueryResult
    runs: tuple[int, ...]
    tied: tuple[Rows, tuple[int, ...]] | None = None


@dataclass(frozen=True, eq=False)
class Suite:
    """The instances of one database."""

    database: Path
    files: tuple[Path, ...]
    limits: Limits

    def judge(self, gold_sql: str, predicted_sql: str) -> Judged:
        """Judge a query that is right on the database itself on all instances.

        Raises:
            EnvironmentFault: The clock of the machine ended the query.
        """
        instances = 0
        for number, (instance, gold, tells) in enumerate(self._runs(gold_sql), 1):
            # Every other instance is read in reverse, so that the order of tied rows cannot decide.
            reader = instance if number % 2 else instance.backwards
            verdict = judge_on(reader, gold_sql, gold, predicted_sql)
            if verdict is not None and not verdict.equal:
                reason = f"suite: instance {instance.path.stem}: {verdict.reason}"
                return Judged(Verdict(False, reason), instances)
            instances += tells and verdict is not None
        return Judged(Verdict(True), instances)

    def can_judge(self, gold_sql: str) -> bool:
        """Return whether a gold finds rows on any instance, and other ones than on the database
        itself.
        """
        return any(tells for _, _, tells in self._runs(gold_sql))

    def _runs(self, gold_sql: str) -> Iterator[tuple[Database, GoldRun, bool]]:
        """Yield each instance that a gold can judge on, its run, and whether it can refuse."""
        own = open_database(self.database, self.limits).query(gold_sql)
        for file in self.files:
            instance = _instance(file, self.limits)
            gold = gold_run(instance, gold_sql)
            if gold is not None:
                yield instance, gold, bool(gold.result.rows) and not _same(gold, own).equal


@functools.lru_cache(maxsize=1_024)
def _instance(file: Path, limits: Limits) -> Database:
    return Database(file, limits, cache_bytes=_CACHE_BYTES)


@functools.lru_cache(maxsize=16_384)
def gold_run(database: Database, sql: str) -> GoldRun | None:
    """Run a gold on an instance; None if the instance cannot be used for this gold.

    The gold fails there, gives too many rows or nothing but NULL, or has several right results that
    cannot be listed.
    """
    try:
        result = database.query(sql)
        if result.truncated:
            return None
        if not result.rows:
            return None if database.backwards.query(sql).rows else GoldRun(result, ())
        if all(value is None for row in result.rows for value in row):
            return None
        several = several_results(database, sql, result)
        if several is not None:
            is_at_end = several[0] == "tied_limit" and len(_CUTS.findall(sql)) == 1
            tied = up_to_tie(database, sql) if is_at_end else None
            return GoldRun(result, (), tied) if tied is not None else None
        return GoldRun(result, free_runs(database, sql, result) if is_ordered(sql) else ())
    except ToolError:
        return None


def judge_on(
    instance: Database, gold_sql: str, gold: GoldRun, predicted_sql: str
) -> Verdict | None:
    """Judge a query on one instance.

    Args:
        gold: The run of the gold on this instance, by `gold_run`.

    Returns:
        The verdict; None if the query takes some of several rows that are right.

    Raises:
        EnvironmentFault: The clock of the machine ended the query.
    """
    try:
        result = instance.query(predicted_sql)
    except ToolError as error:
        return Verdict(False, f"error: {error.code}: {error.message}")
    verdict = _same(gold, result)
    if verdict.equal or not _ONE_OF_SEVERAL.search(" ".join(gold_sql.split())):
        return verdict
    tied = [gold.tied or up_to_tie(instance, gold_sql), up_to_tie(instance, predicted_sql)]
    golds, results = (
        [Counter(map(rounded_row, rows)) for rows in (own, *([ties[0]] if ties else []))]
        for own, ties in zip((gold.result.rows, result.rows), tied, strict=True)
    )
    if any(one.keys() == other.keys() for one in golds for other in results):
        return Verdict(True)
    if _CUTS.search(predicted_sql) and result.rows and results[0] <= golds[-1]:
        return None
    return verdict


def _same(gold: GoldRun, result: QueryResult) -> Verdict:
    """Return whether a result is the gold's, or one of the results that the gold may have."""
    own = gold.result
    if gold.tied is not None:
        rows, runs = gold.tied
        sure = sum(runs[:-1])  # rows that do not tie with the last one
        if len(result.rows) == len(own.rows):
            left, tied = (Counter(map(rounded_row, each[sure:])) for each in (result.rows, rows))
            begin = compare(rows[:sure], result.rows[:sure], True, runs[:-1]) if sure else None
            if left <= tied and (begin is None or begin.equal):
                return Verdict(True)
        return compare(rows, result.rows, True, runs)
    if not own.rows:
        # An aggregate without GROUP BY gives a row of NULL if it finds nothing.
        is_nothing = len(result.rows) <= 1 and all(v is None for row in result.rows for v in row)
        return Verdict(is_nothing, "" if is_nothing else "row count")
    return sound(own, result, gold.runs)


def suite_of(path: Path, golds: Iterable[str], limits: Limits = Limits()) -> Suite:  # noqa: B008
    """Return the suite of a database for some golds; missing instances are made.

    Args:
        golds: Gold queries of the database; at most `sqlgym.judging.making.GOLDS` are used.
        limits: Limits of each statement on an instance.

    Raises:
        EnvironmentFault: The database itself cannot be read.
    """
    stamp = open_database(path, limits).path.stat()
    key = path.absolute(), (stamp.st_size, stamp.st_mtime_ns), frozenset(golds), limits
    suite = _suite(*key)
    if not all(file.exists() for file in suite.files):  # the cache folder was emptied
        _suite.cache_clear()
        _instance.cache_clear()
        gold_run.cache_clear()
        suite = _suite(*key)
    return suite


@functools.lru_cache(maxsize=1_024)
def _suite(path: Path, stamp: tuple[int, int], golds: frozenset[str], limits: Limits) -> Suite:
    return Suite(path, instance_files(path, golds), limits)
