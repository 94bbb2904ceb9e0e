"""Databases without questions as data sets: tasks are written for them, and kept.

    load_tasks("my.db", "train"), or a folder of such files

A file is taken as a database by its first bytes. A folder is taken for databases without questions
if there is no JSON in it nor one folder deeper; then every database file in it, or up to two
folders deeper, is one. A database is called by its file's name; where two have one name, by its
path in the folder.

The tasks of a file are written by `sqlgym.synthesis` when they are first asked for, and kept in the
cache folder under the hash of the file's content, of the options and of this package's source, so
they are there at once the next time, and are others only where something that decides over them
has changed. Several processes may ask at once: each writes, and one file comes out whole.
`sqlgym.tasks.splits` divides them into `train`, `dev` and `test`; `all` is all of them.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sqlgym.database.sqlite_file import HEADER, connect_readonly
from sqlgym.datasets.spider import ENDINGS, database_files
from sqlgym.tasks.gold import source_state
from sqlgym.tasks.splits import SHARES, divide
from sqlgym.tasks.task import SqlTask
from toolgym import long_work
from toolgym.cache import cache_folder
from toolgym.errors import (
    ConfigurationError,
    EnvironmentFault,
    NoTasks,
    TaskRefused,
    refused_fields,
)
from toolgym.workers import Map, Progress

Level = Literal["easy", "medium", "hard", "extra"]
KEPT: Final = (
    "candidates",
    "kept",
    "rejected",
    "by_hardness",
    "by_template",
    "missing",
    "tables_left_out",
    "references",
)
"""What is kept of the report of a synthesis."""


class SynthesisOptions(BaseModel):
    """The options of `load_tasks(..., synthesis={...})`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int = Field(500, ge=1)
    """Tasks of each database at most."""
    seed: int = 0
    """Chooses among the tasks that can be written."""
    hardness: dict[Level, float] | None = None
    """Shares of the hardness levels; None takes what there is, as evenly as it goes."""
    tables: tuple[str, ...] | None = None
    """Tables that questions may be about; None means all."""
    variants: int = Field(4, ge=1)
    """Tasks that may differ in their literals only."""


@dataclass(frozen=True)
class Written:
    """The tasks of one database.

    Attributes:
        entries: In the Spider layout, with `id`, `hardness`, `template` and `canonical`.
        report: What was tried, kept and left out, as plain data.
    """

    db_id: str
    database: Path
    entries: tuple[dict[str, Any], ...]
    report: dict[str, Any]

    def summary(self) -> dict[str, Any]:
        """The report as a command prints it."""
        more = {"kept": len(self.entries), "left_out": self.report["tables_left_out"]}
        names = ("candidates", "kept", "by_hardness", "rejected", "missing", "left_out")
        return {name: more[name] if name in more else self.report[name] for name in names}

    @property
    def why_empty(self) -> str:
        """Why no task could be written, as far as is known."""
        rejected = sorted(self.report["rejected"].items(), key=lambda pair: -pair[1])[:3]
        reasons = [f"{count:,} candidates {code}" for code, count in rejected]
        reasons += [f"{name}: {why}" for name, why in self.report["tables_left_out"].items()][:3]
        return f"no task can be written for {self.db_id}: {'; '.join(reasons) or 'it is empty'}."


def read_options(options: Mapping[str, Any] | None) -> SynthesisOptions:
    """The options of a synthesis.

    Raises:
        ConfigurationError: One is unknown or out of range.
    """
    try:
        return SynthesisOptions.model_validate(dict(options or {}))
    except (ValidationError, TypeError, ValueError) as problem:
        reason = refused_fields(problem) if isinstance(problem, ValidationError) else problem
        names = ", ".join(SynthesisOptions.model_fields)
        raise ConfigurationError(
            f"these options of a synthesis are refused: {reason}. There are {names}."
        ) from None


