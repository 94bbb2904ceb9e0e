"""Database files that have no questions beside them, and the task sets that are made of them.

A file is taken as a database by its first bytes. A folder is taken for databases without questions
if there is no JSON in it nor one folder deeper; then every database file in it, or up to two
folders deeper, is one. A database is called by its file's name; where two have one name, by its
path in the folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from sqlgym.database.sqlite_file import HEADER
from sqlgym.datasets.spider import ENDINGS
from sqlgym.datasets.synthesis_cache import SynthesisOptions, Written, write_tasks
from sqlgym.tasks.splits import SHARES, divide
from sqlgym.tasks.task import SqlTask
from toolgym.errors import ConfigurationError, EnvironmentFault, TaskRefused
from toolgym.family import Progress

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
    found = sorted(
        file
        for pattern in ("*", "*/*", "*/*/*")
        for file in path.glob(pattern)
        if file.suffix in ENDINGS and is_database(file)
    )
    return tuple(sorted(_named(path, found)))


def _named(folder: Path, files: Iterable[Path]) -> Iterable[tuple[str, Path]]:
    """Each file with a name of its own."""
    stems = Counter(file.stem for file in files)
    for file in files:
        parts = file.relative_to(folder).with_suffix("").parts
        yield (file.stem if stems[file.stem] == 1 else "_".join(parts)), file


def load_bare(files: Files, split: str, options: SynthesisOptions, name: str) -> Outcome:
    """The tasks of one split, written where they are not in the cache.

    Args:
        files: From `bare_databases`.
        split: One of `SPLITS`.
        options: How many tasks, and which.
        name: How errors call the data set.

    Returns:
        The tasks, and the databases for which none can be written, as refusals.

    Raises:
        ConfigurationError: There is no such split, or there are no tasks for it.
    """
    if split not in SPLITS:
        known = ", ".join(map(repr, SPLITS))
        raise ConfigurationError(f"{name} has no split {split!r}: it has {known}.")
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
        raise ConfigurationError(f"{name} has no tasks for split {split!r}: {why}")
    return [_task(entry, places[entry["db_id"]]) for entry in chosen], refused


def stamps_of(files: Files) -> tuple[tuple[int, int], ...]:
    """Size and time of change of each file: another stamp is another content."""
    return tuple((path.stat().st_size, path.stat().st_mtime_ns) for _, path in files)


def write_all(
    files: Files, options: SynthesisOptions, progress: Progress | None = None
) -> tuple[list[Written], dict[str, TaskRefused]]:
    """The tasks of several databases, and why there are none of the others.

    Args:
        files: From `bare_databases`.
        options: For each of them.
        progress: Called with how many tasks are found and how many are wanted, of all together.
    """
    written: list[Written] = []
    refused: dict[str, TaskRefused] = {}
    for place, (db_id, path) in enumerate(files):

        def told(done: int, _: int, before: int = place * options.n) -> None:
            if progress is not None:
                progress(before + done, len(files) * options.n)

        try:
            one = write_tasks(path, db_id, options, None if progress is None else told)
        except EnvironmentFault as fault:
            refused[db_id] = TaskRefused(db_id, "not_a_database", str(fault))
            continue
        except ConfigurationError as problem:  # it is empty, or the options do not fit it
            refused[db_id] = TaskRefused(db_id, "no_tasks", str(problem))
            continue
        if one.is_empty:
            refused[db_id] = TaskRefused(db_id, "no_tasks", one.why_empty)
        else:
            written.append(one)
    if progress is not None:
        progress(len(files) * options.n, len(files) * options.n)
    return written, refused


def _task(entry: Mapping[str, Any], database: Path) -> SqlTask:
    return SqlTask(
        id=entry["id"],
        question=entry["question"],
        item=entry["db_id"],
        extra={"shape": entry["shape"]},
        gold_sql=entry["query"],
        database=database,
        hardness=entry["hardness"],
    )
