"""Creates data sets from databases without questions: tasks are written for the databases and
cached.

`load_tasks("my.db", "train")` writes tasks for a database, and also accepts a folder of databases.
A file is treated as a database if it begins with the header of an SQLite file. A folder counts as
databases without questions if neither it nor its subfolders contain JSON files. The databases of a
folder are the database files that are at most two levels deep. The id of a database is the name of
its file, or its path in the folder if two files have the same name.

`sqlgym.synthesis` writes the tasks when they are first used. The cache key contains the hash of the
file's content, the options, and the source of this package. `sqlgym.tasks.splits` divides the tasks
into `train`, `dev` and `test`. The split `all` contains all tasks.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sqlgym.database.sqlite_file import connect_readonly
from sqlgym.datasets.spider import ENDINGS, database_files, is_database
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
from toolgym.runs.files import replace_file
from toolgym.workers import Map, Progress

ALL: Final = "all"
SPLITS: Final = (*SHARES, ALL)
_ODD: Final = re.compile(r"\s|[\x00-\x7f](?<![\w.\-])")
_QUESTIONS: Final = ("*.json", "*.jsonl", "*/*.json", "*/*.jsonl")
Files = tuple[tuple[str, Path], ...]
Written = dict[str, Any]
"""The tasks of one database as plain data. `entries` has the Spider layout with the additional keys
`id` and `canonical`. `report` contains the counts that `toolgym tasks synth` prints.
"""


class SynthesisOptions(BaseModel):
    """Options of `load_tasks(..., synthesis={...})`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int = Field(500, ge=1)
    """Maximum number of tasks per database."""
    seed: int = 0
    """Seed for the choice among the possible tasks."""
    hardness: dict[Literal["easy", "medium", "hard", "extra"], float] | None = None
    """Shares of the hardness levels. None means shares as equal as the database allows."""
    tables: tuple[str, ...] | None = None
    """Tables that questions may use; None means all."""
    variants: int = Field(4, ge=1)
    """Maximum number of tasks that differ only in their literals."""


def read_options(options: Mapping[str, Any] | None) -> SynthesisOptions:
    """Validate the options of the synthesis.

    Raises:
        ConfigurationError: An option is unknown or out of range.
    """
    try:
        return SynthesisOptions.model_validate(dict(options or {}))
    except (ValidationError, TypeError, ValueError) as problem:
        reason = refused_fields(problem) if isinstance(problem, ValidationError) else problem
        names = ", ".join(SynthesisOptions.model_fields)
        raise ConfigurationError(
            f"invalid synthesis options: {reason}. The options are {names}."
        ) from None


def bare_databases(path: Path) -> Files:
    """Return the databases of a file or folder without questions, by name, or () for other data.

    Raises:
        ConfigurationError: A file has the suffix of a database but is not one.
    """
    if path.is_file():
        if is_database(path):
            return ((path.stem, path),)
        if path.suffix in ENDINGS:
            raise ConfigurationError(f"{path} is not an SQLite database.")
        return ()
    if any(next(path.glob(pattern), None) for pattern in _QUESTIONS):
        return ()
    files = [file for file in database_files(path) if is_database(file)]
    stems = Counter(file.stem for file in files)
    names = ["_".join(file.relative_to(path).with_suffix("").parts) for file in files]
    named = zip(names, files, strict=True)
    return tuple(sorted((f.stem if stems[f.stem] == 1 else name, f) for name, f in named))


def load_bare(
    files: Files, split: str, options: SynthesisOptions, name: str
) -> tuple[list[SqlTask], dict[str, TaskRefused]]:
    """Return the tasks of one split, and a refusal for each database without tasks.

    Args:
        files: The databases.
        split: One of `SPLITS`.
        options: The options of the synthesis.
        name: Name of the data set, for error messages.

    Raises:
        ConfigurationError: The split does not exist, or it has no tasks.
    """
    if split not in SPLITS:
        splits = ", ".join(map(repr, SPLITS))
        raise ConfigurationError(f"{name} has no split {split!r}: it has {splits}.")
    written, refused = write_all(files, options)
    places, entries = dict(files), [each for one in written.values() for each in one["entries"]]
    chosen = entries if split == ALL else divide(entries)[split]
    if not chosen:
        why = " ".join(refusal.reason for refusal in refused.values())
        if entries:
            why = (
                f"none of its {len(entries)} tasks belongs to {split!r}; take another split,"
                f" {ALL!r} for all tasks, or more tasks with synthesis={{'n': ...}}."
            )
        raise NoTasks(f"{name} has no tasks for split {split!r}: {why}")
    fields = {"id", "question", "db_id", "query", "hardness", "canonical"}
    tasks = [
        SqlTask(
            id=entry["id"],
            question=entry["question"],
            item=entry["db_id"],
            extra={key: entry[key] for key in entry if key not in fields},
            gold_sql=entry["query"],
            database=places[entry["db_id"]],
            hardness=entry["hardness"],
        )
        for entry in chosen
    ]
    return tasks, refused


