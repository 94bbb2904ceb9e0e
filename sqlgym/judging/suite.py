"""Verdicts on several instances of a database, so that no luck of one database's data decides.

A wrong query may give what the gold gives because the data happen not to tell them apart: both find
nothing, no value lies on the boundary, every row has a partner. So a query that is right by the
sound rule is run on a few other instances of the database as well, and must be right wherever the
gold itself runs and has one result. That is test-suite accuracy (Zhong, Yu and Klein 2020,
arXiv:2010.02840), with instances made in our own way.

Candidates are made from the rows of the database (`sqlgym.judging.instances`) and distilled: of a
few at a time the one is kept that tells the most wrong queries (`sqlgym.judging.wrong_queries`)
from their golds which fewer than `ENOUGH` instances told apart before. Work is bounded by counts
and steps, never by a clock. Instances are kept in the cache folder under the hash of the file's
content, the golds, the seed and the code that made them. Several processes may ask at once: each
makes them, and one folder comes out whole.

An instance that cannot be made, on which the gold fails, finds nothing but NULL or leaves a choice,
or which the machine stops, is left out and counted. Where the gold finds no rows, the query must
find none either.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import random
import shutil
import sqlite3
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

from sqlgym.database.database import Database, QueryResult, open_database
from sqlgym.database.diagnosis import TRANSIENT
from sqlgym.database.limits import Limits
from sqlgym.judging.instances import instance_rows
from sqlgym.judging.results import Verdict, is_ordered, sound
from sqlgym.judging.several_results import several_results
from sqlgym.judging.source_rows import NoInstance, Row, Source, read_source, write_instance
from sqlgym.judging.ties import free_runs
from sqlgym.judging.wrong_queries import literals_of, pairs_of, wrong_queries
from toolgym import long_work
from toolgym.cache import cache_folder
from toolgym.errors import EnvironmentFault, ToolError

MOST: Final = 8
"""Instances of a database."""
GOLDS: Final = 400
"""Golds that the instances of a database are chosen for."""
ENOUGH: Final = 2
"""A wrong query that so many instances tell apart needs no other."""
_AT_A_TIME: Final = 6
"""Candidates of which one is kept."""
_WRONG: Final = 6_000
"""Wrong queries of all golds that are tried on the database itself."""
_TARGETS: Final = 900
"""Of those, what candidates are tried on: such as the database itself cannot tell apart first."""
_OTHERS: Final = 200
"""Targets that the database tells apart, so that instances are good for more than the rest."""
_LEAST: Final = 3
"""Instances that are made even where nothing is left to tell apart."""
_GAIN: Final = {False: 1.0, True: 0.2}
"""What it is worth to tell a wrong query apart that the database does not, or does."""
_CACHE_BYTES: Final = 256 << 10
"""Memory for results of one instance: there are many, and their results are small."""
_MAKING: Final = Limits(steps=2_000_000, rows=10_000)


class Judged(NamedTuple):
    """A verdict, and on how many instances it rests.

    Attributes:
        left_out: Instances on which the gold or the machine failed.
    """

    verdict: Verdict
    instances: int
    left_out: int


@dataclass(frozen=True)
class GoldRun:
    """What a gold gives on one instance; `runs` as of `sqlgym.judging.ties.free_runs`."""

    result: QueryResult
    runs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Suite:
    """The instances of one database."""

    files: tuple[Path, ...]
    limits: Limits

    def judge(self, gold_sql: str, predicted_sql: str) -> Judged:
        """The verdict of all instances on a query that is right on the database itself."""
        judged = left_out = 0
        for number, file in enumerate(self.files, 1):
            verdict = self._on(file, gold_sql, predicted_sql)
            if verdict is None:
                left_out += 1
                continue
            judged += 1
            if not verdict.equal:
                reason = f"suite: instance {number} of {len(self.files)}: {verdict.reason}"
                return Judged(Verdict(False, reason), judged, left_out)
        return Judged(Verdict(True), judged, left_out)

    def _on(self, file: Path, gold_sql: str, predicted_sql: str) -> Verdict | None:
        try:
            database = _instance(file, self.limits)
            run = gold_run(database, gold_sql)
            return None if run is None else judge_on(database, run, predicted_sql)
        except EnvironmentFault:  # somebody emptied the cache folder
            return None


@functools.lru_cache(maxsize=256)
def _instance(file: Path, limits: Limits) -> Database:
    return Database(file, limits, cache_bytes=_CACHE_BYTES)


@functools.lru_cache(maxsize=4_096)
def gold_run(database: Database, sql: str) -> GoldRun | None:
    """What a gold gives on an instance; None where that can be no answer.

    It fails, gives too much or nothing but NULL, or has several results that are right.
    """
    try:
        result = database.query(sql)
        if result.truncated:
            return None
        if not result.rows:
            return GoldRun(result, ())
        if all(value is None for row in result.rows for value in row):
            return None
        if several_results(database, sql, result) is not None:
            return None
        runs = free_runs(database, sql, result) if is_ordered(sql) else ()
    except ToolError:
        return None
    return GoldRun(result, runs)


def judge_on(database: Database, run: GoldRun, predicted_sql: str) -> Verdict | None:
    """The verdict of one instance; None where the machine, not the query, fails.

    The query runs with all tables read from either end: what a tie decides is no more than luck.
    """
    verdict = Verdict(True)
    for read in (database, database.backwards):
        try:
            result = read.query(predicted_sql)
        except ToolError as error:
            if error.code in TRANSIENT:
                return None
            return Verdict(False, f"error: {error.code}: {error.message}")
        if _is_plainly_same(run, result):
            continue
        if run.result.rows:
            verdict = sound(run.result, result, run.runs)
        elif result.rows:
            verdict = Verdict(False, "row count")
        if not verdict.equal:
            break
    return verdict


def _is_plainly_same(run: GoldRun, result: QueryResult) -> bool:
    """Whether the rows are just those of the gold, which costs less to see than to compare."""
    gold = run.result
    if gold.tables_read and not result.tables_read:
        return False
    return gold.rows == result.rows or (not run.runs and Counter(gold.rows) == Counter(result.rows))


def suite_of(
    path: Path,
    golds: Iterable[str],
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    seed: int = 0,
) -> Suite:
    """The instances of a database for some golds, from the cache if they are there.

    Args:
        golds: Gold queries that are asked of it; of more than `GOLDS`, that many by their hash.
        limits: Hold for each statement on an instance.
        seed: Decides over the candidates.

    Raises:
        EnvironmentFault: The database itself cannot be read.
    """
    status = path.stat() if path.exists() else None
    stamp = (status.st_size, status.st_mtime_ns) if status else (0, 0)
    suite = _suite(path.absolute(), stamp, frozenset(golds), limits, seed)
    if not all(file.exists() for file in suite.files):  # somebody emptied the cache folder
        _suite.cache_clear()
        _instance.cache_clear()
        suite = _suite(path.absolute(), stamp, frozenset(golds), limits, seed)
    return suite


@functools.lru_cache(maxsize=256)
def _suite(
    path: Path, stamp: tuple[int, int], golds: frozenset[str], limits: Limits, seed: int
) -> Suite:
    content = _content(open_database(path, limits).path, stamp)
    chosen = sorted(golds, key=lambda sql: hashlib.sha256(_bytes(sql)).digest())[:GOLDS]
    key = json.dumps([content, sorted(chosen), seed, _state()])
    name = hashlib.sha256(_bytes(key)).hexdigest()[:32]
    folder = cache_folder() / "sql" / "suites" / name
    if not folder.is_dir():
        folder = _kept(folder, lambda into: _make(path, sorted(chosen), f"{seed}-{content}", into))
    return Suite(tuple(sorted(folder.glob("*.sqlite"))), limits)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@functools.lru_cache(maxsize=1_024)
def _content(path: Path, stamp: tuple[int, int]) -> str:
    """The hash of a file; its size and time of change are its key in this process."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.cache
