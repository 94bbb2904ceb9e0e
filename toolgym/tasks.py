"""Tasks and sets of tasks: views that compose and copy nothing.

A `Task` has an id that never changes, a question for the agent, an item (the database, the problem
family) by which a set can be split without leaking, and whatever its family needs to play and to
verify it. A `TaskSet` is a sequence of tasks. Slices, `filter`, `shuffle` and `split` return new
views of the same tasks; all views share the record of refused tasks.

The task of a seed is chosen by a hash of the seed, not by a random stream, so that it is the same
on every machine and under every version of NumPy.
"""

from __future__ import annotations

import hashlib
import random
import zlib
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Generic, Protocol, TypeVar, overload, runtime_checkable

from toolgym.errors import ConfigurationError, TaskRefused
from toolgym.lazy import lazy


@dataclass(frozen=True)
class Task:
    """One problem to solve; families subclass it with what they need.

    Attributes:
        id: Unique within its data set and stable.
        question: The question for the agent.
        item: The database or problem family it belongs to; splits never cut through one.
        extra: Other facts of the data set (hardness, origin).
    """

    id: str
    question: str
    item: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)


T = TypeVar("T", bound=Task)
_FIRST_REASONS: Final = 3
"""Refusals that the message for a set without a playable task holds in full."""


def seed_of(task_id: str) -> int:
    """A seed made from the id of a task, for what its environment draws by chance.

    Episodes of one task that are compared with each other, such as a group of rollouts, use it.

    >>> seed_of("singers-001") == seed_of("singers-001") != seed_of("singers-002")
    True
    """
    return zlib.crc32(task_id.encode(errors="surrogatepass"))


@runtime_checkable
class Indexed(Protocol):
    """A sequence of tasks that finds an id without making every task for it."""

    def place_of(self, task_id: str) -> int | None:
        """The place of the task with this id; None if there is none."""