def write_all(
    files: Files,
    options: SynthesisOptions,
    progress: Progress | None = None,
    map: Map = map,
) -> tuple[dict[str, Written], dict[str, TaskRefused]]:
    """Return the tasks of several databases by name, and refusals for the databases without tasks.

    Args:
        files: The databases.
        options: The options of the synthesis.
        progress: Called after each database with the number of finished tasks and the total.
        map: Function that processes the databases; see `toolgym.workers`.

    Raises:
        WorkerLost: A worker process ended while it processed a database.
    """
    written: dict[str, Written] = {}
    refused: dict[str, TaskRefused] = {}
    outcomes = map(functools.partial(_write_one, options), files)
    for done, ((db_id, _), one) in enumerate(zip(files, outcomes, strict=True), start=1):
        if isinstance(one, TaskRefused):
            refused[db_id] = one
        else:
            written[db_id] = one
        if progress is not None:
            progress(done * options.n, len(files) * options.n)
    return written, refused


def _write_one(options: SynthesisOptions, named: tuple[str, Path]) -> Written | TaskRefused:
    """Return the tasks of one database, from the cache if possible, or the reason why there are
    none.
    """
    db_id, path = named
    try:
        connect_readonly(path).close()  # refuses a file with an unmerged write-ahead log
        file = _cache_file(path, db_id, options)
        with suppress(OSError, ValueError):
            cached: Written = json.loads(file.read_bytes())
            return cached
        body = _write(path, db_id, options)
        with suppress(OSError):  # without a cache, the tasks are written again next time
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, [json.dumps(body).encode()])
        return body
    except EnvironmentFault as fault:
        return TaskRefused(db_id, "not_a_database", str(fault))
    except ConfigurationError as problem:  # the database is empty, or the options do not fit it
        return TaskRefused(db_id, "no_tasks", str(problem))


def _write(database: Path, db_id: str, options: SynthesisOptions) -> Written:
    from sqlgym.synthesis import synthesize  # slow to import, so only imported if tasks are written

    def tell(done: int, total: int) -> None:
        long_work.report_progress(f"writing tasks for {db_id}", done, total)

    synthesis = synthesize(database, **options.model_dump(), progress=tell)
    tell(options.n, options.n)  # fewer tasks may have been written
    entries = [
        {"id": task_id(db_id, task.canonical), **task.entry(db_id), "canonical": task.canonical}
        for task in synthesis.tasks
    ]
    counts = synthesis.report
    report = {
        "candidates": counts.candidates,
        "kept": len(entries),
        "by_hardness": counts.by_hardness,
        "rejected": counts.rejected,
        "missing": counts.missing,
        "left_out": counts.tables_left_out,
    }
    plain: Written = json.loads(json.dumps({"entries": entries, "report": report}))
    return plain


def task_id(db_id: str, canonical: str) -> str:
    """Return the id of a task: the name of its database and a hash of its canonical SQL.

    Characters with a special meaning in a shell or a file system are replaced with `_`. The hash
    includes the original name, so that the tasks of `my shop` and `my_shop` differ.

    >>> task_id("my shop", "SELECT 1")
    'my_shop-9743dcee'
    """
    marked = f"{db_id}\0{canonical}".encode("utf-8", "surrogatepass")
    return f"{_ODD.sub('_', db_id)}-{hashlib.sha256(marked).hexdigest()[:8]}"


def _cache_file(database: Path, db_id: str, options: SynthesisOptions) -> Path:
    with database.open("rb") as stream:
        content = hashlib.file_digest(stream, "sha256").hexdigest()
    key = json.dumps([content, db_id, options.model_dump(), source_state()], sort_keys=True)
    name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return cache_folder() / "sql" / "synthesized" / f"{name}.json"
