"""Dynamic sampling: groups of one outcome are replaced by further tasks until a step is full.

    draw the step's groups -> keep the live ones -> draw as many more as are still missing -> ...

A group is dead when all its members had the same outcome (`groups`), even where their costs
differ: what it would teach is the noise of a call more or less. Which groups are kept depends on
nothing but that and their order, so with tasks drawn at random a kept group is distributed as a
live group is, and has the expected gradient of one. (A `TaskStream` repeats no task within a round;
simulated, that makes no difference from eight tasks on.) A cap holds the number of groups a step
may draw; places that are still empty then hold dead groups whose tokens the trainer masks.

A `Filling` holds the groups of one step; it decides, the trainer plays. Several processes each have
their own and draw equally often: they exchange tallies, from which each computes the same next
draw. Where tasks for refills come from is a `TaskStream`, whose whole state is one number.

Paper: Yu et al. 2025 (DAPO), arXiv:2503.14476, section 3.2, for groups of equal accuracy.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from adapters.training.algorithms.groups import (
    Counts,
    GroupSizeAdvice,
    counts_of,
    group_size,
    is_dead,
)
from toolgym.episode import Outcome
from toolgym.errors import ConfigurationError

_REMEMBERED: Final = 256  # groups from which a group size is advised

Group = Sequence[Outcome | None]
"""The outcomes of one group's members; None is an unscored one."""


