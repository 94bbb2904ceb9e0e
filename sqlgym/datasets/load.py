"""The loader of SQL tasks: a question, a database, and the SQL whose result is the gold answer.

Structure is checked when a data set is loaded; the gold SQL of a task is run when the task is first
drawn, under the same guard and limits as the agent's own queries, so that a data set of two million
questions starts at once. A task whose gold cannot be a fair answer is refused, with the reason; the
verdict is kept in the cache folder (`sqlgym.tasks.gold`).

A folder in the Spider layout is read as a whole. Of a JSONL file, and of what `datasets` holds, a
task is made from its row when it is asked for (`RowTasks`); an entry that cannot be used is then a
task with a `problem`, and is refused when it is drawn. For a database without questions tasks are
written (`sqlgym.datasets.synthesised`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, overload

from sqlgym.database.schema import ForeignKey
from sqlgym.datasets.bundled import DATASETS, dataset_folder, spider_layout, unknown_dataset
from sqlgym.datasets.family import SqlTaskFamily
from sqlgym.datasets.rows import JsonLines, from_hub, rows_of
from sqlgym.datasets.spider import (
    DatabaseFiles,
    Problem,
    SpiderQuestion,
    foreign_keys_of,
    load_spider,
    own_id,
    read_entry,
    splits_of,
)
from sqlgym.datasets.synthesised import (
    Files,
    SynthesisOptions,
    bare_databases,
    load_bare,
    read_options,
    stamps_of,
)
from sqlgym.tasks.gold import verify
from sqlgym.tasks.task import SqlTask
from toolgym import unseen
from toolgym.errors import ConfigurationError, TaskRefused
from toolgym.tasks import TaskSet


def task_of(question: SpiderQuestion, foreign_keys: tuple[ForeignKey, ...]) -> SqlTask:
    """A usable entry as a task."""
    return SqlTask(
        id=question.id,
        question=question.question,
        item=question.db_id,
        gold_sql=question.query,
        database=question.database,
        hardness=question.hardness,
        evidence=question.evidence,
        foreign_keys=foreign_keys,
        answerable=question.answerable,
    )


class RowTasks(Sequence[SqlTask]):
    """Tasks that are made from their rows when they are asked for.

    The id is `<split>-<index>`, so that it is found without reading the others; an id that the
    entry gives itself is in `extra`.

    Args:
        origin: The file, and what a row of it is called, for the reasons of refusals.
    """

    def __init__(
        self, rows: Sequence[Any], split: str, databases: Path, origin: tuple[str, str, int]
    ) -> None:
        self._rows, self._split, self._origin = rows, split, origin
        self._files = DatabaseFiles(databases, split)
        self._keys = foreign_keys_of(databases)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> SqlTask: ...
    @overload
    def __getitem__(self, index: slice) -> list[SqlTask]: ...
    def __getitem__(self, index: int | slice) -> SqlTask | list[SqlTask]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        entry = self._rows[place]
        origin, row, first = self._origin
        where = f"{origin}, {row} {place + first}"
        name = f"{self._split}-{place:05d}"
        question = read_entry(entry, name, self._split, self._files, where)
        if isinstance(question, Problem):
            return SqlTask(name, "", problem=(question.code, question.reason))
        entry_id = own_id(entry)
        extra = {"id": entry_id} if entry_id else {}
        return replace(task_of(question, self._keys.get(question.db_id, ())), extra=extra)

    def place_of(self, task_id: str) -> int | None:
        """The place of the task with this id; None if there is none."""
        prefix, _, digits = task_id.rpartition("-")
        if prefix != self._split or not (digits.isascii() and digits.isdigit()):
            return None
        place = int(digits[:19])
        return place if place < len(self) and task_id == f"{prefix}-{place:05d}" else None


REFUSALS: dict[str, str] = {
    "empty_gold": "The gold SQL finds no rows: anything that finds nothing would be right.",
    "null_gold": "The gold SQL finds nothing but NULL.",
    "constant_gold": "The gold SQL reads no table.",
    "result_too_large": "The gold result does not fit into an observation.",
    "tied_limit": "The gold SQL cuts through rows that tie: several results are right.",
    "open_choice": "The gold leaves open which of several values it takes.",
    "gold_...": "The gold SQL fails, with the code of the error (`gold_sql_error`, ...).",
    "not_an_object": "The entry of the data set is not a JSON object.",
    "missing_key": "The entry lacks its question, its SQL or its database.",
    "duplicate_id": "Another entry has the same id.",
    "unknown_database": "There is no such database in the folder.",
    "not_a_database": "The database file is not SQLite.",
    "no_tasks": "No task can be written for the database.",
}
"""The codes of why a task is refused, for the documentation."""


FAMILY: Final = SqlTaskFamily()


def load_tasks(
    dataset: Any,
    split: str,
    *,
    databases: str | Path | None = None,
    synthesis: Mapping[str, Any] | None = None,
) -> TaskSet[SqlTask]:
    """The tasks of one split.

    Args:
        dataset: "bundled" or "tiny"; a folder in the Spider or BIRD layout, or with
            `SPLIT.jsonl`; a file `NAME.jsonl`; an SQLite file, or a folder of them, for which tasks
            are written; "hf:NAME"; a `datasets.Dataset` or `IterableDataset`, or a list of dicts
            with `db_id`, `question` and `query`.
        split: "train", "dev", or what else there is; "dev-tasks", "dev-databases" or "dev-shapes":
            those tasks of "dev" that are new to "train" in this respect.
        databases: The folder with the databases, where they do not lie beside the questions.
        synthesis: For databases without questions: `n`, `seed`, `hardness`, `tables`,
            `variants`, `wording`; see `sqlgym.datasets.synthesised.SynthesisOptions`.

    Returns:
        The tasks. Its `refused` tells which entries cannot be played, and why, as far as is known;
        `check` completes it.

    Raises:
        ConfigurationError: The data set or the split is not there, or cannot be read, or no task
            can be written.
    """

    def load(name: str) -> TaskSet[SqlTask]:
        return _load_plain(dataset, name, databases, synthesis)

    is_own = unseen.split_of(split, FAMILY.kinds) is not None and _has(dataset, split)
    return unseen.load_split(split, FAMILY, load, is_own=is_own)


def _has(dataset: Any, split: str) -> bool:
    """Whether a data set brings a split of just this name."""
    if isinstance(dataset, str | Path):
        return not str(dataset).startswith("hf:") and split in FAMILY.splits(dataset)
    return isinstance(dataset, Mapping) and split in dataset


def _load_plain(
    dataset: Any,
    split: str,
    databases: str | Path | None,
    synthesis: Mapping[str, Any] | None,
) -> TaskSet[SqlTask]:
    """The tasks of a split that the data set brings."""
    if isinstance(dataset, str | Path) and (files := _bare(dataset)):
        if databases is not None:
            raise ConfigurationError(f"{dataset} has no questions: leave out databases=.")
        options = read_options(synthesis).model_dump_json()
        return _load_bare(files, stamps_of(files), split, options, str(dataset))
    if synthesis is not None:
        raise ConfigurationError(
            "synthesis= is for a database file, or a folder of them, without questions."
        )
    place = None if databases is None else _folder(databases)
    if not isinstance(dataset, str | Path):
        return _in_memory(dataset, split, place, type(dataset).__name__)
    if str(dataset).startswith("hf:"):
        name = str(dataset).removeprefix("hf:")
        beside = Path(name).expanduser()
        place = place or (beside.resolve() if beside.is_dir() else None)
        return _in_memory(from_hub(name, split), split, place, str(dataset))
    if dataset in DATASETS:
        return _load(dataset_folder(str(dataset)), split, str(dataset), place)
    return _of_path(Path(dataset).expanduser(), split, str(dataset), place)


def _bare(dataset: str | Path) -> Files:
    """The databases without questions that a data set is; none if it is something else."""
    if dataset in DATASETS or str(dataset).startswith("hf:"):
        return ()
    path = Path(dataset).expanduser()
    return bare_databases(path.resolve()) if path.exists() else ()


@functools.lru_cache(maxsize=32)
def _load_bare(
    files: Files, stamps: tuple[tuple[int, int], ...], split: str, options: str, name: str
) -> TaskSet[SqlTask]:
    """One shared set per split of files that have these stamps; the options are JSON."""
    tasks, refused = load_bare(files, split, SynthesisOptions.model_validate_json(options), name)
    return TaskSet(tasks, name=f"{name} ({split}, synthesised)", verify=verify, refused=refused)


def _of_path(path: Path, split: str, name: str, databases: Path | None) -> TaskSet[SqlTask]:
    if path.is_file():
        return _of_file(path.resolve(), split, name, databases)
    if not path.is_dir():
        raise unknown_dataset(name)
    path = spider_layout(path.resolve())
    lines = path / f"{split}.jsonl"
    if lines.is_file() and split not in splits_of(path):
        return _load_lines(lines, split, name, databases or lines.parent)
    return _load(path, split, name, databases)


def _folder(path: str | Path) -> Path:
    folder = Path(path).expanduser().resolve()
    if not folder.is_dir():
        raise ConfigurationError(f"databases={str(path)!r}: there is no such folder.")
    return folder


def _of_file(path: Path, split: str, name: str, databases: Path | None) -> TaskSet[SqlTask]:
    if path.suffix != ".jsonl":
        raise ConfigurationError(
            f"{name}: of single files only .jsonl and SQLite are read; give its folder."
        )
    if path.stem in {"train", "dev", "test"} and path.stem != split:
        raise ConfigurationError(f"{name} is split {path.stem!r}, not {split!r}; ask for that one.")
    return _load_lines(path, split, name, databases or path.parent)


def _in_memory(dataset: Any, split: str, databases: Path | None, name: str) -> TaskSet[SqlTask]:
    if databases is None:
        raise ConfigurationError(
            f"{name} holds questions only; say where their databases are with databases=FOLDER."
        )
    rows = rows_of(dataset, split)
    tasks = RowTasks(rows, split, databases, (name, "row", 0))
    return TaskSet(tasks, name=f"{name} ({split})", verify=verify)


@functools.lru_cache(maxsize=32)
def _load_lines(path: Path, split: str, name: str, databases: Path) -> TaskSet[SqlTask]:
    tasks = RowTasks(JsonLines(path), split, databases, (str(path), "line", 1))
    return TaskSet(tasks, name=f"{name} ({split})", verify=verify)


@functools.lru_cache(maxsize=32)
def _load(folder: Path, split: str, name: str, databases: Path | None) -> TaskSet[SqlTask]:
    """One shared set per folder and split, since every copy of an environment asks for it."""
    loaded = load_spider(folder, split, databases, name=name)
    problems = {
        problem.id: TaskRefused(problem.id, problem.code, problem.reason)
        for problem in loaded.problems
    }
    keys = loaded.foreign_keys
    tasks = [task_of(question, keys.get(question.db_id, ())) for question in loaded.questions]
    return TaskSet(tasks, name=f"{name} ({split})", verify=verify, refused=problems)