def _state() -> str:
    """A hash of what decides over instances: the libraries, and the code of judging."""
    digest = hashlib.sha256(f"{sqlite3.sqlite_version} {metadata.version('sqlglot')}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _kept(folder: Path, make: Callable[[Path], None]) -> Path:
    """Put a folder of instances in its place by one rename, or where it can be written.

    Where nothing can be kept, it lies in a temporary folder until the process ends.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError:
        fresh = Path(tempfile.mkdtemp(prefix="toolgym-suite-"))
        weakref.finalize(_suite, shutil.rmtree, fresh, ignore_errors=True)
        make(fresh)
        return fresh
    try:
        make(fresh)
        with contextlib.suppress(OSError):  # another process was quicker
            fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


class Target(NamedTuple):
    """A wrong query, and whether the database itself tells it from its gold."""

    gold: str
    wrong: str
    is_told: bool


def _make(path: Path, golds: Sequence[str], seed: str, folder: Path) -> None:
    """Choose the instances of a database and write them into a folder."""
    try:
        source = read_source(path)
    except NoInstance:
        return
    targets = _targets(open_database(path, _MAKING), source, golds, seed)
    literals = [literal for gold in golds for literal in literals_of(gold, source)]
    pairs = [pair for gold in golds for pair in pairs_of(gold, source)]
    needs = [1 if target.is_told else ENOUGH for target in targets]
    chosen = 0
    for turn in range(MOST):
        long_work.tell(f"making instances of {path.stem}", turn, MOST)
        best: tuple[float, Path, frozenset[int]] | None = None
        for number in range(_AT_A_TIME):
            file = folder / f"candidate-{number}"
            rows = instance_rows(source, literals, f"{seed}-{turn}-{number}", pairs=pairs)
            told = _told_by(source, rows, file, targets, needs)
            gain = sum(_GAIN[targets[place].is_told] for place in told)
            if best is None or gain > best[0]:
                if best is not None:
                    best[1].unlink(missing_ok=True)
                best = gain, file, told
            else:
                file.unlink(missing_ok=True)
        if best is not None and best[1].exists() and (best[0] or turn < _LEAST):
            best[1].rename(folder / f"instance-{chosen}.sqlite")
            chosen += 1
            for place in best[2]:
                needs[place] -= 1
        elif best is not None:
            best[1].unlink(missing_ok=True)
    long_work.tell(f"making instances of {path.stem}", MOST, MOST)


def _told_by(
    source: Source,
    rows: dict[str, list[Row]],
    file: Path,
    targets: Sequence[Target],
    needs: Sequence[int],
) -> frozenset[int]:
    """Write a candidate, and the places of the wrong queries that it tells from their golds."""
    try:
        write_instance(source, rows, file)
        database = Database(file, _MAKING)
    except (NoInstance, EnvironmentFault):
        file.unlink(missing_ok=True)
        return frozenset()
    runs: dict[str, GoldRun | None] = {}
    told = set()
    for place, target in enumerate(targets):
        if needs[place] <= 0 or _gives_the_same(database, target):
            continue
        if target.gold not in runs:
            runs[target.gold] = gold_run.__wrapped__(database, target.gold)
        run = runs[target.gold]
        verdict = None if run is None else judge_on(database, run, target.wrong)
        if verdict is not None and not verdict.equal:
            told.add(place)
    database.close_idle()
    return frozenset(told)


def _gives_the_same(database: Database, target: Target) -> bool:
    """Whether gold and wrong query give the same rows; to ask more of a gold takes many queries."""
    try:
        return database.query(target.gold).rows == database.query(target.wrong).rows
    except ToolError:
        return False


def _targets(database: Database, source: Source, golds: Sequence[str], seed: str) -> list[Target]:
    """Wrong queries to choose instances by: those that the database does not tell apart first."""
    draw = random.Random(f"toolgym-suite-{seed}")
    same: list[Target] = []
    told: list[Target] = []
    share = max(4, _WRONG // max(1, len(golds)))
    for gold in golds:
        run = gold_run(database, gold)
        if run is None or not run.result.rows:
            continue
        wrong = wrong_queries(gold, source)
        for sql in draw.sample(wrong, min(len(wrong), share)):
            verdict = judge_on(database, run, sql)
            if verdict is None or verdict.reason.startswith("error"):
                continue
            (same if verdict.equal else told).append(Target(gold, sql, not verdict.equal))
    others = draw.sample(told, min(len(told), _OTHERS))
    return [*draw.sample(same, min(len(same), _TARGETS - _OTHERS)), *others]
