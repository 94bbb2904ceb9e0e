"""The right answer of a task: its gold SQL, run once and judged fair; verdicts are cached on disk.

A gold query is run like any other, and is refused where its result cannot be a fair answer: it
fails, reads no table, does not fit into an observation, or is one of several that are right.

A verdict costs a run of the gold query, so it is kept in the cache folder, and a set that was drawn
from or checked once is known the next time. It holds for one file (path, size and time of its last
change, as `sqlgym.database.database` tells files apart), one version of SQLite and one state of
this package's source: what could change a verdict changes the name of the file that it is kept in.
One verdict is one line, with a checksum, appended by one write: several processes may add to a file
at once, and a line that is damaged or cut off is as if it were not there. A cache that cannot be
written or read is no error; the gold query is run.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sqlite3
import zlib
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from sqlgym.database.database import Database, QueryResult, open_database
from sqlgym.judging.answers import GoldAnswer, refusal
from sqlgym.judging.judge import fair_order, run_gold
from sqlgym.judging.results import is_ordered
from sqlgym.tasks.task import SqlTask
from toolgym.cache import cache_folder
from toolgym.errors import TaskRefused
from toolgym.tasks import TaskSet

LOOKED_THROUGH: Final = 20_000
"""Tasks of a set that are looked through for the golds of its databases."""


@dataclass(frozen=True, eq=False)
class Gold:
    """The right answer of a task.

    Attributes:
        answer: The same as a typed value to compare answers with.
        ordered: The gold SQL orders at top level, so order counts.
    """

    result: QueryResult
    answer: GoldAnswer
    ordered: bool


@functools.lru_cache(maxsize=4096)
def gold_of(task: SqlTask) -> Gold:
    """Run the gold SQL of a task.

    Raises:
        TaskRefused: It fails, or its result cannot be a fair answer.
        EnvironmentFault: The database file is missing or damaged.
    """
    database: Database = open_database(task.database)
    result = run_gold(database, task.gold_sql, task.id)
    if not result.tables_read:
        raise TaskRefused(task.id, "constant_gold", "its gold SQL reads no table.")
    reason = refusal(result)
    if reason is not None:
        raise TaskRefused(task.id, *reason)
    runs = fair_order(database, task.gold_sql, result, task.id)
    ordered = is_ordered(task.gold_sql)
    result = replace(result)  # its own object: the cached one is what observations are made of
    answer = GoldAnswer.of(result.columns, result.rows, ordered, runs, task.question)
    return Gold(result, answer, ordered)


@functools.lru_cache(maxsize=8)
def golds_by_database(tasks: TaskSet[SqlTask]) -> dict[Path, frozenset[str]]:
    """The gold queries of a set by database, of its first `LOOKED_THROUGH` tasks."""
    golds: dict[Path, set[str]] = {}
    for task in islice(tasks, LOOKED_THROUGH):
        if task.problem is None and task.answerable:
            golds.setdefault(task.database, set()).add(task.gold_sql)
    return {database: frozenset(queries) for database, queries in golds.items()}


@functools.cache
def source_state(but: str = "") -> str:
    """A hash of the version of SQLite and of this package's own files.

    Args:
        but: A folder of the package that decides nothing here.
    """
    digest = hashlib.sha256(sqlite3.sqlite_version.encode())
    package = Path(__file__).parents[1]
    for path in sorted(package.glob("**/*.py")):
        if path.relative_to(package).parts[0] != but:
            digest.update(path.read_bytes())
    return digest.hexdigest()


class GoldVerdict(NamedTuple):
    """`code` and `reason` of a refusal; both empty where the gold can be played."""

    code: str = ""
    reason: str = ""


def recall_verdict(database: Path, sql: str) -> GoldVerdict | None:
    """The verdict on a gold query; None where none is known."""
    file = _file(database)
    return None if file is None else _known(file).get(_key(sql))


def keep_verdict(database: Path, sql: str, verdict: GoldVerdict) -> None:
    """Keep the verdict on a gold query, if the cache can be written."""
    file = _file(database)
    if file is None:
        return
    _known(file)[_key(sql)] = verdict
    body = json.dumps([_key(sql), *verdict]).encode()
    # The line break before it parts it from a line that a killed process has cut off.
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
        return  # a full disk or a folder without rights: the verdict is found anew next time


@functools.lru_cache(maxsize=1_024)
def _known(file: Path) -> dict[str, GoldVerdict]:
    """The verdicts in a file; what cannot be read of it is left out."""
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError:
        return {}
    verdicts: dict[str, GoldVerdict] = {}
    for line in lines:
        checksum, _, body = line.partition(b" ")
        if body and checksum == b"%08x" % zlib.crc32(body):
            key, code, reason = json.loads(body)  # whole, as the checksum says
            verdicts[key] = GoldVerdict(code, reason)
    return verdicts


def _file(database: Path) -> Path | None:
    """Where the verdicts on the golds of a database are; None where it cannot be looked at."""
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
