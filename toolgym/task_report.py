"""One report on a set of tasks: what can be played, what is refused and why, what is there twice.

Every task is verified, which runs its gold answer; what earlier runs found out counts. A fault of
the machine (a damaged file, a database that vanished) is listed with the task that met it and does
not end the check.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolgym.errors import EnvironmentFault, TaskRefused
from toolgym.tasks import Task, TaskSet


@dataclass(frozen=True)
class TaskReport:
    """What a check found.

    Attributes:
        name: The set's name.
        tasks: How many entries there are, those that could not be loaded included.
        playable: How many can be played.
        refused: Task id, code and reason of each that cannot.
        faults: Task id and message, where the machine failed.
        duplicates: Task ids that ask the same question of the same item, first ones first.
        items: How many items (databases, problem families) the loaded tasks belong to.
    """

    name: str
    tasks: int
    playable: int
    refused: tuple[dict[str, str], ...]
    faults: tuple[dict[str, str], ...]
    duplicates: tuple[tuple[str, ...], ...]
    items: int

    @property
    def codes(self) -> dict[str, int]:
        """How often each reason of refusal occurs, the most frequent first."""
        return dict(Counter(refusal["code"] for refusal in self.refused).most_common())

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "name": self.name,
            "tasks": self.tasks,
            "items": self.items,
            "playable": self.playable,
            "refused": list(self.refused),
            "codes": self.codes,
            "faults": list(self.faults),
            "duplicates": [list(ids) for ids in self.duplicates],
        }


def check_tasks(
    tasks: TaskSet[Any], progress: Callable[[int, int], None] | None = None
) -> TaskReport:
    """Verify every task of a set.

    Args:
        tasks: The set, as it was loaded.
        progress: Called with how many are done and how many there are.
    """
    met: set[str] = set()
    asked: dict[bytes, list[str]] = {}
    items: set[str] = set()
    refused: dict[str, TaskRefused] = {}
    faults: list[dict[str, str]] = []
    for done, task in enumerate(tasks, start=1):
        met.add(task.id)
        items.add(task.item)
        if task.question:
            asked.setdefault(_question_key(task), []).append(task.id)
        try:
            refusal = tasks.refusal_of(task)
            refused |= {task.id: refusal} if refusal is not None else {}
        except EnvironmentFault as fault:
            faults.append({"task_id": task.id, "message": str(fault)})
        if progress is not None:
            progress(done, len(tasks))
    unloaded = {name: why for name, why in tasks.refused.items() if name not in met}
    return TaskReport(
        name=tasks.name,
        tasks=len(tasks) + len(unloaded),
        items=len(items - {""}),
        playable=len(tasks) - len(refused) - len(faults),
        refused=tuple(map(_as_data, (unloaded | refused).values())),
        faults=tuple(faults),
        duplicates=tuple(tuple(ids) for ids in asked.values() if len(ids) > 1),
    )


def _as_data(refusal: TaskRefused) -> dict[str, str]:
    return {"task_id": refusal.task_id, "code": refusal.code, "reason": refusal.reason}


def _question_key(task: Task) -> bytes:
    """The same for questions that differ in letter case and blanks only; short, as sets are big."""
    text = f"{task.item}\0{' '.join(task.question.casefold().split())}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
