"""Selects tasks that are absent from a training set, and splits sets into training and evaluation.

Held-out tasks are determined by comparing the two sets, not by the names of splits. A family
provides keys for each task (`TaskFamily.marks`). A task is unseen with respect to a kind if no
training task has any of its keys of this kind. `TaskFamily.kinds` lists the kinds: the task, its
item, its shape and others. Every split can be combined with each kind. For example, `dev-databases`
contains the tasks of `dev` on databases that `train` does not use.

For environments without splits, `divided` splits the tasks by item if possible, or else by task.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from toolgym.errors import ConfigurationError
from toolgym.tasks import Task, TaskSet

if TYPE_CHECKING:
    from toolgym.family import TaskFamily

TRAIN: Final = "train"
TASKS: Final = "tasks"
"""The kind that every family has: the task itself."""
SHARE: Final = 0.2
"""Approximate share of the tasks that `divided` assigns to evaluation."""
PARTS: Final = ("training", "evaluation")

Tasks = TaskSet[Any]


def split_of(name: str, kinds: Sequence[str]) -> tuple[str, str] | None:
    """Split a name such as `dev-databases` into split and kind.

    Return None if the name does not contain a kind.

    >>> split_of("dev-databases", ("tasks", "databases")), split_of("dev", ("tasks",))
    (('dev', 'databases'), None)
    """
    split, _, kind = name.rpartition("-")
    return (split, kind) if split and kind in kinds else None


def load_split(
    name: str, family: TaskFamily, load: Callable[[str], Tasks], *, is_own: bool = False
) -> Tasks:
    """Load the tasks of a split.

    If the name of the split contains a kind, load only the tasks that are unseen with respect to
    this kind.

    Args:
        name: Name of the split, such as `dev` or `dev-databases`.
        family: The family of the tasks, which defines the kinds.
        load: Function that loads a plain split.
        is_own: Whether the data set itself has a split with this full name, such as
            `dev-databases`. If so, the tasks are selected from that split instead of from `dev`.

    Raises:
        ConfigurationError: The split does not exist, or none of its tasks is unseen with respect to
            the kind.
    """
    parsed = split_of(name, family.kinds)
    if parsed is None:
        return load(name)
    split, kind = parsed
    tasks = load(name if is_own else split)
    chosen = unseen(tasks, load(TRAIN), kind, family)
    if not any(family.marks(task, TASKS) for task in chosen):  # no usable task
        raise ConfigurationError(
            f"there is no split {name!r}: none of the {len(tasks)} tasks of {tasks.name} has"
            f" {kind} that {TRAIN!r} lacks."
        )
    return chosen


@functools.lru_cache(maxsize=32)
def unseen(tasks: Tasks, training: Tasks, kind: str, family: TaskFamily) -> Tasks:
    """Return the tasks that differ from all training tasks with respect to the given kind.

    Args:
        tasks: The tasks to select from.
        training: The training tasks.
        kind: One of the kinds of the family.
        family: The family of the tasks. A task without keys of this kind, such as a task without an
            item, does not count as unseen.

    Raises:
        ConfigurationError: The family does not have this kind.
    """
    seen: set[str] = set()
    compared: Iterable[Task] = training
    if kind == TASKS:  # tasks on different items are different, so their keys need not be computed
        items = {task.item for task in tasks}
        compared = (task for task in training if task.item in items)
    for task in compared:
        seen |= family.marks(task, kind)
    items = {task.item for task in training} if kind == TASKS else set()

    def is_unseen(task: Task) -> bool:
        if kind == TASKS and task.item and task.item not in items:
            return True
        marks = family.marks(task, kind)
        if not marks:  # an unusable entry has no keys of any kind; it is refused when drawn
            return not family.marks(task, TASKS)
        return not marks & seen

    chosen = tasks.filter(is_unseen)
    if len(chosen) == len(tasks):
        return tasks
    chosen.name = f"{tasks.name} with unseen {kind}"
    return chosen


def kinds_unseen(
    tasks: Tasks, training: Tasks, kinds: Sequence[str], family: TaskFamily
) -> tuple[str, ...]:
    """Return the kinds with respect to which every task differs from all training tasks."""
    whole = len(tasks)
    return tuple(k for k in kinds if whole and len(unseen(tasks, training, k, family)) == whole)


def divided(tasks: Tasks, family: TaskFamily) -> dict[str, Tasks]:
    """Split a set into a training part and an evaluation part with about a fifth of the tasks.

    The set is split by item if there are at least two items, otherwise by task. The part of each
    task is determined only by hashes. No evaluation task is in the training part under a different
    id.

    Returns:
        A dict from the names in `PARTS` to the parts; empty if the set does not contain two
        different tasks.
    """
    contents = tuple((task.id, task.item, task.question) for task in tasks)
    parts = _division(_HashableSet(contents, tasks, family))
    return {name: tasks.filter(lambda t, ids=ids: t.id in ids) for name, ids in parts.items()}  # type: ignore[misc]


@dataclass(frozen=True)
class _HashableSet:
    """A cache key for a set of tasks.

    Two keys are equal if the contents are equal, as in copies of an environment.
    """

    contents: tuple[tuple[str, str, str], ...]
    tasks: Tasks = field(compare=False)
    family: TaskFamily = field(compare=False)


@functools.lru_cache(maxsize=32)
def _division(key: _HashableSet) -> dict[str, frozenset[str]]:
    """Return the ids of the tasks in each part.

    If a part would otherwise have no playable task, only playable tasks are divided.
    """
    parts = _divide(key.tasks, key.family)
    if all(len(part.first_playable(1)) for part in parts):
        return _ids_by_part(parts)
    return _ids_by_part(_divide(key.tasks.playable(), key.family))


def _ids_by_part(parts: tuple[Tasks, ...]) -> dict[str, frozenset[str]]:
    return {name: frozenset(part.ids) for name, part in zip(PARTS, parts, strict=False)}


def _divide(tasks: Tasks, family: TaskFamily) -> tuple[Tasks, ...]:
    """Return the two parts of a set, or () if one would be empty."""
    first: dict[str, str] = {}  # by key, the id of the first of all equal tasks

    def same(task: Task) -> str:
        mark = min(family.marks(task, TASKS), default=f"unusable {task.id}")
        return first.setdefault(mark, task.id)

    groups = {task.id: f"item {task.item}" if task.item else same(task) for task in tasks}
    if len(set(groups.values())) < 2:
        groups = {task.id: same(task) for task in tasks}
    chosen = _choose(Counter(groups.values()))
    training = tasks.filter(lambda task: groups[task.id] not in chosen)
    evaluation = tasks.filter(lambda task: groups[task.id] in chosen)
    evaluation = unseen(evaluation, training, TASKS, family)
    return (training, evaluation) if len(training) and len(evaluation) else ()


def _choose(sizes: Mapping[str, int]) -> frozenset[str]:
    """Return the groups of tasks for evaluation.

    The groups are visited in the order of their hashes. A group is chosen if it brings the
    proportion of chosen tasks closer to `SHARE`. If no group does, the smallest group is chosen.
    """
    order = sorted(sizes, key=_hash_of)
    lacking = SHARE * sum(sizes.values())
    chosen: list[str] = []
    for name in order:
        if abs(lacking - sizes[name]) < lacking:
            chosen.append(name)
            lacking -= sizes[name]
    return frozenset(chosen or sorted(order, key=lambda name: sizes[name])[:1])


def _hash_of(name: str) -> bytes:
    return hashlib.sha256(f"toolgym-evaluation-{name}".encode("utf-8", "surrogatepass")).digest()
