"""Runs the gold SQL of a task, checks that its result is a usable answer, and caches the verdict.

A gold query runs like any other query. A gold query is rejected if it fails, reads no table,
returns a result that does not fit into an observation, or has several correct results.

Verdicts are cached, since each requires a run of the gold SQL. A verdict is valid for one file
(path, size and modification time), one version of SQLite, one state of this package's source, and
one set of limits. Each verdict is stored as a line with a checksum, appended in a single write, so
several processes can add to the same file. Damaged lines are ignored. If the cache cannot be read
or written, the gold SQL runs again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import zlib
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from sqlgym.database.database import QueryResult, open_database
from sqlgym.database.limits import Limits
from sqlgym.judging.answers import GoldAnswer, refusal
from sqlgym.judging.judge import Match, check_whole, fair_order, run_gold
from sqlgym.judging.making import source_state as source_state
from sqlgym.judging.spider_match import prepare
from sqlgym.tasks.task import SqlTask
from toolgym.cache import cache_folder
from toolgym.errors import TaskRefused
from toolgym.tasks import TaskSet

LOOKED_THROUGH: Final = 20_000
"""Number of tasks of a set that are searched for gold queries of its databases."""


@dataclass(frozen=True, eq=False)
class Gold:
    """The correct answer of a task.

    Attributes:
        result: The result of the gold SQL.
        answer: The result as a typed value that answers are compared with.
    """

    result: QueryResult
    answer: GoldAnswer


@functools.lru_cache(maxsize=4096)
def gold_of(
    task: SqlTask,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    match: Match = "sound",
) -> Gold:
    """Run the gold SQL of a task.

    Args:
        limits: Limits of each statement.
        match: With "spider", a gold query is rejected only if Spider's evaluator cannot score it,
            because it fails or returns more rows than the limits allow.

    Raises:
        TaskRefused: The gold SQL fails, or its result is not a usable answer.
        EnvironmentFault: The database file is missing or damaged, or the gold SQL ran out of time
            or memory.
    """
    database = open_database(task.database, limits)
    result = run_gold(database, task.gold_sql, task.id)
    runs: tuple[int, ...] = ()
    if match == "spider":
        check_whole(run_gold(database, prepare(task.gold_sql, False), task.id), task.id)
    else:
        if not result.tables_read:
            raise TaskRefused(task.id, "constant_gold", "its gold SQL reads no table.")
        reason = refusal(result)
        if reason is not None:
            raise TaskRefused(task.id, *reason)
        runs = fair_order(database, task.gold_sql, result, task.id)
    result = replace(result)  # a copy, because observations are made from the cached object
    return Gold(result, GoldAnswer(result.columns, result.rows, runs, task.question))


def verify(
    task: SqlTask,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    match: Match = "sound",
) -> None:
    """Check that a task is usable, and cache the verdict on its gold query.

    Raises:
        TaskRefused: The task cannot be played.
        EnvironmentFault: In the same cases as in `gold_of`. In these cases, the verdict is not
            cached.
    """
    if task.problem is not None:
        raise TaskRefused(task.id, *task.problem)
    if not task.answerable:
        return
    rule = "spider" if match == "spider" else "fair"
    key = f"{task.gold_sql}\0{rule}\0{limits}"
    verdict = recall_verdict(task.database, key)
    if verdict is None:
        verdict = GoldVerdict()
        try:
            gold_of(task, limits, match)
        except TaskRefused as refused:
            verdict = GoldVerdict(refused.code, refused.reason)
        keep_verdict(task.database, key, verdict)
    if verdict.code:
        raise TaskRefused(task.id, *verdict)


@functools.lru_cache(maxsize=32)
def verified_by(tasks: TaskSet[SqlTask], limits: Limits, match: Match) -> TaskSet[SqlTask]:
    """Return a view of tasks whose gold queries are verified with these limits and this `match`."""
    if limits == Limits() and match != "spider":
        return tasks
    return tasks.verified_by(functools.partial(verify, limits=limits, match=match))


@functools.lru_cache(maxsize=8)
def golds_by_database(tasks: TaskSet[SqlTask]) -> dict[Path, frozenset[str]]:
    """Return the gold queries of the first `LOOKED_THROUGH` tasks of a set, by database."""
    golds: dict[Path, set[str]] = {}
    for task in islice(tasks, LOOKED_THROUGH):
        if task.problem is None and task.answerable:
            golds.setdefault(task.database, set()).add(task.gold_sql)
    return {database: frozenset(queries) for database, queries in golds.items()}


class GoldVerdict(NamedTuple):
    """A verdict on a gold query: the `code` and `reason` of its rejection, both empty if it is
    usable.
    """

    code: str = ""
    reason: str = ""


def recall_verdict(database: Path, sql: str) -> GoldVerdict | None:
    """Return the cached verdict on a gold query, or None if there is none."""
    file = _file(database)
    return None if file is None else _known(file).get(_key(sql))


def keep_verdict(database: Path, sql: str, verdict: GoldVerdict) -> None:
    """Add the verdict on a gold query to the cache, if the cache is writable."""
    file = _file(database)
    if file is None:
        return
    _known(file)[_key(sql)] = verdict
    body = json.dumps([_key(sql), *verdict]).encode()
    # The first line break ends an incomplete line of a killed process.
    _append(file, b"\n%08x %s\n" % (zlib.crc32(body), body))


def _append(file: Path, line: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
    except OSError:
        return  # the disk is full or the folder not writable: the gold SQL runs again next time


@functools.lru_cache(maxsize=1_024)
def _known(file: Path) -> dict[str, GoldVerdict]:
    """Return the verdicts in a file, without damaged lines."""
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError:
        return {}
    verdicts: dict[str, GoldVerdict] = {}
    for line in lines:
        checksum, _, body = line.partition(b" ")
        if body and checksum == b"%08x" % zlib.crc32(body):
            key, code, reason = json.loads(body)  # the checksum shows that the line is complete
            verdicts[key] = GoldVerdict(code, reason)
    return verdicts


def _file(database: Path) -> Path | None:
    """Return the file with the verdicts on a database's gold queries; None if there is no
    database.
    """
    try:
        status = database.stat()
    except OSError:
        return None
    state = source_state("synthesis")
    name = f"{database.absolute()}\0{status.st_size}\0{status.st_mtime_ns}\0{state}"
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()
    return cache_folder() / "sql" / "verdicts" / f"{digest[:32]}.txt"


def _key(sql: str) -> str:
    return hashlib.sha256(sql.encode("utf-8", "surrogatepass")).hexdigest()[:32]
