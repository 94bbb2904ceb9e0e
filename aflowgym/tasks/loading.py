"""Sets of workflow tasks: bundled ones, files, folders with a file per split, rows in memory.

A file holds one JSON object a line, or one JSON list. Each entry is in our own layout or in that
of GSM8K, HumanEval, MBPP or HotpotQA (`aflowgym.tasks.layouts`), known by its keys. A broken entry
is refused with its file and line, and the rest loads: `TaskSet.refused` tells which and why.

"tiny" holds the bundled tasks, each many times under an id of its own (`math-change-1.03`). A
trainer plays a task with the task's own draws, so that the rollouts of a group meet the same luck;
with one id per task a small model would learn the luck of two hundred episodes by heart. The copies
are made when they are asked for.

`WorkflowTaskFacts` is what can be told of tasks before anybody plays them: their splits, marks and
facts. What is played of them is told by `aflowgym.envs.family`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, overload

from aflowgym.tasks.layouts import Refused, task_of
from aflowgym.tasks.task import KINDS, Kind, WorkflowTask
from toolgym import unseen
from toolgym.errors import ConfigurationError, EnvironmentFault, TaskRefused
from toolgym.family import TaskFamily
from toolgym.tasks import TaskSet

BUNDLED: Final = "bundled"
TINY: Final = "tiny"
SPLITS: Final = ("train", "dev", "test")
_FILES = (".jsonl", ".json")


class WorkflowTaskFacts(TaskFamily):
    """Problems for workflows, as their data sets tell them."""

    orders: ClassVar[Mapping[str, Sequence[str]]] = {"kind": KINDS}
    kinds: ClassVar[tuple[str, ...]] = ("tasks", "families", "shapes")

    def splits(self, dataset: Any) -> tuple[str, ...]:
        """The splits of a data set that has a name or a path.

        Raises:
            ConfigurationError: There is no such data set.
        """
        if isinstance(dataset, str) and dataset in (BUNDLED, TINY):
            return SPLITS
        path = Path(dataset).expanduser()
        if path.is_dir():
            stems = {each.stem for each in path.iterdir() if each.suffix in _FILES}
            usual = [split for split in SPLITS if split in stems]
            return (*usual, *sorted(stems - set(usual)))
        if path.is_file():
            return (path.stem if path.stem in SPLITS else SPLITS[0],)
        raise ConfigurationError(
            f"no data set {str(dataset)!r}; there are {BUNDLED!r}, {TINY!r}, or give a path."
        )

    def marks(self, task: Any, kind: str) -> frozenset[str]:
        """A task is its question with its passages, whatever its draws; its shape is its kind.

        Raises:
            ConfigurationError: There is no such kind.
        """
        if kind == "shapes":
            return frozenset((task.kind,))
        if kind == "tasks":
            texts = [" ".join(text.casefold().split()) for text in (task.question, *task.context)]
            return frozenset(("\n".join((task.item, *texts)),))
        return super().marks(task, kind)

    def facts(self, task: Any) -> dict[str, str]:
        """Item, kind, and what there is to go by."""
        basis = {
            "math": "a question",
            "code": f"{len(task.public_tests)} public tests",
            "qa": f"{task.hops} hops" if task.hops else "passages",
        }
        return {"item": task.item or "none", "kind": task.kind, "given": basis[task.kind]}

    def shown(self, task: Any) -> dict[str, str]:
        """The question, the passages, the gold or the tests, and the wrong answers it knows of."""
        fields = {
            "question": task.question,
            "kind": task.kind,
            "item": task.item,
            **{str(name): str(value) for name, value in task.extra.items()},
            "passages": "\n".join(task.context),
            "gold": " | ".join(filter(None, (task.gold, *task.aliases))),
            "public tests": "\n".join(map(_test_text, task.public_tests)),
            "tests": "\n".join(map(_test_text, task.tests)),
            "solution": task.solution,
            "wrong answers": "\n".join(task.distractors),
        }
        return {name: text for name, text in fields.items() if text}


def _test_text(test: Any) -> str:
    keywords = "" if test.keywords == "{}" else f" {test.keywords}"
    sign = "is" if test.form == "is" else "=="
    return f"{test.function}{test.arguments}{keywords} {sign} {test.expected}"


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
            splits = ", ".join(map(repr, dataset))
            raise ConfigurationError(f"the data set has no split {split!r}: it has {splits}.")
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
    path = bundled_dir() if dataset == BUNDLED else Path(dataset).expanduser().resolve()
    if path.is_file():
        if path.suffix not in (".jsonl", ".json"):
            raise ConfigurationError(f"{dataset}: only .jsonl and .json files are read.")
        if path.stem in SPLITS and path.stem != split:
            raise ConfigurationError(
                f"{dataset} is split {path.stem!r}, not {split!r}; ask for that one."
            )
        return path
    if not path.is_dir():
        raise ConfigurationError(
            f"there is no data set {str(dataset)!r}: it is neither a file or folder nor one of"
            f" {BUNDLED}."
        )
    for name in (f"{split}.jsonl", f"{split}.json"):
        if (path / name).is_file():
            return path / name
    splits = ", ".join(sorted(repr(file.stem) for file in path.glob("*.jsonl"))) or "none"
    raise ConfigurationError(f"{dataset} has no split {split!r}; its splits are {splits}.")


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
            yield f"{path}, line {number}", f"{path.stem}-{number}", _parse_line(line)


def _parse_line(line: bytes) -> Any:
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


FACTS: Final = WorkflowTaskFacts()
SHAPES: Final = FACTS.kinds[2]
DRAWS: Final = 25
"""How many copies of each task "tiny" holds."""


@dataclass(frozen=True)
class DrawnTask(WorkflowTask):
    """A copy of a task with an id, and so with draws, of its own.

    Attributes:
        base: The task that is solved.
    """

    base: WorkflowTask | None = None


def base_of(task: WorkflowTask) -> WorkflowTask:
    """The task that is solved, of which there may be copies."""
    return task.base or task if isinstance(task, DrawnTask) else task


class Copies(Sequence[WorkflowTask]):
    """Each of some tasks `DRAWS` times, all of them once before any comes again."""

    def __init__(self, tasks: Sequence[WorkflowTask]) -> None:
        self._tasks = list(tasks)
        self._places = {task.id: place for place, task in enumerate(self._tasks)}
        self._made: dict[int, DrawnTask] = {}

    def __len__(self) -> int:
        return len(self._tasks) * DRAWS

    @overload
    def __getitem__(self, index: int) -> WorkflowTask: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[WorkflowTask]: ...
    def __getitem__(self, index: int | slice) -> WorkflowTask | Sequence[WorkflowTask]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        task = self._made.get(index)
        if task is None:
            draw, place = divmod(index, len(self._tasks))
            base = self._tasks[place]
            fields = {name: getattr(base, name) for name in WorkflowTask.__dataclass_fields__}
            fields["id"] = f"{base.id}.{draw:02d}"
            task = self._made[index] = DrawnTask(**fields, base=base)
        return task

    def place_of(self, task_id: str) -> int | None:
        """The place of the copy with this id; None if there is none."""
        name, _, draw = task_id.rpartition(".")
        place = self._places.get(name)
        right = len(draw) == 2 and draw.isascii() and draw.isdigit() and int(draw) < DRAWS
        return int(draw) * len(self._tasks) + place if right and place is not None else None


def tasks_of(
    dataset: str | Path | TaskSet[WorkflowTask] | Any, split: str, kind: Kind | None = None
) -> TaskSet[WorkflowTask]:
    """The tasks of an environment.

    Args:
        dataset: "bundled", "tiny", or whatever else `aflowgym.load_tasks` takes; or a `TaskSet`.
        split: "train", "dev", "test", or what else there is; "dev-families": those of "dev" whose
            family "train" has not; "dev-shapes": those of another kind than `kind`.
        kind: "math", "code" or "qa" leaves out the others; None leaves out none.

    Raises:
        ConfigurationError: There is no such data set, split or kind, or nothing is left.
    """
    if kind is not None and kind not in KINDS:
        kinds = ", ".join(map(repr, KINDS))
        raise ConfigurationError(f"kind must be one of {kinds}, or None for all, got {kind!r}.")
    if isinstance(dataset, TaskSet):
        return _of_kind(dataset, kind)
    unseen_split = unseen.split_of(split, FACTS.kinds)
    shapes = unseen_split is not None and unseen_split[1] == SHAPES

    def load(name: str) -> TaskSet[WorkflowTask]:
        whole = shapes and name != unseen.TRAIN  # the kinds that training has are not asked for
        return _of_kind(_load_named(dataset, name), None if whole else kind)

    is_own = unseen_split is not None and _has(dataset, split)
    return unseen.load_split(split, FACTS, load, is_own=is_own)


def _has(dataset: Any, split: str) -> bool:
    """Whether a data set brings a split of just this name."""
    if isinstance(dataset, str | Path):
        return split in FACTS.splits(dataset)
    return isinstance(dataset, Mapping) and split in dataset


def _of_kind(tasks: TaskSet[WorkflowTask], kind: Kind | None) -> TaskSet[WorkflowTask]:
    chosen = tasks if kind is None else tasks.filter(lambda task: task.kind == kind)
    if not len(chosen):
        raise ConfigurationError(f"{tasks.name} has no {kind or 'usable'} task; ask for another.")
    return chosen


def _load_named(dataset: Any, split: str) -> TaskSet[WorkflowTask]:
    if not isinstance(dataset, str) or dataset != TINY:
        return load_tasks(dataset, split)
    return _copies(load_tasks(BUNDLED, split), f"{TINY} ({split})")


@functools.lru_cache(maxsize=8)
def _copies(tasks: TaskSet[WorkflowTask], name: str) -> TaskSet[WorkflowTask]:
    """One shared set for every copy of an environment."""
    return TaskSet(Copies(tasks), name=name)
