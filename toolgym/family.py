"""`TaskFamily`: the interface between an environment's tasks and the `toolgym` commands.

The commands on data sets (`toolgym tasks stats`, `show`, `synth`) and on recorded episodes
(`toolgym audit`, `toolgym stats`) contain no code for a particular environment. Instead, these
commands call methods of a `TaskFamily`, which is the attribute `family` of the environment class.
The default implementations of the methods are valid for any task. A family overrides methods to
support more commands.
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
"""Sends requests to a chat model, each consisting of a system and a user message, and returns the
replies."""


@dataclass(frozen=True)
class SynthesisOrder:
    """The arguments of `toolgym tasks synth`.

    Attributes:
        sources: Files for which tasks are written, or folders that contain such files.
        out: The folder to write.
        splits: The share of each split by its name; the shares sum to 1. If `splits` is empty, the
            splits are those of the family that have tasks.
        options: Options of the family, such as the number of tasks and the seed.
        link: Whether the data set refers to the source files instead of copying them.
        force: Whether to replace a folder written by an earlier synthesis.
        map: Function that is used like Python's `map` to process the sources; see
            `toolgym.workers`.
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
    """The license and the sources that a data set declares; each is "" if not declared."""

    license: str = ""
    sources: str = ""


class TaskFamily:
    """A family of tasks, with defaults that are valid for any task."""

    orders: ClassVar[Mapping[str, Sequence[str]]] = {}
    """The usual order of the values of a fact, by the name of the fact; other values follow, sorted
    by name."""
    kinds: ClassVar[tuple[str, ...]] = ("tasks", "items")
    """The respects in which a task can be unseen during training: the task itself, its item (under
    the family's name for items), and others that `marks` supports. The kinds are the suffixes of
    split names such as `dev-databases`.
    """

    def splits(self, dataset: Any) -> tuple[str, ...]:
        """Return the names of the splits of a data set; empty if the environment has no splits.

        Raises:
            ConfigurationError: The data set does not exist.
        """
        return ()

    def origin(self, dataset: Any) -> Origin:
        """Return the license and the sources that a data set declares."""
        folder = Path(dataset if isinstance(dataset, str | Path) else "").expanduser()
        for file in sorted(folder.glob("LICEN[CS]E*")) if dataset else ():
            with file.open(encoding="utf-8", errors="replace") as lines:
                first = lines.readline(200).strip()
            name = file.name
            return Origin(f"{first} ({name} in the folder of the data set)" if first else name)
        return Origin()

    def marks(self, task: Any, kind: str) -> frozenset[str]:
        """Return the keys of a task with respect to a kind of comparison.

        Two tasks with a common key are considered the same with respect to `kind`.

        Args:
            task: A task of this family.
            kind: One of `kinds`. The keys for the first kind include the item, so that tasks on
                different items always differ.

        Returns:
            The keys. The result is empty if the task cannot be used or lacks the compared property,
            for example if it has no item.

        Raises:
            ConfigurationError: The kind does not exist.
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
        """Return the properties by which tasks are counted, starting with the item.

        Args:
            task: A task of this family.
            tasks: The set that contains the task.

        Raises:
            TaskRefused: The task cannot be played, so some properties are unknown.
        """
        return {"item": task.item or "none"}

    def shown(self, task: Any) -> dict[str, str]:
        """Return a complete task with its solution for display, as a dict from headings to text.

        Raises:
            TaskRefused: The task cannot be played, so it has no solution.
        """
        return {"question": task.question, "item": task.item or "none"}

    def recheck(self, env: Any, task: Any, turns: Sequence[Mapping[str, Any]]) -> bool | None:
        """Check independently whether the answer of a recorded episode is correct.

        An override must not share code with the environment's own check.

        Args:
            env: The environment, created with the arguments of the episode; only its tools and
                options are used.
            task: The task of the episode.
            turns: The turns, as in `EpisodeRecord.turns`.

        Returns:
            The verdict, or None if this check cannot decide.
        """
        return None

    def statistics(
        self,
        rollouts: Iterable[Rollout],
        top: int = 10,
        env_kwargs: Mapping[str, Any] | None = None,
    ) -> Statistics:
        """Return the tables of `toolgym stats`: statistics of the actions in rollouts.

        Args:
            rollouts: Episode records, or lines of a run's `rollouts.jsonl`. The rollouts need not
                fit into memory all at once.
            top: Number of entries in frequency tables.
            env_kwargs: The environment arguments that are recorded in the run folder.

        Raises:
            ConfigurationError: This family has no statistics.
        """
        raise ConfigurationError(
            "there are no statistics for this environment; `toolgym report` shows"
            " the metrics that every run has."
        )

    def read_log(self, lines: Iterable[str]) -> Iterator[Mapping[str, Any]]:
        """Yield the model outputs in a log file of another program, as rollouts for `statistics`.

        `toolgym stats FILE` uses the first family that yields a rollout. The default implementation
        yields none.

        Args:
            lines: The lines of the log, without undecodable bytes. Very long lines are truncated.
        """
        return iter(())

    def synthesize(self, order: SynthesisOrder, progress: Progress | None = None) -> dict[str, Any]:
        """Write a data set for sources that have no tasks, and return a summary as plain data.

        Returns:
            A dict with `out`, `splits` (number of tasks by split), `dropped` and `sources`. For
            each source, `sources` contains `candidates`, `kept`, `by_hardness`, `rejected`,
            `missing` and `left_out`.

        Raises:
            ConfigurationError: This family cannot write tasks, or an argument is invalid.
        """
        raise ConfigurationError("this environment does not support the synthesis of tasks.")

    def invent(
        self, out: Path, n: int, first: int = 0, progress: Progress | None = None
    ) -> tuple[Path, ...]:
        """Invent items for which tasks can be written, and return files for `synthesize`.

        Args:
            out: The folder to write.
            n: The number of items.
            first: The number of the first item. The same number always produces the same item.
            progress: Called with the number of finished items and the total.

        Raises:
            ConfigurationError: This family cannot invent items, or the files exist already.
            EnvironmentFault: The folder cannot be written.
        """
        raise ConfigurationError("this environment does not support the invention of items.")

    def rephrase(
        self,
        source: Path,
        out: Path,
        ask: Ask,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Write a copy of a data set with questions rephrased by a chat model.

        Args:
            source: The folder of the data set.
            out: The folder to write.
            ask: Sends requests to the chat model.
            overwrite: Whether to replace an existing folder that this method has written.
            progress: Called with the number of finished questions and the total.

        Returns:
            A dict with `out`, `questions`, `rephrased`, `refused` (number of rejected replies by
            reason) and `unusable` (number of entries that are not tasks).

        Raises:
            ConfigurationError: This family cannot rephrase questions, or an argument is invalid.
            EnvironmentFault: The model does not reply, or the folder cannot be written.
        """
        raise ConfigurationError("this environment does not support rephrasing.")


def _canonical(value: Any) -> str:
    """Return a value as a string that does not depend on the order of keys and set members."""
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
