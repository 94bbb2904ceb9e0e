"""Families of environments: their knowledge of their tasks, beyond playing them.

The commands that look at a data set (`toolgym tasks stats`, `show`, `synth`) or at what was played
(`toolgym audit`, `toolgym stats`) know no family. They ask the environment class for its `family`,
an object of the class below; a family that can tell more of its tasks or of what was played, or
write new tasks, overrides what it can do better.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from toolgym.errors import ConfigurationError
from toolgym.spread import HERE, Progress, Spread

if TYPE_CHECKING:
    from toolgym.statistics import Rollout, Statistics
    from toolgym.tasks import TaskSet
    from toolgym.tools import ToolSpec


class WithTools(Protocol):
    """An environment as far as a family reads it: its tools and its tasks.

    A class of environments holds its family, so a family cannot know the class.
    """

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The tools by name."""
        ...

    @property
    def tasks(self) -> TaskSet[Any]:
        """The set that it plays."""
        ...


@dataclass(frozen=True)
class SynthesisOrder:
    """An order of `toolgym tasks synth`.

    Attributes:
        sources: What tasks are written for: files, or folders of them.
        out: The folder to write.
        splits: Split name to its share; the shares sum to 1. Empty: the family's own splits,
            without those that no task falls to.
        options: For the family: how many, seed, and so on.
        link: Refer to the sources instead of copying them.
        force: Replace a folder that an earlier order has written.
        spread: Where the sources are worked through.
    """

    sources: tuple[Path, ...]
    out: Path
    splits: Mapping[str, float]
    options: Mapping[str, Any] = field(default_factory=dict)
    link: bool = False
    force: bool = False
    spread: Spread = HERE


@dataclass(frozen=True)
class Origin:
    """The licence and the sources that a data set names; empty texts where it names none."""

    licence: str = ""
    sources: str = ""


_LICENCES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "LICENCE.txt", "LICENCE.md")


def folder_origin(folder: Path) -> Origin:
    """What a data set in a folder says: the first line of its file LICENSE."""
    for name in _LICENCES:
        if (folder / name).is_file():
            with (folder / name).open(encoding="utf-8", errors="replace") as file:
                first = file.readline(200).strip()
            return Origin(f"{first} ({name} in the folder of the data set)" if first else name)
    return Origin()


class TaskFamily:
    """The family of any task; a real one overrides what it knows."""

    orders: ClassVar[Mapping[str, Sequence[str]]] = {}
    """By fact, its values in the order in which people list them; others follow by name."""
    kinds: ClassVar[tuple[str, ...]] = ("tasks", "items")
    """What of a task a training may not have seen: the task; its item, in the family's word for
    items; and what else the family tells apart, by `marks`. Splits are named by them."""

    def splits(self, dataset: Any) -> tuple[str, ...]:
        """The splits of a data set; empty where the environment has none.

        Raises:
            ConfigurationError: There is no such data set.
        """
        return ()

    def origin(self, dataset: Any) -> Origin:
        """The licence and the sources that a data set names."""
        if not isinstance(dataset, str | Path):
            return Origin()
        return folder_origin(Path(dataset).expanduser())

    def marks(self, task: Any, kind: str) -> frozenset[str]:
        """The marks of a task: two tasks that share a mark are the same in this respect.

        Args:
            task: Of this family.
            kind: One of `kinds`. The marks of the first hold the item, so that tasks on different
                items are never the same.

        Returns:
            None at all where the task has nothing of the kind, such as no item; none of any kind
            where it cannot be used.

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

    def recheck(self, env: WithTools, task: Any, turns: Sequence[Mapping[str, Any]]) -> bool | None:
        """Whether a recorded episode ended with the right answer, by a second, independent rule.

        A verdict that is checked by the code that gave it is not checked. So a family that
        overrides this shares nothing with its environment's own verdict but the task: another way
        to the gold, another comparison.

        Args:
            env: Made as it was for the episode; for its tools and options, not to be played.
            task: What was asked.
            turns: As in `EpisodeRecord.turns`.

        Returns:
            None where the second rule cannot tell.
        """
        return None

    def statistics(self, rollouts: Iterable[Rollout], top: int = 10) -> Statistics:
        """The counts of what agents wrote in some rollouts: the tables of `toolgym stats`.

        The report of a run shows them too, and calls this for a family that overrides it.

        Args:
            rollouts: Episode records, or lines of a run's `rollouts.jsonl`, all of environments of
                this family; there may be more than fit into memory.
            top: Of what is listed by frequency, how much is told at most.

        Raises:
            ConfigurationError: This family counts nothing.
        """
        raise ConfigurationError(
            "there are no statistics for the environment that was played; `toolgym report` shows"
            " what every run has."
        )

    @property
    def counts(self) -> bool:
        """Whether it has statistics."""
        return type(self).statistics is not TaskFamily.statistics

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
        """Invent what tasks can be written for, and return its files, which `synthesize` takes.

        Args:
            out: The folder to write.
            n: How many.
            first: The number of the first one; a number is always the same one.

        Raises:
            ConfigurationError: This family invents nothing, or the files are there already.
            EnvironmentFault: The folder cannot be written.
        """
        raise ConfigurationError("nothing can be invented that tasks of this environment are of.")


def _told(value: Any) -> str:
    """A value as text that equal values share, in whatever order they were filled."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(sorted(f"{_told(k)}: {_told(v)}" for k, v in value.items())) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(_told, value))) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_told, value)) + "]"
    return repr(value)
