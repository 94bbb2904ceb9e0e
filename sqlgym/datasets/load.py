"""`load_tasks`: loads SQL tasks from a name, file, folder or object as a `TaskSet`.

Loading checks only the structure of the data. The gold SQL of a task runs when the task is first
drawn, under the same limits as the queries of the agent. Therefore even a data set of two million
questions loads quickly. A task whose gold result is not a usable answer is rejected with a reason.
The verdict is stored in the cache folder (`sqlgym.tasks.gold`).

A folder in the Spider layout is read completely. Rows of a JSONL file or of a `datasets.Dataset`
are converted to tasks when they are used (`RowTasks`). A row that cannot be used becomes a task
with a `problem`, which is rejected when it is drawn. For a database without questions, tasks are
written (`sqlgym.datasets.synthesized`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sqlgym.datasets.bundled import locate
from sqlgym.datasets.family import SqlTaskFamily
from sqlgym.datasets.rows import JsonLines, from_hub, rows_of
from sqlgym.datasets.spider import (
    DatabaseFiles,
    foreign_keys_of,
    no_split,
    own_id,
    read_entry,
    read_split,
    splits_of,
)
from sqlgym.datasets.synthesized import (
    Files,
    SynthesisOptions,
    bare_databases,
    load_bare,
    read_options,
)
from sqlgym.tasks.gold import verify
from sqlgym.tasks.task import SqlTask
from toolgym import unseen
from toolgym.errors import ConfigurationError, TaskRefused
from toolgym.tasks import TaskSet


class RowTasks(Sequence[SqlTask]):
    """Tasks that are created from their rows when they are indexed.

    The id of a task is `<split>-<index>`, so a task is found without reading other rows. The `id`
    of the row is stored in `extra`.

    Args:
        rows: The rows. Indexing may raise a `ValueError` with the reason why a row is unreadable.
        split: The split.
        databases: The folder with the databases.
        where: Text that precedes the row number in error messages, such as "my.jsonl, line".
        first: The number of the first row.
    """

    def __init__(
        self, rows: Sequence[Any], split: str, databases: Path, where: str, first: int = 0
    ) -> None:
        self._rows, self._split, self._where, self._first = rows, split, where, first
        self._files, self._keys = DatabaseFiles(databases, split), foreign_keys_of(databases)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        place = range(len(self))[index]
        name, where = f"{self._split}-{place:05d}", f"{self._where} {place + self._first}"
        try:
            entry = self._rows[place]
        except ValueError as problem:
            return SqlTask(name, "", problem=("not_an_object", f"{where}: it {problem}."))
        try:
            task = read_entry(entry, name, self._files, self._keys, where)
        except TaskRefused as refusal:
            return SqlTask(name, "", problem=(refusal.code, refusal.reason))
        return replace(task, extra={"id": own}) if (own := own_id(entry)) else task

    def place_of(self, task_id: str) -> int | None:
        """Return the index of the task with this id, or None if there is none."""
        digits = task_id.removeprefix(f"{self._split}-")
        place = int(digits[:19]) if digits.isascii() and digits.isdigit() else len(self)
        is_own = place < len(self) and task_id == f"{self._split}-{place:05d}"
        return place if is_own else None


REFUSALS: dict[str, str] = {
    "empty_gold": (
        "The gold query returns no rows, so any query that returns no rows would be correct."
    ),
    "null_gold": "The gold query returns only NULL.",
    "constant_gold": "The gold query does not read from any table.",
    "result_too_large": "The gold result does not fit into an observation.",
    "tied_limit": "A LIMIT in the gold query omits tied rows, so several results are correct.",
    "open_choice": "The gold query does not determine which of several values is returned.",
    "gold_...": (
        "The gold query fails with an SQL error, which the code names: for example,"
        " `gold_sql_error`."
    ),
    "not_an_object": "The entry of the data set is not a JSON object.",
    "missing_key": "The entry does not contain a question, a gold query or a database.",
    "duplicate_id": "Another entry has the same id.",
    "unknown_database": "The folder of the data set does not contain the database.",
    "not_a_database": "The database file is not a SQLite file.",
    "no_tasks": "No tasks can be generated for the database.",
}
"""Codes of refused tasks and their meanings, for the documentation."""


FAMILY: Final = SqlTaskFamily()


def load_tasks(
    dataset: Any,
    split: str,
    *,
    databases: str | Path | None = None,
    synthesis: Mapping[str, Any] | None = None,
) -> TaskSet[SqlTask]:
    """Load the tasks of one split.

    Args:
        dataset: One of the following: the name "bundled" or "tiny"; a folder in the Spider or BIRD
            layout, or with `SPLIT.jsonl`; a file `NAME.jsonl`; an SQLite file or a folder of them,
            for which tasks are written; "hf:NAME" for a data set of the Hugging Face Hub; a
            `datasets.Dataset`, an `IterableDataset`, or a list of dicts with `db_id`, `question`
            and `query`.
        split: "train", "dev", or another split of the data set. "dev-tasks", "dev-databases" and
            "dev-shapes" select the tasks of "dev" whose task, database or SQL shape does not occur
            in "train".
        databases: The folder with the databases, if they are not in the folder of the questions.
        synthesis: Options for databases without questions: `n`, `seed`, `hardness`, `tables`,
            `variants`; see `sqlgym.datasets.synthesized.SynthesisOptions`.

    Returns:
        The task set. The attribute `refused` contains the entries that are known to be unusable,
        with the reasons; `check` completes this list.

    Raises:
        ConfigurationError: The data set or the split does not exist or cannot be read, or no task
            can be written.
    """

    def load(name: str) -> TaskSet[SqlTask]:
        return _load_plain(dataset, name, databases, synthesis)

    has_own = split in dataset if isinstance(dataset, Mapping) else False
    if unseen.split_of(split, FAMILY.kinds) and isinstance(dataset, str | Path):
        has_own = not str(dataset).startswith("hf:") and split in FAMILY.splits(dataset)
    return unseen.load_split(split, FAMILY, load, is_own=has_own)


def _load_plain(
    dataset: Any,
    split: str,
    databases: str | Path | None,
    synthesis: Mapping[str, Any] | None,
) -> TaskSet[SqlTask]:
    """Return the tasks of a split that the data set defines itself."""
    name = str(dataset) if isinstance(dataset, str | Path) else type(dataset).__name__
    path = None
    if isinstance(dataset, str | Path) and not name.startswith("hf:"):
        path = locate(name)
        if bare := bare_databases(path):
            if databases is not None:
                raise ConfigurationError(
                    f"{name} has no questions, so databases= must not be given."
                )
            options = read_options(synthesis).model_dump_json()
            stamps = tuple((file.stat().st_size, file.stat().st_mtime_ns) for _, file in bare)
            return _load_bare(bare, stamps, split, options, name)
    if synthesis is not None:
        raise ConfigurationError(
            "synthesis= is only valid for a database file or a folder of database files."
        )
    place = None if databases is None else Path(databases).expanduser().resolve()
    if place is not None and not place.is_dir():
        raise ConfigurationError(f"the folder databases={str(databases)!r} does not exist.")
    if path is not None:
        return _load(path, split, name, place)
    if isinstance(dataset, str | Path):
        folder = Path(name.removeprefix("hf:")).expanduser()
        place = place or (folder.resolve() if folder.is_dir() else None)
        dataset = from_hub(name.removeprefix("hf:"), split)
    if place is None:
        raise ConfigurationError(
            f"{name} has questions only; give the folder of their databases with databases=FOLDER."
        )
    tasks = RowTasks(rows_of(dataset, split), split, place, f"{name}, row")
    return TaskSet(tasks, name=f"{name} ({split})", verify=verify)


@functools.lru_cache(maxsize=32)
def _load_bare(
    files: Files, stamps: tuple[tuple[int, int], ...], split: str, options: str, name: str
) -> TaskSet[SqlTask]:
    """Return the shared task set of a split, until the size or the modification time of a file
    changes.
    """
    tasks, refused = load_bare(files, split, SynthesisOptions.model_validate_json(options), name)
    return TaskSet(tasks, name=f"{name} ({split}, synthesized)", verify=verify, refused=refused)


@functools.lru_cache(maxsize=32)
def _load(path: Path, split: str, name: str, databases: Path | None) -> TaskSet[SqlTask]:
    """Return the task set of a path and split, which is shared by all environments."""
    if path.is_dir():
        files = splits_of(path).get(split)
        if files is None:
            raise no_split(path, split, name)
    elif path.suffix != ".jsonl":
        raise ConfigurationError(
            f"{name}: single files must be .jsonl or SQLite; for other data, use the folder."
        )
    elif path.stem in {"train", "dev", "test"} and path.stem != split:
        raise ConfigurationError(f"{name} is split {path.stem!r}, not {split!r}; use that split.")
    else:
        files = (path,)
    place, title = databases or files[0].parent, f"{name} ({split})"
    if files[0].suffix == ".jsonl":
        rows = RowTasks(JsonLines(files[0]), split, place, f"{files[0]}, line", first=1)
        return TaskSet(rows, name=title, verify=verify)
    tasks, refused = read_split(files, split, place)
    return TaskSet(tasks, name=title, verify=verify, refused=refused)
