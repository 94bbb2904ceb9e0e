"""Gathering what one batch learns from: tasks are drawn, played, and, if asked for, replaced.

Without dynamic sampling the groups are those that were drawn. With it, dead groups give way to
others until the batch is full or the cap is reached
(`adapters.training.algorithms.dynamic_sampling`); what could not be filled are dead groups that
take no part in the loss. The numbers of a batch describe everything that was drawn, since only that
says how good the policy is: of the groups that were kept, half the rollouts are right by choice.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from adapters.reference.config import ReferenceConfig
from adapters.reference.distributed import Processes
from adapters.reference.generation import Player
from adapters.reference.rollout import Ending, Request, Rollout
from adapters.training.algorithms.dynamic_sampling import DynamicSampling, TaskStream
from adapters.training.algorithms.rollout_metrics import Figures, batch_metrics
from toolgym.episode import Outcome

_Group = list[Rollout]


class Gathered(NamedTuple):
    """A batch.

    Attributes:
        rollouts: Those in it that are this process' own, group after group.
        counts: Whether the loss is taken over each.
        drawn: All that this process played for it.
        metrics: Numbers of the rollouts that all processes drew, and of the sampling.
    """

    rollouts: list[Rollout]
    counts: list[bool]
    drawn: list[Rollout]
    metrics: dict[str, float]


class Gatherer:
    """Fills batches.

    Args:
        player: Plays.
        task_ids: What tasks are drawn from.
        config: Sizes, seed, sampling.
        processes: Each gathers its share.
    """

    def __init__(
        self,
        player: Player,
        task_ids: Sequence[str],
        config: ReferenceConfig,
        processes: Processes,
    ) -> None:
        self._player, self._ids, self._config = player, list(task_ids), config
        self._processes = processes
        self._places = processes.share_of(config.prompts)
        self._tasks, refills = (
            TaskStream(
                len(self._ids),
                seed=config.seed,
                name=name,
                process=processes.rank,
                processes=processes.size,
            )
            for name in ("tasks", "refill")
        )
        self._sampling = (
            DynamicSampling(config.sampling, refills) if config.sampling is not None else None
        )

    def gather(self, step: int) -> Gathered:
        """Play what the batch of a step needs.

        Args:
            step: The first step that learns from it; it names the random numbers.
        """
        first = self._play(step, self._tasks.take(self._places), 0)
        if self._sampling is None:
            return self._put_together(first, [], first, {})
        filling = self._sampling.begin(self._places)
        kept, spares, drawn, fresh = list[_Group](), list[_Group](), list[_Group](), first
        while fresh:
            choice = filling.offer([self._outcomes(group) for group in fresh])
            kept += [fresh[place] for place in choice.keep]
            spares += [fresh[place] for place in choice.spare]
            drawn += fresh
            more = self._sampling.refill(
                filling.next_draw(self._processes.gather([tuple(filling.tally)]))
            )
            fresh = self._play(step, more, len(drawn)) if more else []
        self._sampling.note(self._processes.gather([[r.outcome for r in group] for group in drawn]))
        numbers = self._processes.sum_of(filling.metrics())
        numbers["sampling_rounds"] /= self._processes.size  # which all draw equally often
        return self._put_together(kept, spares[: filling.missing], drawn, numbers)

    def _play(self, step: int, tasks: Sequence[int], begun: int) -> list[_Group]:
        """One group for each task; `begun` groups of the step were played before."""
        size, seed = self._config.group_size, self._config.seed
        numbers = [
            self._processes.size * place + self._processes.rank
            for place in range(begun, begun + len(tasks))
        ]
        played = self._player.play(
            [
                Request(self._ids[task], group, f"{seed}-{step}-{group}-{member}")
                for group, task in zip(numbers, tasks, strict=True)
                for member in range(size)
            ]
        )
        if self._config.control is not None:
            played = _shuffled(played, f"toolgym-control-{seed}-{step}-{begun}")
        return [played[start : start + size] for start in range(0, len(played), size)]

    def _put_together(
        self,
        kept: Sequence[_Group],
        masked: Sequence[_Group],
        drawn: Sequence[_Group],
        sampling: dict[str, float],
    ) -> Gathered:
        played = [rollout for group in drawn for rollout in group]
        told = [(figures_of(rollout), rollout.reward, rollout.request.group) for rollout in played]
        figures, rewards, groups = zip(*self._processes.gather(told), strict=True)
        numbers = batch_metrics(figures, rewards, groups)
        counts = [self._counts(rollout) for group in kept for rollout in group]
        counts += [False for group in masked for _ in group]
        rollouts = [rollout for group in (*kept, *masked) for rollout in group]
        return Gathered(rollouts, counts, played, numbers | sampling)

    def _outcomes(self, group: _Group) -> list[Outcome | None]:
        """Of its members; None where the loss leaves all of them out, so that they are replaced."""
        teaches = any(map(self._counts, group))
        return [rollout.outcome if teaches else None for rollout in group]

    def _counts(self, rollout: Rollout) -> bool:
        may_learn = self._config.learn_from_unfinished or not rollout.is_unfinished
        return rollout.scored and may_learn

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps, as JSON can hold it."""
        sampling = self._sampling.state_dict() if self._sampling is not None else None
        return {"tasks": self._tasks.state_dict(), "sampling": sampling}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state.

        Raises:
            ConfigurationError: It is the state of other tasks or of another seed.
        """
        self._tasks.load_state_dict(state["tasks"])
        if self._sampling is not None and state["sampling"] is not None:
            self._sampling.load_state_dict(state["sampling"])


def figures_of(rollout: Rollout) -> Figures:
    """The figures of a rollout."""
    return Figures.of(
        rollout.episode,
        written=rollout.sampled,
        clipped=rollout.ending is Ending.CUT_OFF,
        unfinished=rollout.is_unfinished,
    )


def _shuffled(rollouts: Sequence[Rollout], name: str) -> list[Rollout]:
    """Each scored rollout with the reward of a random one; unscored ones keep theirs."""
    rewards = [rollout.reward for rollout in rollouts if rollout.scored]
    random.Random(name).shuffle(rewards)
    drawn = iter(rewards)
    return [
        dataclasses.replace(rollout, reward=next(drawn) if rollout.scored else math.nan)
        for rollout in rollouts
    ]
