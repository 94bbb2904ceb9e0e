"""Verdicts on several instances of a database: a query must be right on other data as well.

A wrong query may give the gold's result because the data of one database do not tell the two apart:
no value lies on the boundary, every row has a partner, or the agent has looked the values up and
written them down. So a query that is right by the sound rule also runs on other instances of the
database, and must be right on each on which the gold itself runs and has one result. This is
test-suite accuracy (Zhong, Yu and Klein 2020, arXiv:2010.02840) with instances that are made in
another way, see `sqlgym.judging.instances`.

Instances are made from the rows of a database and from the values that the golds of its tasks
compare with (`sqlgym.judging.making`). An instance is left out if it cannot be made, or if the gold
fails on it, gives nothing but NULL, or has several right results that cannot be listed. An instance
on which time or memory ends the query is left out as well, but a query with more than
`MOST_STOPPED` of them is wrong. Where the gold finds no rows, the query must find none, or a single
row of NULL. Where a LIMIT of the gold cuts through rows that tie, any of these rows is right, and
so are all of them (`sqlgym.judging.with_ties`).
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.database import Database, QueryResult, open_database
from sqlgym.database.diagnosis import TRANSIENT
from sqlgym.database.limits import Limits
from sqlgym.database.parsing import careful, shared_tree
from sqlgym.judging.making import instance_files
from sqlgym.judging.results import Verdict, compare, is_ordered, rounded_row, sound
from sqlgym.judging.several_results import several_results
from sqlgym.judging.ties import free_runs
from sqlgym.judging.with_ties import with_ties
from toolgym.errors import EnvironmentFault, ToolError

MOST_STOPPED: Final = 2
"""Number of instances on which time or memory may end a query that is right on the database.
Instances are small; a query that ends on more of them would escape being judged."""
_TAKES_THE_FIRST: Final = re.compile(
    r"\b(?:limit|rank|dense_rank|row_number)\b|= ?\( ?select (?:max|min)\b", re.IGNORECASE
)
"""Found in a gold that asks for rows with an extreme value: a query with a LIMIT may be right."""
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
        tied: Where a LIMIT cuts through rows that tie and differ, the gold with all these rows.
    """

    result: QueryResult
    runs: tuple[int, ...]
    tied: GoldRun | None = None


@dataclass(frozen=True, eq=False)
class Suite:
    """The instances of one database."""

    database: Path
    files: tuple[Path, ...]
    limits: Limits

    def judge(self, gold_sql: str, predicted_sql: str) -> Judged:
        """Judge a query that is right on the database itself on all instances."""
        instances = stopped = 0
        for number, (instance, run, tells) in enumerate(self._runs(gold_sql), 1):
            # Every other instance is read in reverse, so that the order of tied rows cannot decide.
            try:
                read = instance if number % 2 else instance.backwards
                verdict = judge_on(read, gold_sql, run, predicted_sql)
            except EnvironmentFault:  # the cache folder was emptied
                continue
            if verdict is None:
                stopped += 1
                if stopped > MOST_STOPPED:
                    reason = f"suite: the machine stopped it on {stopped} instances"
                    return Judged(Verdict(False, reason), instances)
                continue
            instances += tells
            if not verdict.equal:
                reason = f"suite: instance {instance.path.stem}: {verdict.reason}"
                return Judged(Verdict(False, reason), instances)
        return Judged(Verdict(True), instances)

    def can_judge(self, gold_sql: str) -> bool:
        """Whether a gold finds rows on any instance, and other ones than on the database itself."""
        return any(tells for _, _, tells in self._runs(gold_sql))

    def _runs(self, gold_sql: str) -> Iterator[tuple[Database, GoldRun, bool]]:
        """Each instance that a gold is judged on, its run, and whether the instance `can_judge`."""
        own = open_database(self.database, self.limits).query(gold_sql)
        for file in self.files:
            try:
                instance = _instance(file, self.limits)
                run = gold_run(instance, gold_sql)
            except EnvironmentFault:  # the cache folder was emptied
                continue
            if run is not None:
                yield instance, run, bool(run.result.rows) and not _same(run, own).equal


