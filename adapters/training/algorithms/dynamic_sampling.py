"""Dynamic sampling: dead groups are replaced until a step has enough live groups.

A group is dead if all its rollouts had the same outcome (see the module `groups`), even if the
costs of their calls differ. The advantages of a dead group would reflect only small differences in
the number of tool calls. Live groups are kept in the order in which they were drawn, which avoids a
selection bias. A step draws a limited number of groups. If too few of these groups are live, the
step is filled up with dead groups, which the trainer excludes from the loss.

Each process collects its own groups, and all processes draw the same number of times. The processes
exchange their counts, so they all compute the same size for the next draw. Tasks come from a
`TaskStream`, whose only state is the number of tasks drawn.

The method follows section 3.2 of the DAPO paper (Yu et al. 2025, arXiv:2503.14476), which replaces
groups whose rollouts are all correct or all incorrect.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from adapters.training.algorithms.groups import is_dead
from toolgym.episode import Outcome
from toolgym.errors import ConfigurationError

G = TypeVar("G")


class TaskStream:
    """An endless stream of tasks in shuffled rounds; each round has every playable task once.

    All processes follow the same order, skip the same unplayable tasks, and distribute the other
    tasks among themselves in round-robin order. Therefore two processes never get the same task in
    the same round. Whether a task is playable is checked when the stream reaches it. The state is
    the number of tasks that the stream has passed so far, including unplayable ones.

    Args:
        size: Number of tasks; the stream yields positions from 0 to `size - 1`.
        seed: Seed of the order.
        name: Name of the stream; streams with different names have different orders.
        process: Rank of this process, from 0.
        processes: Number of processes.
        is_playable: Function that returns whether the task at a position can be played; it must
            agree on all processes.

    Raises:
        ConfigurationError: If there are no tasks.

    >>> stream = TaskStream(3, seed=0)
    >>> sorted(stream.take(3)), len(stream.take(2))
    ([0, 1, 2], 2)
    """

    def __init__(
        self,
        size: int,
        *,
        seed: int,
        name: str = "tasks",
        process: int = 0,
        processes: int = 1,
        is_playable: Callable[[int], bool] = lambda position: True,
    ) -> None:
        if size < 1:
            raise ConfigurationError("a task stream needs at least one task, got none.")
        self._size, self._key, self._is_playable = size, f"toolgym-{name}-{seed}", is_playable
        self._process, self._processes = process, processes
        self._walked = 0
        self._round, self._order = -1, list(range(size))

    def take(self, count: int) -> list[int]:
        """Return the positions of the next `count` playable tasks of this process.

        Raises:
            ConfigurationError: If none of the tasks in an entire round is playable.
        """
        playable, refused = list[int](), 0
        while len(playable) < count * self._processes:
            number, index = divmod(self._walked, self._size)
            if number != self._round:
                self._round, self._order = number, list(range(self._size))
                random.Random(f"{self._key}-{number}").shuffle(self._order)
            self._walked += 1
            if self._is_playable(self._order[index]):
                playable.append(self._order[index])
                refused = 0
            else:
                refused += 1
            if refused == 2 * self._size - 1:  # this many cover a whole round
                raise ConfigurationError(f"none of the {self._size:,} tasks can be played.")
        return playable[self._process :: self._processes]

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint, which is the same for all processes."""
        return {"walked": self._walked, "size": self._size, "key": self._key}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; the number of processes may have changed.

        Raises:
            ConfigurationError: If the state belongs to a stream with a different number of tasks or
                a different seed.
        """
        if (state["size"], state["key"]) != (self._size, self._key):
            raise ConfigurationError(
                f"the checkpoint has {state['size']} tasks ({state['key']}), but this run has"
                f" {self._size} ({self._key}). Resume with the same tasks and seed."
            )
        self._walked = int(state["walked"])


class Filled(NamedTuple, Generic[G]):
    """The groups of this process for one step.

    Attributes:
        live: Groups to learn from, at most `places`.
        dead: Dead groups that fill up the step; the trainer must exclude them from the loss.
        metrics: Metrics named as in `toolgym.runs.metrics`. All of them except `sampling_rounds`
            are counts for this process and must be summed over all processes.
    """

    live: list[G]
    dead: list[G]
    metrics: dict[str, float]


def fill(
    places: int,
    max_draws: float,
    draw: Callable[[int], Sequence[G]],
    outcomes: Callable[[G], Sequence[Outcome | None]],
    exchange: Callable[[tuple[int, int, int]], Sequence[Sequence[int]]] = lambda tally: [tally],
) -> Filled[G]:
    """Draw groups until a step has enough live groups or the limit is reached.

    Args:
        places: Number of groups that this process learns from in the step.
        max_draws: Maximum number of groups that this process draws, as a multiple of `places`. With
            1, no dead group is replaced; 3 is enough for groups of 8 rollouts at a success rate of
            5 %.
        draw: Function that plays the given number of groups and returns them. The function
            is first called with `places`.
        outcomes: Function that returns the outcomes of a group's members, with None for members
            that are excluded.
        exchange: Function that gathers the numbers of missing, live and drawn groups from all
            processes, in the same order on every process. Each draw is sized by the process that is
            missing the most groups and by the share of live groups so far. No draw exceeds `places`
            groups, since that number of groups is known to fit into memory.

    Raises:
        ConfigurationError: If `places` is below 1, since a group must not be split across
            processes.
    """
    if places < 1:
        raise ConfigurationError(
            "dynamic sampling needs at least one whole group per process. Set the rollouts per"
            " process and step to a multiple of the group size."
        )
    live, dead, drawn, rounds, count = list[G](), list[G](), 0, 0, places
    while count:
        for group in draw(count):
            drawn += 1
            (dead if is_dead(outcomes(group)) else live).append(group)
        rounds += 1
        tallies = exchange((max(0, places - len(live)), len(live), drawn))
        most_missing, all_live, all_drawn = zip(*tallies, strict=True)
        # Laplace's rule of succession keeps the share above 0.
        share = (sum(all_live) + 1) / (sum(all_drawn) + 2)
        remaining = math.floor(places * max_draws) - max(all_drawn)
        count = max(0, min(math.ceil(max(most_missing) / share), places, remaining))
    kept = live[:places]
    metrics = {
        "drawn_groups": float(drawn),
        "dropped_groups": float(len(dead)),
        "surplus_groups": float(len(live) - len(kept)),
        "masked_groups": float(places - len(kept)),
        "sampling_rounds": float(rounds),
    }
    return Filled(kept, dead[: places - len(kept)], metrics)
