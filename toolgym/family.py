"""`TaskFamily`: the interface of an environment's tasks to the commands on data sets and episodes.

The commands on data sets (`toolgym tasks stats`, `show`, `synth`) and on played episodes
(`toolgym audit`, `toolgym stats`) contain no code for a particular environment. They call the
methods of the attribute `family` of the environment class, a `TaskFamily`. Its defaults fit any
task; a family overrides the methods that need more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from toolgym.errors import ConfigurationError
from toolgym.workers import Map, Progress

if TYPE_CHECKING:
    from toolgym.statistics import Rollout, Statistics
    from toolgym.tasks import TaskSet


Ask = Callable[[Sequence[tuple[str, str]]], Sequence[str]]
"""Sends requests to a chat model, each a system and a user message, and returns the replies."""


@dataclass(frozen=True)
class SynthesisOrder:
    """The arguments of `toolgym tasks synth`.

    Attributes:
        sources: Files to write tasks for, or folders of them.
        out: The folder to write.
        splits: The share of each split by its name; the shares sum to 1. If empty, the family's
            own splits are written, without those that would have no task.
        options: Options of the family, such as the number of tasks and the seed.
        link: Refer to the sources instead of copying them.
        force: Replace a folder that an earlier synthesis wrote.
        map: Function that does the work for each source; see `toolgym.workers`.
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
    """The license and the sources that a data set states; "" if it states none."""

    license: str = ""
    sources: str = ""


