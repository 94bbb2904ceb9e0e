"""Dynamic sampling: groups without a contrast are replaced until a step is full of live ones.

    draw the step's groups -> keep the live ones -> draw as many more as are missing -> ...

A group is dead when all its members had the same outcome (`groups`), even where their costs
differ: its advantages would be the noise of a call more or less. Live groups are kept in the order
in which they were drawn and nothing else decides, so a kept group is distributed as a live group
is, and has the expected gradient of one. A cap limits the groups that a step may draw; places that
are still empty then hold dead groups, which the trainer leaves out of the loss.

Several processes fill their own places and draw equally often: they exchange tallies, from which
each computes the same next draw. Tasks come from a `TaskStream`, whose whole state is one number.

Paper: Yu et al. 2025 (DAPO), arXiv:2503.14476, section 3.2, for groups of equal accuracy.
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
    """An endless stream of tasks: shuffled rounds, each with every playable task once.

    All processes walk the same order, pass over the same refused tasks, and take the others in
    turn, so no two get the same task of a round. A task is checked when the stream reaches it. The
    state is the number of tasks walked, refused ones included.

    Args:
        size: The number of tasks; the stream yields their positions.
        name: Streams of other names have other orders.
        process: The number of this process, from 0.
        is_playable: Whether the task at a position can be played fairly; the same on all processes.

    Raises:
        ConfigurationError: There is no task, or no such process.

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
        if size < 1 or not 0 <= process < processes:
            raise ConfigurationError(
                "a stream needs at least one task and a process below their number, got"
                f" {size=}, {process=}, {processes=}."
            )
        self._size, self._key, self._is_playable = size, f"toolgym-{name}-{seed}", is_playable
        self._process, self._processes = process, processes
        self._walked = 0
        self._order: tuple[int, list[int]] = (-1, [])  # number of a round, its positions

    def take(self, count: int) -> list[int]:
        """The positions of the next `count` playable tasks of this process.

        Raises:
            ConfigurationError: A whole round has no playable task.
        """
        found, refused = list[int](), 0
        while len(found) < count * self._processes:
            position = self._position(self._walked)
            self._walked += 1
            if self._is_playable(position):
                found.append(position)
                refused = 0
            else:
                refused += 1
            if refused == 2 * self._size - 1:  # spans a whole round, wherever it began
                raise ConfigurationError(f"none of the {self._size:,} tasks can be played.")
        return found[self._process :: self._processes]

    def _position(self, number: int) -> int:
        turn, place = divmod(number, self._size)
        if self._order[0] != turn:
            order = list(range(self._size))
            random.Random(f"{self._key}-{turn}").shuffle(order)
            self._order = (turn, order)
        return self._order[1][place]

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint; the same for all processes."""
        return {"walked": self._walked, "size": self._size, "key": self._key}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; the number of processes may have changed.

        Raises:
            ConfigurationError: It is the state of other tasks or of another seed.
        """
        if (state["size"], state["key"]) != (self._size, self._key):
            raise ConfigurationError(
                f"the checkpoint is of {state['size']} tasks ({state['key']}), here are"
                f" {self._size} ({self._key}): resume with the same tasks and seed."
            )
        self._walked = int(state["walked"])


class Filled(NamedTuple, Generic[G]):
    """The groups of one step of this process.

    Attributes:
        live: The groups to learn from, at most one for each place.
        dead: Groups for the places that no live one was found for; to be left out of the loss.
        drawn: All groups, in the order in which they were drawn.
        metrics: By the names of `toolgym.runs.metrics`; all but `sampling_rounds` are counts of
            this process, to be summed over processes.
    """

    live: list[G]
    dead: list[G]
    drawn: list[G]
    metrics: dict[str, float]


Tally = tuple[int, int, int]
"""Empty places, live groups and drawn groups of one process."""


def fill(
    places: int,
    max_draws: float,
    draw: Callable[[int], Sequence[G]],
    outcomes: Callable[[G], Sequence[Outcome | None]],
    exchange: Callable[[Tally], Sequence[Sequence[int]]] = lambda tally: [tally],
) -> Filled[G]:
    """Draw groups until every place of a step has a live one, or the cap is reached.

    Args:
        places: Groups that this process learns from in the step.
        max_draws: Most groups that it draws, as a multiple of `places`. 1 replaces no dead group;
            3 is enough for groups of 8 at a success rate of 5 %.
        draw: Plays a number of further groups; first as many as there are places.
        outcomes: The outcomes of a group's members; None is a member that does not count.
        exchange: Gathers the tallies of all processes, in the same order on each.

    Raises:
        ConfigurationError: There is no place; a group must not be split over processes.
    """
    if places < 1:
        raise ConfigurationError(
            "dynamic sampling needs at least one whole group per process: make the rollouts of a"
            " process and step a multiple of the group size."
        )
    drawn, live, dead, rounds, count = list[G](), list[G](), list[G](), 0, places
    while count:
        for group in draw(count):
            drawn.append(group)
            (dead if is_dead(outcomes(group)) else live).append(group)
        rounds += 1
        count = next_draw(
            places, max_draws, exchange((max(0, places - len(live)), len(live), len(drawn)))
        )
    kept = live[:places]
    metrics = {
        "drawn_groups": float(len(drawn)),
        "dropped_groups": float(len(dead)),
        "surplus_groups": float(len(live) - len(kept)),
        "masked_groups": float(places - len(kept)),
        "sampling_rounds": float(rounds),
    }
    return Filled(kept, dead[: places - len(kept)], drawn, metrics)


def next_draw(places: int, max_draws: float, tallies: Sequence[Sequence[int]]) -> int:
    """The number of groups that every process draws next; 0 when the step is to begin.

    As many as the emptiest process needs at the share of live groups seen so far, but no more than
    a step has places, since that many are known to fit into memory.
    """
    missing, live, drawn = zip(*tallies, strict=True)
    share = (sum(live) + 1) / (sum(drawn) + 2)  # never 0: a first draw may have been unlucky
    needed: int = math.ceil(max(missing) / share)
    left: int = math.floor(places * max_draws) - max(drawn)
    return max(0, min(needed, places, left))