class SamplingConfig(BaseModel):
    """The settings of dynamic sampling."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_draws: float = Field(default=3.0, ge=1.0)
    """Groups that a step may draw, as a multiple of those it learns from, the first draw included.
    1 drops dead groups and draws no others. Three times is what a group of 8 needs at a success
    rate of 5 %; where more is needed, other tasks are."""


class TaskStream:
    """An endless stream of tasks: shuffled rounds, each with every task once.

    Processes that share a seed take turns, so no two get the same task of a round. The state is
    the number of tasks taken by all processes together, which take equally many.

    Args:
        name: Streams of other names have other orders.
        process: The number of this process, from 0.

    Raises:
        ConfigurationError: There is no task, or no such process.

    >>> stream = TaskStream(3, seed=0)
    >>> sorted(stream.take(3)), len(stream.take(2))
    ([0, 1, 2], 2)
    """

    def __init__(
        self, size: int, *, seed: int, name: str = "refill", process: int = 0, processes: int = 1
    ) -> None:
        if size < 1 or not 0 <= process < processes:
            raise ConfigurationError(
                "a stream needs at least one task and a process below their number, got"
                f" {size=}, {process=}, {processes=}."
            )
        self._size, self._key = size, f"toolgym-{name}-{seed}"
        self._process, self._processes = process, processes
        self._taken = 0
        self._order: tuple[int, list[int]] = (-1, [])

    def take(self, count: int) -> list[int]:
        """The positions of the next tasks of this process."""
        first = self._taken + self._process
        self._taken += count * self._processes
        return [self._task(first + i * self._processes) for i in range(count)]

    def _task(self, number: int) -> int:
        turn, place = divmod(number, self._size)
        if self._order[0] != turn:
            order = list(range(self._size))
            random.Random(f"{self._key}-{turn}").shuffle(order)
            self._order = (turn, order)
        return self._order[1][place]

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint; the same for all processes."""
        return {"taken": self._taken, "size": self._size, "key": self._key}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; the number of processes may have changed.

        Raises:
            ConfigurationError: It is the state of other tasks or of another seed.
        """
        if (state["size"], state["key"]) != (self._size, self._key):
            raise ConfigurationError(
                f"the checkpoint's refills are of {state['size']} tasks ({state['key']}), here are"
                f" {self._size} ({self._key}): resume with the same tasks and seed."
            )
        self._taken = int(state["taken"])


class Choice(NamedTuple):
    """The kept and the spare groups of one draw, by their positions in it.

    Attributes:
        keep: Live groups to learn from.
        spare: Dead groups to hold, since they may have to fill empty places.
    """

    keep: list[int]
    spare: list[int]


class Tally(NamedTuple):
    """The counts of one process that all exchange before each draw: missing, live and drawn."""

    missing: int
    live: int
    drawn: int


class Filling:
    """The groups that one process has collected for a step. Made by `DynamicSampling.begin`.

    Args:
        places: Groups that this process learns from in the step.
        most: Groups that it may draw.
    """

    def __init__(self, places: int, most: int) -> None:
        self._places, self._most = places, most
        self._kept = self._spares = self._live = self._drawn = self._rounds = 0

    def offer(self, groups: Sequence[Group]) -> Choice:
        """Add the groups of one draw, and choose which to keep.

        First come, first kept: nothing else may decide, or the kept would be a biased sample.
        """
        live = [place for place, outcomes in enumerate(groups) if not is_dead(outcomes)]
        chosen = set(live)
        dead = [place for place in range(len(groups)) if place not in chosen]
        keep = live[: self.missing]
        self._kept += len(keep)
        spare = dead[: max(0, self.missing - self._spares)]
        self._spares += len(spare)
        self._live += len(live)
        self._drawn += len(groups)
        self._rounds += 1
        return Choice(keep, spare)

    @property
    def missing(self) -> int:
        """The number of empty places. Once `next_draw` is 0: of spare groups to mask and put in."""
        return self._places - self._kept

    @property
    def tally(self) -> Tally:
        """The counts of this process."""
        return Tally(self.missing, self._live, self._drawn)

    def next_draw(self, tallies: Iterable[Sequence[int]] | None = None) -> int:
        """The number of groups that every process has to draw now; 0 when the step is to begin.

        As many as the emptiest process should need at the share of live groups seen so far, but no
        more than a step has places, since a full draw is what memory was found to hold.

        Args:
            tallies: Of all processes; None where there is one. The answer is the same on each.
        """
        gathered = [Tally(*tally) for tally in tallies] if tallies is not None else [self.tally]
        worst = max(tally.missing for tally in gathered)
        live, drawn = sum(tally.live for tally in gathered), sum(tally.drawn for tally in gathered)
        share = (live + 1) / (drawn + 2)  # never 0: a first draw may have been unlucky
        left = self._most - max(tally.drawn for tally in gathered)
        return max(0, min(math.ceil(worst / share), self._places, left))

    def metrics(self) -> dict[str, float]:
        """The sampling metrics of this process, by the names of `toolgym.runs.metrics`."""
        return {
            "drawn_groups": float(self._drawn),
            "dropped_groups": float(self._drawn - self._live),
            "surplus_groups": float(self._live - self._kept),
            "masked_groups": float(self.missing),
            "sampling_rounds": float(self._rounds),
        }


class DynamicSampling:
    """The state of dynamic sampling between steps: the refill stream and the success rates.

    Args:
        stream: The tasks for refills.
    """

    def __init__(self, config: SamplingConfig, stream: TaskStream) -> None:
        self._config, self._stream = config, stream
        self._counts: deque[Counts] = deque(maxlen=_REMEMBERED)

    def begin(self, places: int) -> Filling:
        """Start the groups of a step.

        Raises:
            ConfigurationError: There is no place; groups must lie whole in one process.
        """
        if places < 1:
            raise ConfigurationError(
                "dynamic sampling needs at least one whole group per process: make the rollouts of"
                " a process and step a multiple of the group size."
            )
        return Filling(places, math.floor(places * self._config.max_draws))

    def refill(self, count: int) -> list[int]:
        """The positions of the next tasks for this process."""
        return self._stream.take(count)

    def note(self, groups: Iterable[Group]) -> None:
        """Record the number of right rollouts in each group, of all processes if at hand."""
        self._counts.extend(counts_of(outcomes) for outcomes in groups)

    def advice(self) -> GroupSizeAdvice:
        """The group size that the latest groups recommend."""
        return group_size(list(self._counts))

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint, as JSON can hold it."""
        return {"stream": self._stream.state_dict(), "counts": [list(c) for c in self._counts]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of `state_dict`.

        Raises:
            ConfigurationError: It is the state of other tasks or of another seed.
        """
        self._stream.load_state_dict(state["stream"])
        self._counts = deque(((int(r), int(n)) for r, n in state["counts"]), maxlen=_REMEMBERED)