def write_tasks(database: Path, db_id: str, options: SynthesisOptions) -> Written:
    """The tasks of one database, from the cache if they are there.

    Progress is reported by `toolgym.long_work`.

    Args:
        db_id: What the tasks call it.

    Raises:
        ConfigurationError: An option does not fit this database.
        EnvironmentFault: The file cannot be read as a database.
    """
    connect_readonly(database).close()  # a file that cannot be read has no content to hash
    file = _cache_file(database, db_id, options)
    body = _load(file)
    if body is None:
        body = _write(database, db_id, options)
        _save(file, body)
    return Written(db_id, database, tuple(body["entries"]), body["report"])


def _write(database: Path, db_id: str, options: SynthesisOptions) -> dict[str, Any]:
    from sqlgym.synthesis import synthesize  # imports a parser: only where tasks are written

    def tell(done: int, total: int) -> None:
        long_work.report_progress(f"writing tasks for {db_id}", done, total)

    synthesis = synthesize(database, **options.model_dump(), progress=tell)
    tell(options.n, options.n)  # a database may be exhausted before
    entries = []
    for task in synthesis.tasks:
        entry = {"id": task_id(db_id, task.canonical), **task.entry(db_id)}
        entries.append({**entry, "canonical": task.canonical})
    report = {name: getattr(synthesis.report, name) for name in KEPT}
    plain: dict[str, Any] = json.loads(json.dumps({"entries": entries, "report": report}))
    return plain


def task_id(db_id: str, canonical: str) -> str:
    """The id of a task: the name of its database, and a mark of what is asked.

    What a command line or a file name would have to quote becomes `_`. The mark is then one of the
    whole name too, so that the tasks of `my shop` and `my_shop` differ, whatever else is loaded.

    >>> task_id("shop", "SELECT 1"), task_id("my shop", "SELECT 1")
    ('shop-e004ebd5', 'my_shop-9743dcee')
    """
    name = _ODD.sub("_", db_id)
    marked = canonical if name == db_id else f"{db_id}\0{canonical}"
    return f"{name}-{hashlib.sha256(marked.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


_ODD: Final = re.compile(r"\s|[\x00-\x7f](?<![\w.\-])")


def _load(file: Path) -> dict[str, Any] | None:
    """What is kept; None where there is nothing, or nothing whole."""
    try:
        body = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    return body if isinstance(body, dict) and body.keys() == {"entries", "report"} else None


def _save(file: Path, body: Mapping[str, Any]) -> None:
    """Put a file in its place by one rename; where nothing can be written, nothing is kept."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, fresh = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(json.dumps(body).encode())
            Path(fresh).replace(file)
        finally:
            Path(fresh).unlink(missing_ok=True)
    except OSError:
        return


def _cache_file(database: Path, db_id: str, options: SynthesisOptions) -> Path:
    status = database.stat()
    content = content_hash(database, status.st_size, status.st_mtime_ns)
    state = source_state()
    key = json.dumps([content, db_id, options.model_dump(), state], sort_keys=True)
    name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return cache_folder() / "sql" / "synthesized" / f"{name}.json"


@functools.lru_cache(maxsize=1_024)
def content_hash(path: Path, size: int, changed: int) -> str:
    """The sha256 of a file; size and time of change are its key in this process."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


ALL: Final = "all"
SPLITS: Final = (*SHARES, ALL)
_QUESTIONS: Final = ("*.json", "*.jsonl", "*/*.json", "*/*.jsonl")

Files = tuple[tuple[str, Path], ...]
Outcome = tuple[list[SqlTask], Mapping[str, TaskRefused]]


