"""Counting the tasks of a data set by what their family tells of them.

The first fact of a task is its item (the database), the others (hardness, shape of the result) are
counted for each item. A task that cannot be played is counted as refused, and nowhere else.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolgym.errors import EnvironmentFault, TaskRefused
from toolgym.family import TaskFamily
from toolgym.spread import Progress
from toolgym.tasks import Task, TaskSet

TOTAL = "all"


@dataclass(frozen=True)
class StatsRow:
    """The tasks of one item in one split; `counts` is by value of the other facts."""

    split: str
    item: str
    tasks: int
    counts: Mapping[str, int]


@dataclass
class TaskStats:
    """The counts of a data set.

    Attributes:
        name: The data set's name.
        facts: The names of the facts, the item's first.
        orders: By fact, its values in the order in which people list them.
        counts: By split, item, fact and value, how many playable tasks there are.
        refused_by: How many were refused, by split and code.
    """

    name: str
    facts: tuple[str, ...] = ()
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    counts: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    refused_by: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def refused(self) -> int:
        """The number of tasks that cannot be played."""
        return sum(self.refused_by.values())

    @property
    def tasks(self) -> int:
        """The number of entries, refused ones included."""
        return self.refused + self.total(self.facts[0]) if self.facts else self.refused

    @property
    def splits(self) -> list[str]:
        """The splits with a playable task, in their order."""
        return list(dict.fromkeys(split for split, *_ in self.counts))

    def values(self, fact: str) -> list[str]:
        """The values of a fact that occur: those with an order first, the others by name."""
        there = {value for _, _, of, value in self.counts if of == fact}
        order = [value for value in self.orders.get(fact, ()) if value in there]
        return [*order, *sorted(there - set(order))]

    def total(
        self, fact: str, value: str | None = None, item: str | None = None, split: str | None = None
    ) -> int:
        """The number of playable tasks with this value of a fact; None stands for any."""
        pattern = (split, item, fact, value)
        return sum(
            count
            for key, count in self.counts.items()
            if all(want in (None, have) for want, have in zip(pattern, key, strict=True))
        )

    def rows(self) -> Iterator[StatsRow]:
        """A row for each item of each split, one for each split if there are several, and all."""
        if not self.facts:
            return
        for split in self.splits:
            items = sorted({item for of, item, *_ in self.counts if of == split})
            yield from (self._row(split, item) for item in items)
        if len(self.splits) > 1:
            yield from (self._row(split, TOTAL) for split in self.splits)
        yield self._row(TOTAL, TOTAL)

    def _row(self, split: str, item: str) -> StatsRow:
        place = {
            "item": None if item == TOTAL else item,
            "split": None if split == TOTAL else split,
        }
        counts = {
            value: self.total(fact, value, **place)
            for fact in self.facts[1:]
            for value in self.values(fact)
        }
        return StatsRow(split, item, self.total(self.facts[0], **place), counts)

    def to_json(self) -> dict[str, Any]:
        """The counts as plain data."""
        return {
            "name": self.name,
            "tasks": self.tasks,
            "refused": self.refused,
            "refused_by": {
                split: {code: n for (of, code), n in self.refused_by.items() if of == split}
                for split in dict.fromkeys(split for split, _ in self.refused_by)
            },
            "splits": {
                split: {
                    fact: {value: self.total(fact, value, split=split) for value in values}
                    for fact in self.facts
                    if (values := self.values(fact))
                }
                for split in self.splits
            },
            "rows": [
                {self.facts[0]: row.item, "split": row.split, "tasks": row.tasks, **row.counts}
                for row in self.rows()
            ],
        }


def count_tasks(
    name: str,
    sets: Mapping[str, TaskSet[Any]],
    family: TaskFamily,
    progress: Progress | None = None,
) -> TaskStats:
    """Count the tasks of each split; every one is verified first.

    Args:
        name: What the data set is called.
        sets: By split.
        family: Tells what the tasks are counted by.
        progress: Called with how many are done and how many there are.
    """
    stats = TaskStats(name, orders=family.orders)
    total, done = sum(map(len, sets.values())), 0
    for split, tasks in sets.items():
        met = set()
        for task in tasks:
            met.add(task.id)
            _count(stats, split, tasks, task, family)
            done += 1
            if progress is not None:
                progress(done, total)
        for task_id, refusal in tasks.refused.items():
            stats.refused_by[split, refusal.code] += task_id not in met
    stats.refused_by = +stats.refused_by
    return stats


def _count(
    stats: TaskStats, split: str, tasks: TaskSet[Any], task: Any, family: TaskFamily
) -> None:
    try:
        refusal = tasks.refusal_of(task)
        facts = family.facts(task, tasks) if refusal is None else {}
        code = refusal.code if refusal is not None else ""
    except TaskRefused as refused:
        facts, code = {}, refused.code
    except EnvironmentFault:
        facts, code = {}, "fault"
    if code:
        stats.refused_by[split, code] += 1
        return
    stats.facts = stats.facts or tuple(facts)
    item = next(iter(facts.values()))
    for fact, value in facts.items():
        stats.counts[split, item, fact, value] += 1


# The report of a check: what can be played, what is refused and why, what is asked twice.
#
# Every task is verified, which runs its gold answer; verdicts of earlier runs are reused. A fault
# of the machine (a damaged file, a missing database) is listed with its task and does not end the
# check.


@dataclass(frozen=True)
class TaskReport:
    """The report of a check.

    Attributes:
        name: The name of the data set.
        splits: The number of entries in each split, those that could not be loaded included.
        playable: How many can be played.
        refused: Task id, code and reason of each task that is refused.
        faults: Task id and message of each task where the machine failed.
        duplicates: Ids of tasks that ask the same question about the same item, in any splits.
        items: How many items (databases, problem families) the loaded tasks belong to.
    """

    name: str
    splits: Mapping[str, int]
    playable: int
    refused: tuple[dict[str, str], ...]
    faults: tuple[dict[str, str], ...]
    duplicates: tuple[tuple[str, ...], ...]
    items: int

    @property
    def tasks(self) -> int:
        """The number of entries in all splits."""
        return sum(self.splits.values())

    @property
    def codes(self) -> dict[str, int]:
        """The count of each reason of refusal, the most frequent first."""
        return dict(Counter(refusal["code"] for refusal in self.refused).most_common())

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "name": self.name,
            "tasks": self.tasks,
            "splits": dict(self.splits),
            "items": self.items,
            "playable": self.playable,
            "refused": list(self.refused),
            "codes": self.codes,
            "faults": list(self.faults),
            "duplicates": [list(ids) for ids in self.duplicates],
        }


def check_tasks(
    name: str, sets: Mapping[str, TaskSet[Any]], progress: Progress | None = None
) -> TaskReport:
    """Verify every task of a data set.

    Args:
        name: The name of the data set.
        sets: The tasks by split.
        progress: Called with how many are done and how many there are.
    """
    asked: dict[bytes, list[str]] = {}
    items: set[str] = set()
    splits: dict[str, int] = {}
    refused: list[TaskRefused] = []
    faults: list[dict[str, str]] = []
    total, done = sum(map(len, sets.values())), 0
    for split, tasks in sets.items():
        unloaded = tasks.refused
        checked: dict[str, TaskRefused] = {}
        for task in tasks:
            done += 1
            unloaded.pop(task.id, None)
            items.add(task.item)
            if task.question:
                asked.setdefault(_question_key(task), []).append(task.id)
            try:
                refusal = tasks.refusal_of(task)
                checked |= {task.id: refusal} if refusal is not None else {}
            except EnvironmentFault as fault:
                faults.append({"task_id": task.id, "message": str(fault)})
            if progress is not None:
                progress(done, total)
        splits[split] = len(tasks) + len(unloaded)
        refused += [*unloaded.values(), *checked.values()]
    entries = sum(splits.values())
    return TaskReport(
        name=name,
        splits=splits,
        items=len(items - {""}),
        playable=entries - len(refused) - len(faults),
        refused=tuple(
            {"task_id": refusal.task_id, "code": refusal.code, "reason": refusal.reason}
            for refusal in refused
        ),
        faults=tuple(faults),
        duplicates=tuple(tuple(ids) for ids in asked.values() if len(ids) > 1),
    )


def _question_key(task: Task) -> bytes:
    """The same for questions that differ in letter case and blanks only; short, as sets are big."""
    text = f"{task.item}\0{' '.join(task.question.casefold().split())}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