@functools.lru_cache(maxsize=1_024)
def _instance(file: Path, limits: Limits) -> Database:
    return Database(file, limits, cache_bytes=_CACHE_BYTES)


@functools.lru_cache(maxsize=16_384)
def gold_run(database: Database, sql: str) -> GoldRun | None:
    """The result of a gold on an instance; None if the instance cannot be used for this gold.

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
            tied = with_ties(sql) if several[0] == "tied_limit" and _ends_in_limit(sql) else None
            run = gold_run(database, tied) if tied is not None else None
            return GoldRun(result, (), run) if run is not None and run.runs else None
        runs = free_runs(database, sql, result) if is_ordered(sql) else ()
    except ToolError:
        return None
    return GoldRun(result, runs)


def judge_on(instance: Database, gold_sql: str, run: GoldRun, predicted_sql: str) -> Verdict | None:
    """The verdict of one instance on a query; None if time or memory ended the query.

    Args:
        run: The gold's result on this instance, by `gold_run`.
    """
    try:
        result = instance.query(predicted_sql)
    except ToolError as error:
        if error.code in TRANSIENT:
            return None
        return Verdict(False, f"error: {error.code}: {error.message}")
    verdict = _same(run, result)
    if verdict.equal or not _TAKES_THE_FIRST.search(" ".join(gold_sql.split())):
        return verdict
    golds, results = [run], [result]
    for by_first in (False, True):
        tied = with_ties(predicted_sql, by_first)
        with contextlib.suppress(ToolError):
            results += [instance.query(tied)] if tied is not None else []
    tied = with_ties(gold_sql)
    if tied is not None:
        golds.append(gold_run(instance, tied) or run)
    if any(_same(gold, each).equal for gold in golds for each in results):
        return Verdict(True)
    return verdict


def _same(run: GoldRun, result: QueryResult) -> Verdict:
    """Whether a result equals the gold's, or one of the results that the gold may have."""
    gold = run.result
    if run.tied is not None:
        rows, runs = run.tied.result.rows, run.tied.runs
        sure = sum(runs[:-1])  # rows that do not tie with the last one
        left, open_rows = (Counter(map(rounded_row, each[sure:])) for each in (result.rows, rows))
        is_one = len(result.rows) == len(gold.rows) and left <= open_rows
        if is_one and sure:
            is_one = compare(rows[:sure], result.rows[:sure], True, runs[:-1]).equal
        return Verdict(True) if is_one else _same(run.tied, result)
    if not gold.rows:
        # An aggregate without GROUP BY gives a row of NULL where it finds nothing.
        is_nothing = len(result.rows) <= 1 and all(v is None for row in result.rows for v in row)
        return Verdict(True) if is_nothing else Verdict(False, "row count")
    if result.tables_read or not gold.tables_read:  # a cheap check first
        if gold.rows == result.rows:
            return Verdict(True)
        if not run.runs and Counter(gold.rows) == Counter(result.rows):
            return Verdict(True)
    return sound(gold, result, run.runs)


def _ends_in_limit(sql: str) -> bool:
    """Whether the one LIMIT of a query is that of the whole query."""
    try:
        tree = shared_tree(sql)
        limits = careful(lambda: list(tree.find_all(exp.Limit)))
    except SqlglotError:
        return False
    return len(limits) == 1 and limits[0].parent is tree


def suite_of(path: Path, golds: Iterable[str], limits: Limits = Limits()) -> Suite:  # noqa: B008
    """The suite of a database for some golds; its instances are made unless the cache has them.

    Args:
        golds: Gold queries of the database; of more than `sqlgym.judging.making.GOLDS`, that many.
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
