"""Which tasks a training has not seen, and what of them is new: the task, its item, its shape.

That tasks are held out is a claim about two sets, and names of splits do not make it true. So it is
computed: a family tells the marks of a task (`TaskFamily.marks`), and a task is unseen in some
respect if a training has none of its marks. Its `kinds` name the respects, which every data set
that can give it has as a split too: `dev-databases` is the tasks of `dev` on databases that `train`
has not.

An environment without splits has one set; `divided` cuts it by item, else by task.
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
"""Of the tasks of a set that is divided, how many are for the evaluation, about."""
PARTS: Final = ("training", "evaluation")

Tasks = TaskSet[Any]


def split_of(name: str, kinds: Sequence[str]) -> tuple[str, str] | None:
    """The split and the kind in the name of a split such as `dev-databases`; None for a plain one.

    >>> split_of("dev-databases", ("tasks", "databases")), split_of("dev", ("tasks",))
    (('dev', 'databases'), None)
    """
    split, _, kind = name.rpartition("-")
    return (split, kind) if split and kind in kinds else None


def load_split(
    name: str, family: TaskFamily, load: Callable[[str], Tasks], *, is_own: bool = False
) -> Tasks:
    """The tasks of a split, plain or with a kind.

    Args:
        name: Such as `dev`, or `dev-databases`.
        family: Says which kinds there are.
        load: Loads a plain split.
        is_own: The data set has a split of just this name: its tasks are taken rather than those
            of `dev`, and they too are looked through.

    Raises:
        ConfigurationError: There is no such split, or no task of it is unseen in that respect.
    """
    parsed = split_of(name, family.kinds)
    if parsed is None:
        return load(name)
    split, kind = parsed
    tasks = load(name if is_own else split)
    chosen = unseen(tasks, load(TRAIN), kind, family)
    if not any(family.marks(task, TASKS) for task in chosen):  # none that can be used
        raise ConfigurationError(
            f"there is no split {name!r}: of the {len(tasks)} tasks of {tasks.name} none has"
            f" {kind} that {TRAIN!r} has not."
        )
    return chosen


@functools.lru_cache(maxsize=32)
def unseen(tasks: Tasks, training: Tasks, kind: str, family: TaskFamily) -> Tasks:
    """Those tasks of which a training has not seen the kind; a view, shared by all who ask.

    Args:
        kind: One of the family's.
        family: Tells the marks. A task that has none of the kind, as one without an item, is not
            called unseen in it.

    Raises:
        ConfigurationError: The family has no such kind.
    """
    seen: set[str] = set()
    compared: Iterable[Task] = training
    if kind == TASKS:  # tasks on different items are different: their marks need not be made
        items = {task.item for task in tasks}
        compared = (task for task in training if task.item in items)
    for task in compared:
        seen |= family.marks(task, kind)
    items = {task.item for task in training} if kind == TASKS else set()

    def is_unseen(task: Task) -> bool:
        if kind == TASKS and task.item and task.item not in items:
            return True
        marks = family.marks(task, kind)
        if not marks:  # an entry that cannot be used has no marks at all; it is refused when drawn
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
    """The kinds in which every one of the tasks is unseen."""
    whole = len(tasks)
    return tuple(k for k in kinds if whole and len(unseen(tasks, training, k, family)) == whole)


def divided(tasks: Tasks, family: TaskFamily) -> dict[str, Tasks]:
    """One set as two that share nothing, by the names in `PARTS`; about a fifth is for evaluation.

    By item, if its tasks have at least two; else by task. What goes where is decided by a hash and
    by nothing else, and no task of the evaluation is one that the training has under another id.

    Returns:
        Nothing where it cannot be divided: there is one task, or all are the same.
    """
    facts = tuple((task.id, task.item, task.question) for task in tasks)
    parts = _division(_Told(facts, tasks, family))
    return {name: tasks.filter(lambda t, ids=ids: t.id in ids) for name, ids in parts.items()}  # type: ignore[misc]


@dataclass(frozen=True)
class _Told:
    """A set of tasks, known by what they say: copies of an environment have copies of one set."""

    told: tuple[tuple[str, str, str], ...]
    tasks: Tasks = field(compare=False)
    family: TaskFamily = field(compare=False)


@functools.lru_cache(maxsize=32)
def _division(facts: _Told) -> dict[str, frozenset[str]]:
    """The ids of the tasks in each part; of the playable ones, if one part had none of them."""
    parts = _cut(facts.tasks, facts.family)
    if all(len(part.first_playable(1)) for part in parts):
        return _named(parts)
    return _named(_cut(facts.tasks.playable(), facts.family))


def _named(parts: tuple[Tasks, ...]) -> dict[str, frozenset[str]]:
    return {name: frozenset(part.ids) for name, part in zip(PARTS, parts, strict=False)}


def _cut(tasks: Tasks, family: TaskFamily) -> tuple[Tasks, ...]:
    """The two parts; none where there are not two."""
    first: dict[str, str] = {}  # one id for all tasks that are the same

    def same(task: Task) -> str:
        mark = min(family.marks(task, TASKS), default=f"unusable {task.id}")
        return first.setdefault(mark, task.id)

    groups = {task.id: f"item {task.item}" if task.item else same(task) for task in tasks}
    if len(set(groups.values())) < 2:
        groups = {task.id: same(task) for task in tasks}
    chosen = _chosen(Counter(groups.values()))
    training = tasks.filter(lambda task: groups[task.id] not in chosen)
    evaluation = tasks.filter(lambda task: groups[task.id] in chosen)
    evaluation = unseen(evaluation, training, TASKS, family)
    return (training, evaluation) if len(training) and len(evaluation) else ()


def _chosen(sizes: Mapping[str, int]) -> frozenset[str]:
    """The groups for evaluation: in an order by hash, all that bring their tasks nearer to SHARE.

    Where none does, the smallest.
    """
    order = sorted(sizes, key=_place)
    lacking = SHARE * sum(sizes.values())
    chosen: list[str] = []
    for name in order:
        if abs(lacking - sizes[name]) < lacking:
            chosen.append(name)
            lacking -= sizes[name]
    return frozenset(chosen or sorted(order, key=lambda name: sizes[name])[:1])


def _place(name: str) -> bytes:
    return hashlib.sha256(f"toolgym-evaluation-{name}".encode("utf-8", "surrogatepass")).digest()
