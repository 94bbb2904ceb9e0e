"""Families of environments: knowledge of tasks beyond playing them.

The commands on data sets (`toolgym tasks stats`, `show`, `synth`) and on played episodes
(`toolgym audit`, `toolgym stats`) know no family. They use the attribute `family` of the
environment class, a `TaskFamily`; a subclass overrides what it knows better.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from toolgym.errors import ConfigurationError
from toolgym.workers import Map, Progress

if TYPE_CHECKING:
    from toolgym.statistics import Rollout, Statistics
    from toolgym.tasks import TaskSet


@dataclass(frozen=True)
class SynthesisOrder:
    """An order of `toolgym tasks synth`.

    Attributes:
        sources: Files to write tasks for, or folders of them.
        out: The folder to write.
        splits: Split name to its share; the shares sum to 1. Empty: the family's own splits,
            without those that no task falls to.
        options: For the family: how many, seed, and so on.
        link: Refer to the sources instead of copying them.
        force: Replace a folder that an earlier order has written.
        map: Does the work for each source; see `toolgym.workers`.
    """

    sources: tuple[Path, ...]
    out: Path
    splits: Mapping[str, float]
    options: Mapping[str, Any] = field(default_factory=dict)
    link: bool = False
    force: bool = False
    map: Map = map


@dataclass(frozen=True)
class Origin:
    """The licence and the sources that a data set names; empty texts where it names none."""

    licence: str = ""
    sources: str = ""


class TaskFamily:
    """The family of any task; a subclass overrides what it knows better."""

    orders: ClassVar[Mapping[str, Sequence[str]]] = {}
    """By fact, its values in the order in which people list them; others follow by name."""
    kinds: ClassVar[tuple[str, ...]] = ("tasks", "items")
    """Kinds of novelty of a task to a training: the task, its item (in the family's word for
    items), and others that `marks` knows. Names of splits end with them."""

    def splits(self, dataset: Any) -> tuple[str, ...]:
        """The splits of a data set; empty where the environment has none.

        Raises:
            ConfigurationError: There is no such data set.
        """
        return ()

    def origin(self, dataset: Any) -> Origin:
        """The licence and the sources that a data set names."""
        folder = Path(dataset if isinstance(dataset, str | Path) else "").expanduser()
        for file in sorted(folder.glob("LICEN[CS]E*")) if dataset else ():
            with file.open(encoding="utf-8", errors="replace") as lines:
                first = lines.readline(200).strip()
            name = file.name
            return Origin(f"{first} ({name} in the folder of the data set)" if first else name)
        return Origin()

    def marks(self, task: Any, kind: str) -> frozenset[str]:
        """The marks of a task: two tasks that share a mark are the same in this respect.

        Args:
            task: A task of this family.
            kind: One of `kinds`. The marks of the first hold the item, so that tasks on different
                items are never the same.

        Returns:
            The marks; empty if the task has nothing of the kind, such as no item, or cannot be
            used.

        Raises:
            ConfigurationError: There is no such kind.
        """
        if kind == self.kinds[0]:
            fields = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
            named = {name: fields[name] for name in ("id", "item", "question")}
            content = {name: value for name, value in fields.items() if name != "id"}
            return frozenset((f"content {_told(content)}", f"named {_told(named)}"))
        if kind == self.kinds[1]:
            return frozenset((task.item,) if task.item else ())
        raise ConfigurationError(f"tasks are not told apart by {kind}: {', '.join(self.kinds)}.")

    def facts(self, task: Any, tasks: TaskSet[Any]) -> dict[str, str]:
        """The facts that tasks are counted by, the item first.

        Args:
            tasks: The set that the task is of.

        Raises:
            TaskRefused: The task cannot be played, and so has not all of the facts.
        """
        return {"item": task.item or "none"}

    def shown(self, task: Any) -> dict[str, str]:
        """A task in full for a person, its solution included: heading to text.

        Raises:
            TaskRefused: The task cannot be played, and so has no solution.
        """
        return {"question": task.question, "item": task.item or "none"}

    def recheck(self, env: Any, task: Any, turns: Sequence[Mapping[str, Any]]) -> bool | None:
        """Whether a recorded episode ended with the right answer, by a second, independent rule.

        A family that overrides this shares no code with its environment's own verdict.

        Args:
            env: The environment, made as it was for the episode; its tools and options are read.
            task: The task of the episode.
            turns: As in `EpisodeRecord.turns`.

        Returns:
            None if the second rule cannot tell.
        """
        return None

    def statistics(self, rollouts: Iterable[Rollout], top: int = 10) -> Statistics:
        """The counts of what agents wrote in some rollouts: the tables of `toolgym stats`.

        Args:
            rollouts: Episode records, or lines of a run's `rollouts.jsonl`; there may be more than
                fit into memory.
            top: Length of lists by frequency.

        Raises:
            ConfigurationError: This family counts nothing.
        """
        raise ConfigurationError(
            "there are no statistics for the environment that was played; `toolgym report` shows"
            " what every run has."
        )

    def synthesize(self, order: SynthesisOrder, progress: Progress | None = None) -> dict[str, Any]:
        """Write a data set for sources that have no tasks, and return a summary as plain data.

        Returns:
            `out`, `splits` (tasks by split), `dropped`, and `sources`: by name, `candidates`,
            `kept`, `by_hardness`, `rejected`, `missing`, `left_out`.

        Raises:
            ConfigurationError: This family writes no tasks, or the order cannot be met.
        """
        raise ConfigurationError("the tasks of this environment cannot be written by a program.")

    def invent(
        self, out: Path, n: int, first: int = 0, progress: Progress | None = None
    ) -> tuple[Path, ...]:
        """Invent items that tasks can be written for, and return files that `synthesize` takes.

        Args:
            out: The folder to write.
            n: The number of items.
            first: The number of the first item; one number is always the same item.

        Raises:
            ConfigurationError: This family invents nothing, or the files are there already.
            EnvironmentFault: The folder cannot be written.
        """
        raise ConfigurationError("nothing can be invented for the tasks of this environment.")


def _told(value: Any) -> str:
    """A value as text, the same for equal values whatever the order of their keys."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(sorted(f"{_told(k)}: {_told(v)}" for k, v in value.items())) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(_told, value))) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_told, value)) + "]"
    return repr(value)
