"""`Task` and `TaskSet`: a problem to solve, and a sequence of such problems.

A `Task` has a stable id, a question for the agent, an item (such as its database) by which a set
can be split without leakage, and further data that its family needs. A `TaskSet` is a sequence of
tasks. Slices, `filter`, `shuffle` and `split` return views that copy no tasks. All views share the
record of refused tasks.

A hash of the seed, not a random stream, determines the task of an episode. The task is therefore
the same on every machine and with every version of NumPy.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Generic, Protocol, TypeVar, overload, runtime_checkable

from toolgym.errors import ConfigurationError, TaskRefused
from toolgym.lazy import lazy


@dataclass(frozen=True)
class Task:
    """One problem to solve. Task families add fields in subclasses of `Task`.

    Attributes:
        id: Stable id, unique within the data set.
        question: The question for the agent.
        item: The database or problem family of the task. Splits keep the tasks of an item together.
        extra: Additional data from the data set, such as hardness and origin.
    """

    id: str
    question: str
    item: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)


T = TypeVar("T", bound=Task)
_FIRST_REASONS: Final = 3
"""Number of refusals shown in full in the message for a set without a playable task."""


@runtime_checkable
class Indexed(Protocol):
    """A sequence of tasks that can find a task by its id without creating all tasks."""

    def place_of(self, task_id: str) -> int | None:
        """Return the index of the task with this id, or None if there is none."""


class TaskSet(Sequence[T], Generic[T]):
    """A sequence of tasks whose slices, filtered subsets and splits are views.

    Args:
        tasks: The tasks in order, as a list or as a sequence that creates a task when it is
            indexed. An `Indexed` sequence creates only the tasks that are used.
        name: Name of the set in error messages.
        verify: Function that raises `TaskRefused` if a task cannot be played. The function is
            called when a task is first drawn, not when the set is loaded.
        refused: Tasks that are already known to be refused, by task id, such as entries that could
            not be loaded.

    >>> tasks = TaskSet([Task(f"t{i}", "?", item=f"db{i % 2}") for i in range(6)])
    >>> [task.id for task in tasks.filter(lambda task: task.item == "db0")[1:]]
    ['t2', 't4']
    """

    def __init__(
        self,
        tasks: Sequence[T],
        *,
        name: str = "tasks",
        verify: Callable[[T], None] | None = None,
        refused: Mapping[str, TaskRefused] | None = None,
    ) -> None:
        self._tasks = tasks
        self._order: Sequence[int] = range(len(tasks))
        self._by_id: dict[str, int] = {}
        self._verify = verify
        self._verified: set[str] = set()
        self._unloaded = dict(refused or {})
        self._refused = dict(self._unloaded)
        self.name = name

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[T]:
        return (self._tasks[index] for index in self._order)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> TaskSet[T]: ...
    def __getitem__(self, index: int | slice) -> T | TaskSet[T]:
        if isinstance(index, slice):
            return self._view(self._order[index])
        return self._tasks[self._order[index]]

    def _view(self, order: Sequence[int]) -> TaskSet[T]:
        view = TaskSet(self._tasks, name=self.name, verify=self._verify)
        view._order = order
        view._by_id, view._verified = self._by_id, self._verified  # shared, like the refusals
        view._unloaded, view._refused = self._unloaded, self._refused
        return view

    def verified_by(self, verify: Callable[[T], None]) -> TaskSet[T]:
        """Return the same tasks with a different `verify` and a separate record of refusals."""
        view = TaskSet(self._tasks, name=self.name, verify=verify, refused=self._unloaded)
        view._order, view._by_id = self._order, self._by_id
        return view

    def filter(self, keep: Callable[[T], bool]) -> TaskSet[T]:
        """Return the tasks for which `keep` returns True."""
        return self._view([index for index in self._order if keep(self._tasks[index])])

    def shuffle(self, seed: int) -> TaskSet[T]:
        """Return all tasks in a random order that depends on the seed and on the current order."""
        order = list(self._order)
        random.Random(f"toolgym-shuffle-{seed}").shuffle(order)
        return self._view(order)

    def split(self, shares: Mapping[str, float], seed: int = 0) -> dict[str, TaskSet[T]]:
        """Divide the tasks by item, so that no item is in more than one part.

        Args:
            shares: The share of the items in each part, by the name of the part; the shares sum to
                1.
            seed: Seed of the order in which items are assigned.

        Raises:
            ConfigurationError: The shares do not sum to 1.
        """
        if abs(sum(shares.values()) - 1) > 1e-9 or min(shares.values()) < 0:
            raise wrong_shares(shares)
        items = sorted({task.item for task in self})
        random.Random(f"toolgym-split-{seed}").shuffle(items)
        parts, start, total = {}, 0, 0.0
        for part, share in shares.items():
            total += share
            end = round(total * len(items))
            chosen = frozenset(items[start:end])
            parts[part] = self._view([i for i in self._order if self._tasks[i].item in chosen])
            start = end
        return parts

    @property
    def ids(self) -> list[str]:
        """The ids of the tasks, in order."""
        return [task.id for task in self]

    def get(self, task_id: str) -> T:
        """Return the task with this id.

        Raises:
            ConfigurationError: This view does not contain the task.
        """
        if isinstance(self._tasks, Indexed):
            place = self._tasks.place_of(task_id)
        else:
            if not self._by_id:
                found = {task.id: place for place, task in enumerate(self._tasks)}
                # in a single assignment, because another thread may look up a task
                self._by_id.update(found)
            place = self._by_id.get(task_id)
        if place is None or place not in self._places:
            first = f"; the first is {self[0].id!r}" if len(self) else ""
            raise ConfigurationError(
                f"there is no task {task_id!r} in {self.name}, which has {len(self)} tasks{first}."
            )
        return self._tasks[place]

    @lazy
    def _places(self) -> Container[int]:
        """Return the indices of this view, for membership tests."""
        return self._order if isinstance(self._order, range) else frozenset(self._order)

    def draw(self, seed: int) -> T:
        """Return the task for a seed.

        This is the first playable task, starting at an index given by the hash of the seed.

        Raises:
            ConfigurationError: The set is empty, or none of its tasks is playable.
        """
        if not len(self):
            raise ConfigurationError(f"{self.name} has no tasks.")
        digest = hashlib.sha256(f"toolgym-task-{seed}".encode()).digest()
        return self._playable_from(int.from_bytes(digest[:8], "big") % len(self))

    def playable_from(self, task_id: str) -> T:
        """Return the task with this id, or the next playable one if it is refused.

        Raises:
            ConfigurationError: This view does not contain the task, or no task is playable.
        """
        task = self.get(task_id)
        if self.refusal_of(task) is None:
            return task
        return self._playable_from(self.ids.index(task_id))

    def _playable_from(self, start: int) -> T:
        for offset in range(len(self)):
            task = self[(start + offset) % len(self)]
            if self.refusal_of(task) is None:
                return task
        raise ConfigurationError(self.nothing_playable())

    def require(self, task_id: str) -> T:
        """Return the task with this id if it can be played.

        Raises:
            ConfigurationError: This view does not contain the task.
            TaskRefused: The task cannot be played.
        """
        refusal = self._refused.get(task_id)  # may be an entry that could not be loaded
        if refusal is None:
            task = self.get(task_id)
            refusal = self.refusal_of(task)
            if refusal is None:
                return task
        # the traceback would grow and keep the environment alive
        raise refusal.with_traceback(None)

    def refusal_of(self, task: T) -> TaskRefused | None:
        """Return the reason why a task cannot be played, or None. The first call verifies the task.

        Raises:
            EnvironmentFault: A resource that the task needs is missing.
        """
        is_verified = task.id in self._refused or task.id in self._verified
        if self._verify is not None and not is_verified:
            try:
                self._verify(task)
                self._verified.add(task.id)
            except TaskRefused as refusal:
                self._refused[task.id] = refusal.with_traceback(None)
        return self._refused.get(task.id)

    def nothing_playable(self) -> str:
        """Return the message for a set without a playable task."""
        return nothing_playable(self.name, [each.to_json() for each in self._refused.values()])

    @property
    def refused(self) -> dict[str, TaskRefused]:
        """The tasks known to be refused so far, by task id. `check` verifies all other tasks."""
        return dict(self._refused)

    def check(self, progress: Callable[[int, int], None] | None = None) -> dict[str, TaskRefused]:
        """Verify every task of this view now.

        Args:
            progress: Called with the number of verified tasks and the total.

        Returns:
            The value of `refused`, which is then complete for this view.
        """
        for done, task in enumerate(self, start=1):
            self.refusal_of(task)
            if progress is not None:
                progress(done, len(self))
        return self.refused

    def playable(self) -> TaskSet[T]:
        """Return the tasks of this view that are not refused. All tasks are verified."""
        return self.filter(lambda task: self.refusal_of(task) is None)

    def first_playable(self, n: int) -> TaskSet[T]:
        """Return the first `n` tasks that are not refused.

        Only as many tasks as necessary are verified.
        """
        playable = (i for i in self._order if self.refusal_of(self._tasks[i]) is None)
        return self._view(list(islice(playable, n)))

    def __repr__(self) -> str:
        return f"TaskSet({self.name!r}, {len(self)} tasks)"


def wrong_shares(shares: Mapping[str, float]) -> ConfigurationError:
    """Return the error for shares that are not positive or do not sum to 1."""
    given = ",".join(f"{name}={share}" for name, share in shares.items())
    return ConfigurationError(f"the shares {given} must be positive and sum to 1.")


def nothing_playable(name: str, refused: Sequence[Mapping[str, str]]) -> str:
    """Return the message for a data set without a playable task.

    The message contains the number of refused tasks by code and the first reasons.

    Args:
        refused: `task_id`, `code` and `reason` of each task.

    >>> refusal = {"task_id": "q-1", "code": "empty_gold", "reason": "The gold query has no rows."}
    >>> print(nothing_playable("q.jsonl", [refusal]))
    no task of q.jsonl is playable: 1 empty_gold.
      q-1: The gold query has no rows.
    """
    counted = Counter(each["code"] for each in refused)
    counts = ", ".join(f"{n} {code}" for code, n in sorted(counted.items())) or "it is empty"
    first = [f"  {each['task_id']}: {each['reason']}" for each in refused[:_FIRST_REASONS]]
    more = len(refused) - len(first)
    first += [f"  and {more:,} more"] if more > 0 else []
    return "\n".join([f"no task of {name} is playable: {counts}.", *first])
