"""Load workflow tasks: the bundled ones, a file, a folder with a file per split, or rows in memory.

A file holds one JSON object a line, or one JSON list. Each entry is in our own layout or in that
of GSM8K, HumanEval, MBPP or HotpotQA (`aflowgym.tasks.layouts`), known by its keys. A broken entry
is refused with its file and line, and the rest loads: `TaskSet.refused` tells which and why.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from aflowgym.tasks.layouts import Refused, task_of
from aflowgym.tasks.task import WorkflowTask
from toolgym.errors import ConfigurationError, EnvironmentFault, TaskRefused
from toolgym.tasks import TaskSet

DATASETS: Final = ("bundled",)
_STANDARD: Final = ("train", "dev", "test")

REFUSALS: Final[dict[str, str]] = {
    "not_json": "The line is not JSON, or not UTF-8.",
    "not_an_object": "The entry is not a JSON object.",
    "unknown_layout": "The entry has the keys of no layout that is known.",
    "missing_key": "The entry lacks a key that its layout needs.",
    "bad_value": "The value of a key is of the wrong type or form.",
    "empty_question": "The question is empty.",
    "unreadable_gold": "The gold answer is nothing that its verifier could compare.",
    "unsupported_test": "A test is not an assertion over literals.",
    "duplicate_id": "Another entry has the same id.",
}
"""The codes of why an entry is refused, for the documentation."""


def load_tasks(dataset: Any, split: str) -> TaskSet[WorkflowTask]:
    """The tasks of one split.

    Args:
        dataset: "bundled"; a folder with `SPLIT.jsonl` or `SPLIT.json`; such a file (one called
            after a split is that split, any other name serves every split); or rows, as a
            `datasets.Dataset` or a list of dicts, or a mapping from splits to them.
        split: "train", "dev", "test", or what else there is.

    Returns:
        The tasks, in their order. Its `refused` tells which entries were left out, and why.

    Raises:
        ConfigurationError: The data set or the split is not there, or no entry of it is usable.
        EnvironmentFault: The bundled data are missing.
    """
    if isinstance(dataset, str | Path):
        path = _file(dataset, split)
        return _load(path, path.stat().st_mtime_ns, f"{dataset} ({split})")
    rows = dataset
    if isinstance(dataset, Mapping):
        if split not in dataset:
            known = ", ".join(map(repr, dataset))
            raise ConfigurationError(f"the data set has no split {split!r}: it has {known}.")
        rows = dataset[split]
    if not isinstance(rows, Iterable):
        raise ConfigurationError(
            f"a {type(dataset).__name__} is no data set: give a name, a path, or a list of dicts."
        )
    name = f"{type(dataset).__name__} ({split})"
    entries = ((f"row {place}", f"{split}-{place}", row) for place, row in enumerate(rows))
    return _task_set(entries, name)


def bundled_dir() -> Path:
    """The folder of the bundled tasks: in the installed package, else in the checkout.

    Raises:
        EnvironmentFault: Neither place has the folder.
    """
    package = Path(__file__).resolve().parents[1]
    places = [package / "_data" / "workflows", package.parent / "data" / "workflows"]
    for place in places:
        if place.is_dir():
            return place
    raise EnvironmentFault(
        f"The bundled workflow tasks are missing: neither {places[0]} nor {places[1]} exists.",
        "Install toolgym again, or run it from a checkout that has its data/ folder.",
    )


def _file(dataset: str | Path, split: str) -> Path:
    """The file that holds a split of a data set."""
    path = bundled_dir() if dataset in DATASETS else Path(dataset).expanduser().resolve()
    if path.is_file():
        if path.suffix not in (".jsonl", ".json"):
            raise ConfigurationError(f"{dataset}: only .jsonl and .json files are read.")
        if path.stem in _STANDARD and path.stem != split:
            raise ConfigurationError(
                f"{dataset} is split {path.stem!r}, not {split!r}; ask for that one."
            )
        return path
    if not path.is_dir():
        raise ConfigurationError(
            f"there is no data set {str(dataset)!r}: it is neither a file or folder nor one of"
            f" {', '.join(DATASETS)}."
        )
    for name in (f"{split}.jsonl", f"{split}.json"):
        if (path / name).is_file():
            return path / name
    known = ", ".join(sorted(repr(found.stem) for found in path.glob("*.jsonl"))) or "none"
    raise ConfigurationError(f"{dataset} has no split {split!r}; its splits are {known}.")


@functools.lru_cache(maxsize=32)
def _load(path: Path, stamp: int, name: str) -> TaskSet[WorkflowTask]:
    """One shared set per file and its time of change; every copy of an environment asks for it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from error
    return _task_set(_entries(path, content), name)


def _entries(path: Path, content: bytes) -> Iterator[tuple[str, str, Any]]:
    """Where each entry stands, the id it gets if it has none, and its value or a `Refused`."""
    if path.suffix == ".json":
        try:
            rows = json.loads(content)
        except (ValueError, RecursionError) as problem:
            raise ConfigurationError(f"{path} is not JSON: {problem}.") from problem
        if not isinstance(rows, list):
            raise ConfigurationError(f"{path} must hold a JSON list of entries.")
        for place, row in enumerate(rows):
            yield f"{path}, entry {place}", f"{path.stem}-{place}", row
        return
    for number, line in enumerate(content.splitlines(), start=1):
        if line.strip():
            yield f"{path}, line {number}", f"{path.stem}-{number}", _parsed(line)


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except UnicodeDecodeError:
        return Refused("not_json", "it is not UTF-8")
    except json.JSONDecodeError as problem:
        return Refused("not_json", f"it is not JSON: {problem.msg} at column {problem.colno}")
    except ValueError:
        return Refused("not_json", "a number in it is too long")
    except RecursionError:
        return Refused("not_json", "it is nested too deeply")


def _task_set(entries: Iterable[tuple[str, str, Any]], name: str) -> TaskSet[WorkflowTask]:
    tasks: dict[str, WorkflowTask] = {}
    refused: dict[str, TaskRefused] = {}
    for where, own_name, entry in entries:
        try:
            if isinstance(entry, Refused):
                raise entry
            task = task_of(entry, own_name)
            if task.id in tasks:
                raise Refused("duplicate_id", f"another entry has its id {task.id!r} too")
        except Refused as problem:
            code, reason = problem.args
            refused[own_name] = TaskRefused(own_name, code, f"{where}: {reason}.")
            continue
        tasks[task.id] = task
    if not tasks:
        first = next(iter(refused.values()), None)
        raise ConfigurationError(
            f"{name} has no usable entry" + (f"; the first: {first.reason}" if first else ".")
        )
    clear = {key: refusal for key, refusal in refused.items() if key not in tasks}
    return TaskSet(list(tasks.values()), name=name, refused=clear)