def is_database(path: Path) -> bool:
    """Whether a file is SQLite, by its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(len(HEADER)) == HEADER
    except OSError:
        return False


def bare_databases(path: Path) -> Files:
    """The databases of a file or folder without questions, by name; none where there are questions.

    Raises:
        ConfigurationError: A file is called a database and is none.
    """
    if path.is_file():
        if is_database(path):
            return ((path.stem, path),)
        if path.suffix in ENDINGS:
            raise ConfigurationError(f"{path} is not an SQLite database.")
        return ()
    if any(True for pattern in _QUESTIONS for _ in path.glob(pattern)):
        return ()
    return tuple(sorted(_named(path, list(filter(is_database, database_files(path))))))


def _named(folder: Path, files: Iterable[Path]) -> Iterable[tuple[str, Path]]:
    """Each file with a name of its own."""
    stems = Counter(file.stem for file in files)
    for file in files:
        parts = file.relative_to(folder).with_suffix("").parts
        yield (file.stem if stems[file.stem] == 1 else "_".join(parts)), file


def load_bare(files: Files, split: str, options: SynthesisOptions, name: str) -> Outcome:
    """The tasks of one split, written where they are not in the cache.

    Args:
        name: How errors call the data set.

    Returns:
        The tasks, and the databases for which none can be written, as refusals.

    Raises:
        ConfigurationError: There is no such split, or there are no tasks for it.
    """
    if split not in SPLITS:
        splits = ", ".join(map(repr, SPLITS))
        raise ConfigurationError(f"{name} has no split {split!r}: it has {splits}.")
    written, refused = write_all(files, options)
    places = {one.db_id: one.database for one in written}
    entries = [entry for one in written for entry in one.entries]
    chosen = entries if split == ALL else divide(entries)[split]
    if not chosen:
        why = " ".join(refusal.reason for refusal in refused.values())
        if entries:
            why = (
                f"of its {len(entries)} tasks none falls to {split!r}; take another split,"
                f" {ALL!r} for all of them, or more tasks with synthesis={{'n': ...}}."
            )
        raise NoTasks(f"{name} has no tasks for split {split!r}: {why}")
    return [_task(entry, places[entry["db_id"]]) for entry in chosen], refused


def stamps_of(files: Files) -> tuple[tuple[int, int], ...]:
    """Size and time of change of each file: another stamp is another content."""
    return tuple((path.stat().st_size, path.stat().st_mtime_ns) for _, path in files)


def write_all(
    files: Files,
    options: SynthesisOptions,
    progress: Progress | None = None,
    map: Map = map,
) -> tuple[list[Written], dict[str, TaskRefused]]:
    """The tasks of several databases, and why there are none of the others.

    Args:
        progress: Called after each database with how many tasks were wanted of those so far, and
            how many are wanted of all.
        map: Does the work for each database; see `toolgym.workers`.

    Raises:
        WorkerLost: A worker process ended while it worked on a database.
    """
    written: list[Written] = []
    refused: dict[str, TaskRefused] = {}
    for done, one in enumerate(map(functools.partial(_write_one, options), files), start=1):
        if isinstance(one, TaskRefused):
            refused[one.task_id] = one
        else:
            written.append(one)
        if progress is not None:
            progress(done * options.n, len(files) * options.n)
    if progress is not None and written:  # what could not be found is not waited for any more
        found = sum(len(one.entries) for one in written)
        progress(found, found)
    return written, refused


def _write_one(options: SynthesisOptions, named: tuple[str, Path]) -> Written | TaskRefused:
    """The tasks of one database, or why there are none."""
    db_id, path = named
    try:
        one = write_tasks(path, db_id, options)
    except EnvironmentFault as fault:
        return TaskRefused(db_id, "not_a_database", str(fault))
    except ConfigurationError as problem:  # it is empty, or the options do not fit it
        return TaskRefused(db_id, "no_tasks", str(problem))
    return one if one.entries else TaskRefused(db_id, "no_tasks", one.why_empty)


def _task(entry: Mapping[str, Any], database: Path) -> SqlTask:
    return SqlTask(
        id=entry["id"],
        question=entry["question"],
        item=entry["db_id"],
        extra={"template": entry["template"]},
        gold_sql=entry["query"],
        database=database,
        hardness=entry["hardness"],
    )