class TaskFamily:
    """A family of tasks, with defaults that fit any task."""

    orders: ClassVar[Mapping[str, Sequence[str]]] = {}
    """The usual order of the values of a fact, by its name; other values follow, sorted by name."""
    kinds: ClassVar[tuple[str, ...]] = ("tasks", "items")
    """The respects in which a task can be unseen by a training: the task itself, its item (under
    the family's name for items), and others that `marks` supports. Split names such as
    `dev-databases` end with them."""

    def splits(self, dataset: Any) -> tuple[str, ...]:
        """Return the names of the splits of a data set; empty if the environment has no splits.

        Raises:
            ConfigurationError: There is no such data set.
        """
        return ()

    def origin(self, dataset: Any) -> Origin:
        """Return the license and the sources that a data set states."""
        folder = Path(dataset if isinstance(dataset, str | Path) else "").expanduser()
        for file in sorted(folder.glob("LICEN[CS]E*")) if dataset else ():
            with file.open(encoding="utf-8", errors="replace") as lines:
                first = lines.readline(200).strip()
            name = file.name
            return Origin(f"{first} ({name} in the folder of the data set)" if first else name)
        return Origin()

    def marks(self, task: Any, kind: str) -> frozenset[str]:
        """Return keys of a task; two tasks with a common key are the same in respect of `kind`.

        Args:
            task: A task of this family.
            kind: One of `kinds`. The keys for the first kind include the item, so that tasks on
                different items are never the same.

        Returns:
            The keys; empty if the task has none of this kind, such as no item, or cannot be used.

        Raises:
            ConfigurationError: There is no such kind.
        """
        if kind == self.kinds[0]:
            fields = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
            named = {name: fields[name] for name in ("id", "item", "question")}
            content = {name: value for name, value in fields.items() if name != "id"}
            return frozenset((f"content {_canonical(content)}", f"named {_canonical(named)}"))
        if kind == self.kinds[1]:
            return frozenset((task.item,) if task.item else ())
        raise ConfigurationError(
            f"tasks cannot be compared by {kind}; the kinds are {', '.join(self.kinds)}."
        )

    def facts(self, task: Any, tasks: TaskSet[Any]) -> dict[str, str]:
        """Return the facts by which tasks are counted, the item first.

        Args:
            task: A task of this family.
            tasks: The set that contains the task.

        Raises:
            TaskRefused: The task cannot be played, so some facts are unknown.
        """
        return {"item": task.item or "none"}

    def shown(self, task: Any) -> dict[str, str]:
        """Return a task in full, with its solution, for display: texts by heading.

        Raises:
            TaskRefused: The task cannot be played, so it has no solution.
        """
        return {"question": task.question, "item": task.item or "none"}

    def recheck(self, env: Any, task: Any, turns: Sequence[Mapping[str, Any]]) -> bool | None:
        """Return whether a recorded episode has the correct answer, by a second, independent rule.

        An override must not share code with the verdict of the environment.

        Args:
            env: The environment with the arguments of the episode; its tools and options are read.
            task: The task of the episode.
            turns: The turns, as in `EpisodeRecord.turns`.

        Returns:
            The verdict; None if the second rule cannot decide.
        """
        return None

    def statistics(
        self,
        rollouts: Iterable[Rollout],
        top: int = 10,
        env_kwargs: Mapping[str, Any] | None = None,
    ) -> Statistics:
        """Return the tables of `toolgym stats`: statistics of what agents wrote in rollouts.

        Args:
            rollouts: Episode records, or lines of a run's `rollouts.jsonl`. There may be more than
                fit into memory.
            top: Number of entries in lists by frequency.
            env_kwargs: Arguments of the environment that a run recorded.

        Raises:
            ConfigurationError: This family has no statistics.
        """
        raise ConfigurationError(
            "there are no statistics for the environment that was played; `toolgym report` shows"
            " the metrics that every run has."
        )

    def read_log(self, lines: Iterable[str]) -> Iterator[Mapping[str, Any]]:
        """Yield the outputs in a log of another program, as rollouts that `statistics` takes.

        `toolgym stats FILE` asks each family, and takes the first that yields one. Default: none.

        Args:
            lines: The lines of the log, without undecodable bytes; very long ones are cut.
        """
        return iter(())

    def synthesize(self, order: SynthesisOrder, progress: Progress | None = None) -> dict[str, Any]:
        """Write a data set for sources that have no tasks, and return a summary as plain data.

        Returns:
            The keys `out`, `splits` (number of tasks by split), `dropped`, and `sources`, which
            has for each source `candidates`, `kept`, `by_hardness`, `rejected`, `missing` and
            `left_out`.

        Raises:
            ConfigurationError: This family cannot write tasks, or not with these arguments.
        """
        raise ConfigurationError("the tasks of this environment cannot be written by a program.")

    def invent(
        self, out: Path, n: int, first: int = 0, progress: Progress | None = None
    ) -> tuple[Path, ...]:
        """Invent items that tasks can be written for, and return files that `synthesize` takes.

        Args:
            out: The folder to write.
            n: The number of items.
            first: The number of the first item; one number always gives the same item.
            progress: Called with the number of finished items and the total.

        Raises:
            ConfigurationError: This family cannot invent items, or the files exist already.
            EnvironmentFault: The folder cannot be written.
        """
        raise ConfigurationError("nothing can be invented for the tasks of this environment.")

    def rephrase(
        self,
        source: Path,
        out: Path,
        ask: Ask,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Write a copy of a data set with questions that a chat model rephrased.

        Args:
            source: The folder of the data set.
            out: The folder to write.
            ask: Sends requests to the chat model.
            overwrite: Replace a folder that this method wrote.
            progress: Called with the number of finished questions and the total.

        Returns:
            The keys `out`, `questions`, `rephrased`, `refused` (number of refused replies by
            reason) and `unusable` (number of entries that are not tasks).

        Raises:
            ConfigurationError: This family cannot rephrase questions, or not with these arguments.
            EnvironmentFault: The model does not reply, or the folder cannot be written.
        """
        raise ConfigurationError("the questions of this environment cannot be rephrased.")


def _canonical(value: Any) -> str:
    """Return a value as text that does not depend on the order of keys and set members."""
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(sorted(f"{_canonical(k)}: {_canonical(v)}" for k, v in value.items()))
            + "}"
        )
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(_canonical, value))) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_canonical, value)) + "]"
    return repr(value)
