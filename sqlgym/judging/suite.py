"""Verdicts on several instances of a database: a query must also be correct on other data.

A wrong query can return the gold result because the data of one database do not distinguish the two
queries. For example, the data might contain no value on a boundary and no row without a match in a
join, or the agent might have copied values from the data into the query. Therefore a query that is
correct with `match="sound"` is also run on other instances of the database. The query must be
correct on each instance on which the gold query runs and has only one correct result. This
comparison is test-suite accuracy (Zhong, Yu and Klein 2020, arXiv:2010.02840) with differently
constructed instances; see `sqlgym.judging.instances`.

An instance is skipped if the gold query fails on it, returns only NULL, or has several correct
results that cannot be enumerated. If the gold query returns no rows, the checked query must return
no rows, or a single row of NULLs. If a LIMIT of the gold query cuts through tied rows, the checked
query can return any of these rows, or all of them.
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
"""Matches a query for rows with an extreme value, which may use a LIMIT to return only one of
them.
"""
_CUTS: Final = re.compile(r"\b(?:limit|row_number)\b", re.IGNORECASE)
_CACHE_BYTES: Final = 128 << 10
"""Memory for the cached results of one instance, in bytes. There are many instances with small
results.
"""


class Judged(NamedTuple):
    """A verdict, and the number of instances that support it.

    Attributes:
        verdict: Whether the query is correct, and the reason.
        instances: Number of instances on which the query could have been rejected. On each of these
            instances, the gold query returns rows that differ from its result on the database
            itself. If the number is 0, the verdict is based only on the database itself.
    """

    verdict: Verdict
    instances: int


@dataclass(frozen=True)
class GoldRun:
    """The result of a gold query on one instance.

    Attributes:
        runs: The lengths of the runs of tied rows, from `sqlgym.judging.ties.free_runs`.
        tied: If a LIMIT cuts through tied rows that differ, all rows up to the last tied row, and
            the lengths of the runs of tied rows; otherwise None.
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
        """Check a query on all instances, after it was correct on the database itself.

        Raises:
            EnvironmentFault: The query ran out of time.
        """
        instances = 0
        for number, (instance, gold, tells) in enumerate(self._runs(gold_sql), 1):
            # Every second instance is read in reverse, so that the order of tied rows does not
            # decide.
            reader = instance if number % 2 else instance.backwards
            verdict = judge_on(reader, gold_sql, gold, predicted_sql)
            if verdict is not None and not verdict.equal:
                reason = f"suite: instance {instance.path.stem}: {verdict.reason}"
                return Judged(Verdict(False, reason), instances)
            instances += tells and verdict is not None
        return Judged(Verdict(True), instances)

    def can_judge(self, gold_sql: str) -> bool:
        """Return whether the result of a gold query on some instance is nonempty and differs from
        the original."""
        return any(tells for _, _, tells in self._runs(gold_sql))

    def _runs(self, gold_sql: str) -> Iterator[tuple[Database, GoldRun, bool]]:
        """Yield each instance that is usable for a gold query, the run of that query, and whether
        the instance can reject queries.
        """
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
    """Run a gold query on an instance. Return None if the instance cannot be used for this query.

    An instance cannot be used if the gold query fails, returns too many rows or only NULL, or has
    several correct results that cannot be enumerated.
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
    """Check a query on one instance.

    Args:
        gold: The run of the gold query on this instance, as returned by `gold_run`.

    Returns:
        The verdict, or None if the query returns some of several equally correct rows.

    Raises:
        EnvironmentFault: The query ran out of time.
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
    """Return whether a result equals the gold result, or another possible result of the gold
    query.
    """
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
        # An aggregate without GROUP BY returns a row of NULL if it finds no rows.
        is_nothing = len(result.rows) <= 1 and all(v is None for row in result.rows for v in row)
        return Verdict(is_nothing, "" if is_nothing else "row count")
    return sound(own, result, gold.runs)


def suite_of(path: Path, golds: Iterable[str], limits: Limits = Limits()) -> Suite:  # noqa: B008
    """Return the suite of a database for the given gold queries, and create missing instances.

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
