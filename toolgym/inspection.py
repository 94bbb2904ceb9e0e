"""Report on the tasks of a data set: playable tasks, and counts by item and other properties.

Every task is verified, which computes its gold answer. Results of earlier verifications are reused.
An infrastructure error, such as a corrupt file, is listed with the task and does not abort the
report.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolgym.errors import EnvironmentFault, TaskRefused
from toolgym.family import TaskFamily
from toolgym.tasks import TaskSet, nothing_playable
from toolgym.workers import Progress


@dataclass(frozen=True)
class TaskReport:
    """The result of `check_tasks`.

    Attributes:
        name: The name of the data set.
        tasks: The number of entries, including those that could not be loaded.
        splits: The number of entries by split.
        items: The number of items (databases, problem families) of the loaded tasks.
        playable: The number of tasks that can be played.
        refused: Task id, split, code and reason of each refused task.
        codes: The number of refusals by code, the most frequent first.
        faults: Task id, split and message of each task whose check failed with an infrastructure
            error.
        duplicates: Ids of tasks that ask the same question about the same item.
        rows: Counts of the playable tasks. There is a row for each item in each split, for each
            split (if there are several), and for all tasks. The keys of a row are `split`, the
            item, `tasks`, and, for each other property, the number of tasks with each value.
    """

    name: str
    tasks: int
    splits: dict[str, int]
    items: int
    playable: int
    refused: list[dict[str, str]]
    codes: dict[str, int]
    faults: list[dict[str, str]]
    duplicates: list[list[str]]
    rows: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return dataclasses.asdict(self)

    def nothing_playable(self) -> str:
        """Return the message for a data set without a playable task."""
        faults = [{**each, "code": "fault", "reason": each["message"]} for each in self.faults]
        return nothing_playable(self.name, self.refused + faults)


def check_tasks(
    name: str,
    sets: Mapping[str, TaskSet[Any]],
    progress: Progress | None = None,
    family: TaskFamily | None = None,
) -> TaskReport:
    """Verify every task of a data set.

    Args:
        name: The name of the data set.
        sets: The tasks by split.
        progress: Called with the number of finished tasks and the total.
        family: The task family, which provides the properties by which playable tasks are counted,
            such as item, hardness and shape of the result. Without a family, `rows` is empty.
    """
    splits: dict[str, int] = {}
    refusals: list[tuple[str, TaskRefused]] = []
    faults: list[dict[str, str]] = []
    same_question: dict[tuple[str, ...], list[str]] = defaultdict(list)  # ids by item and question
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)  # by split and item
    values: dict[str, set[str]] = defaultdict(set)  # by fact
    total, done = sum(map(len, sets.values())), 0
    for split, tasks in sets.items():
        checked: dict[str, TaskRefused | None] = {}
        for task in tasks:
            # Questions that differ only in case and spaces are the same.
            same_question[task.item, *task.question.casefold().split()].append(task.id)
            checked[task.id] = None
            try:
                checked[task.id] = tasks.refusal_of(task)
                if family is not None and checked[task.id] is None:
                    facts = family.facts(task, tasks)
                    for fact, value in facts.items():
                        values[fact].add(value)
                    item, *others = facts.values()
                    for place in ((split, item), (split, ""), ("", "")):
                        counts[place].update(["tasks", *others])
            except TaskRefused as refusal:
                checked[task.id] = refusal
            except EnvironmentFault as fault:
                faults.append({"task_id": task.id, "split": split, "message": str(fault)})
            done += 1
            if progress is not None:
                progress(done, total)
        unloaded = [each for task_id, each in tasks.refused.items() if task_id not in checked]
        refusals += [(split, each) for each in (*unloaded, *checked.values()) if each is not None]
        splits[split] = len(tasks) + len(unloaded)

    first, *counted = values or [""]
    columns = ["tasks"]
    orders = family.orders if family is not None else {}
    for fact in counted:
        known = [each for each in orders.get(fact, ()) if each in values[fact]]
        columns += [*known, *sorted(values[fact] - set(known))]
    playable = [split for split in splits if (split, "") in counts]
    places = [(s, item) for s in playable for item in sorted(i for t, i in counts if i and t == s)]
    places += [(split, "") for split in playable if len(playable) > 1]
    places += [("", "")] if playable else []
    return TaskReport(
        name=name,
        tasks=sum(splits.values()),
        splits=splits,
        items=len({item for item, *_ in same_question} - {""}),
        playable=sum(splits.values()) - len(refusals) - len(faults),
        refused=[{"split": split, **each.to_json()} for split, each in refusals],
        codes=dict(Counter(each.code for _, each in refusals).most_common()),
        faults=faults,
        duplicates=[ids for (_, *words), ids in same_question.items() if words and len(ids) > 1],
        rows=[
            {"split": split or "all", first: item or "all"}
            | {column: counts[split, item][column] for column in columns}
            for split, item in places
        ],
    )