class TaskSet(Sequence[T], Generic[T]):
    """A lazy view of tasks.

    Args:
        tasks: The tasks in order: a list, or a sequence that makes a task when it is indexed. Of a
            sequence that is `Indexed`, no more tasks are made than are used.
        name: Its name in error messages.
        verify: Raises `TaskRefused` if a task cannot be played fairly; called when a task is first
            drawn, never at load.
        refused: Refusals that are known beforehand, by task id.

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
        self._refused: dict[str, TaskRefused] = dict(refused or {})
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
        view._refused = self._refused
        return view

    def filter(self, keep: Callable[[T], bool]) -> TaskSet[T]:
        """The tasks for which `keep` returns True."""
        return self._view([index for index in self._order if keep(self._tasks[index])])

    def shuffle(self, seed: int) -> TaskSet[T]:
        """All tasks in an order that depends on the seed and on the present order."""
        order = list(self._order)
        random.Random(f"toolgym-shuffle-{seed}").shuffle(order)
        return self._view(order)

    def split(self, shares: Mapping[str, float], seed: int = 0) -> dict[str, TaskSet[T]]:
        """Divide by item, so that no database is in two parts.

        Args:
            shares: Part name to its share of the items; the shares sum to 1.
            seed: Which items go where.

        Raises:
            ConfigurationError: The shares do not sum to 1.
        """
        if abs(sum(shares.values()) - 1) > 1e-9 or min(shares.values()) < 0:
            raise ConfigurationError(f"the shares {dict(shares)} must be positive and sum to 1.")
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
        """The ids, in order."""
        return [task.id for task in self]

    def get(self, task_id: str) -> T:
        """The task with this id.

        Raises:
            ConfigurationError: There is none in this view.
        """
        if isinstance(self._tasks, Indexed):
            place = self._tasks.place_of(task_id)
        else:
            if not self._by_id:
                found = {task.id: place for place, task in enumerate(self._tasks)}
                self._by_id.update(found)  # at once: another thread may look one up
            place = self._by_id.get(task_id)
        if place is None or place not in self._places:
            first = f"the first of them {self[0].id!r}" if len(self) else "so none at all"
            raise ConfigurationError(
                f"there is no task {task_id!r} in {self.name}; it has {len(self)} tasks, {first}."
            )
        return self._tasks[place]

    @lazy
    def _places(self) -> Container[int]:
        """The places of this view, for finding one."""
        return self._order if isinstance(self._order, range) else frozenset(self._order)

    def draw(self, seed: int) -> T:
        """The task of a seed: the first playable one from a place given by the seed's hash.

        Raises:
            ConfigurationError: The set is empty, or none of its tasks is playable.
        """
        if not len(self):
            raise ConfigurationError(f"{self.name} has no tasks.")
        digest = hashlib.sha256(f"toolgym-task-{seed}".encode()).digest()
        start = int.from_bytes(digest[:8], "big") % len(self)
        for offset in range(len(self)):
            task = self[(start + offset) % len(self)]
            if self.refusal_of(task) is None:
                return task
        raise ConfigurationError(self.nothing_playable())

    def require(self, task_id: str) -> T:
        """The task with this id, if it can be played.

        Raises:
            ConfigurationError: There is none in this view.
            TaskRefused: It cannot be played fairly.
        """
        refusal = self._refused.get(task_id)  # perhaps an entry that could not be loaded
        if refusal is None:
            task = self.get(task_id)
            refusal = self.refusal_of(task)
            if refusal is None:
                return task
        raise refusal.with_traceback(None)  # it would grow, and hold the environment

    def refusal_of(self, task: T) -> TaskRefused | None:
        """Why a task of this set cannot be played fairly; None if it can. Verifies it if need be.

        Raises:
            EnvironmentFault: Something that the task needs is missing.
        """
        known = task.id in self._refused or task.id in self._verified
        if self._verify is not None and not known:
            try:
                self._verify(task)
                self._verified.add(task.id)
            except TaskRefused as refusal:
                self._refused[task.id] = refusal.with_traceback(None)
        return self._refused.get(task.id)

    def nothing_playable(self) -> str:
        """The message for a set without a playable task."""
        return nothing_playable(self.name, [each.to_json() for each in self._refused.values()])

    @property
    def refused(self) -> dict[str, TaskRefused]:
        """The refusals known so far, by task id; `check` completes them."""
        return dict(self._refused)

    def check(self, progress: Callable[[int, int], None] | None = None) -> dict[str, TaskRefused]:
        """Verify every task of this view now.

        Args:
            progress: Called with how many are done and how many there are.

        Returns:
            `refused`, complete for this view.
        """
        for done, task in enumerate(self, start=1):
            self.refusal_of(task)
            if progress is not None:
                progress(done, len(self))
        return self.refused

    def playable(self) -> TaskSet[T]:
        """The tasks of this view that are not refused; verifies all of them."""
        return self.filter(lambda task: self.refusal_of(task) is None)

    def first_playable(self, n: int) -> TaskSet[T]:
        """The first `n` tasks of this view that are not refused; verifies no more than it needs."""
        playable = (i for i in self._order if self.refusal_of(self._tasks[i]) is None)
        return self._view(list(islice(playable, n)))

    def __repr__(self) -> str:
        return f"TaskSet({self.name!r}, {len(self)} tasks)"


def nothing_playable(name: str, refused: Sequence[Mapping[str, str]]) -> str:
    """The message for a data set without a playable task: counts by code, and the first reasons.

    Args:
        refused: `task_id`, `code` and `reason` of each task.

    >>> print(nothing_playable("q.jsonl", [{"task_id": "q-1", "code": "odd", "reason": "It is."}]))
    no task of q.jsonl is playable: 1 odd.
      q-1: It is.
    """
    counted = Counter(each["code"] for each in refused)
    counts = ", ".join(f"{n} {code}" for code, n in sorted(counted.items())) or "it is empty"
    first = [f"  {each['task_id']}: {each['reason']}" for each in refused[:_FIRST_REASONS]]
    more = len(refused) - len(first)
    first += [f"  and {more:,} more"] if more > 0 else []
    return "\n".join([f"no task of {name} is playable: {counts}.", *first])
