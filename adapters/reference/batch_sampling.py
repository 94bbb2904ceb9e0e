"""Batch sampling: the tasks and rollouts of one batch, with dynamic sampling of live groups.

Without dynamic sampling the groups are those of the first draw. With it, dead groups give way to
others until the batch is full or the cap is reached
(`adapters.training.algorithms.dynamic_sampling`); what could not be filled are dead groups that
take no part in the loss. The metrics of a batch are over all rollouts played for it, since only
those say how good the policy is: of the groups that were kept, half the rollouts are right by
choice.
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
from adapters.training.algorithms.dynamic_sampling import TaskStream, fill
from adapters.training.algorithms.rollout_metrics import Figures, batch_metrics
from toolgym.episode import Outcome
from toolgym.tasks import Task, TaskSet

_Group = list[Rollout]


class PlayedBatch(NamedTuple):
    """The rollouts of one batch, and the metrics of all that were played for it.

    Attributes:
        rollouts: The rollouts of this process, group after group.
        in_loss: Whether each takes part in the loss.
        sampled: All rollouts that this process played for the batch.
        metrics: Of the rollouts that all processes played, and of the sampling.
    """

    rollouts: list[Rollout]
    in_loss: list[bool]
    sampled: list[Rollout]
    metrics: dict[str, float]


class BatchSampler:
    """The sampler of batches: draws tasks, plays groups, and replaces dead ones.

    Args:
        player: The generator of rollouts.
        tasks: The tasks to draw from; those that cannot be played are passed over.
        config: Sizes, seed, sampling.
        processes: Each plays its share of the groups.
    """

    def __init__(
        self,
        player: Player,
        tasks: TaskSet[Task],
        config: ReferenceConfig,
        processes: Processes,
    ) -> None:
        self._player, self._tasks, self._config = player, tasks, config
        self._processes = processes
        self._groups_per_batch = processes.share_of(config.prompts)
        self._stream = TaskStream(
            len(tasks),
            seed=config.seed,
            process=processes.rank,
            processes=processes.size,
            is_playable=lambda place: tasks.refusal_of(tasks[place]) is None,
        )

    def sample(self, step: int) -> PlayedBatch:
        """Play the groups of a step's batch.

        Args:
            step: The first step that learns from it; it names the random numbers.
        """
        played = 0

        def draw(count: int) -> list[_Group]:
            nonlocal played
            groups = self._play(step, count, played)
            played += count
            return groups

        if self._config.sampling is None:
            groups = draw(self._groups_per_batch)
            return self._batch_of(groups, [], groups, {})
        filled = fill(
            self._groups_per_batch,
            self._config.sampling,
            draw,
            self._outcomes,
            lambda tally: self._processes.gather([tally]),
        )
        metrics = self._processes.sum_of(filled.metrics)
        metrics["sampling_rounds"] /= self._processes.size  # which all draw equally often
        return self._batch_of(filled.live, filled.dead, filled.drawn, metrics)

    def _play(self, step: int, count: int, played_before: int) -> list[_Group]:
        """`count` groups, after the groups of the step that were `played_before`."""
        size, seed = self._config.group_size, self._config.seed
        numbers = [
            self._processes.size * place + self._processes.rank
            for place in range(played_before, played_before + count)
        ]
        played = self._player.play(
            [
                Request(self._tasks[task].id, group, f"{seed}-{step}-{group}-{member}")
                for group, task in zip(numbers, self._stream.take(count), strict=True)
                for member in range(size)
            ]
        )
        if self._config.control is not None:
            played = _shuffle_rewards(played, f"toolgym-control-{seed}-{step}-{played_before}")
        return [played[start : start + size] for start in range(0, len(played), size)]

    def _batch_of(
        self,
        live: Sequence[_Group],
        dead: Sequence[_Group],
        sampled: Sequence[_Group],
        sampling: dict[str, float],
    ) -> PlayedBatch:
        played = [rollout for group in sampled for rollout in group]
        rows = [(figures_of(rollout), rollout.reward, rollout.request.group) for rollout in played]
        figures, rewards, groups = zip(*self._processes.gather(rows), strict=True)
        metrics = batch_metrics(figures, rewards, groups)
        in_loss = [self._is_in_loss(rollout) for group in live for rollout in group]
        in_loss += [False for group in dead for _ in group]
        rollouts = [rollout for group in (*live, *dead) for rollout in group]
        return PlayedBatch(rollouts, in_loss, played, metrics | sampling)

    def _outcomes(self, group: _Group) -> list[Outcome | None]:
        """The outcomes of a group; all None where the loss leaves it out: it is then replaced."""
        teaches = any(map(self._is_in_loss, group))
        return [rollout.outcome if teaches else None for rollout in group]

    def _is_in_loss(self, rollout: Rollout) -> bool:
        may_learn = self._config.learn_from_unfinished or not rollout.is_unfinished
        return rollout.scored and may_learn

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint, as JSON can hold it."""
        return self._stream.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of `state_dict`.

        Raises:
            ConfigurationError: It is the state of other tasks or of another seed.
        """
        self._stream.load_state_dict(state)


def figures_of(rollout: Rollout) -> Figures:
    """The counts of a rollout that batch metrics are computed from."""
    return Figures.of(
        rollout.episode,
        written=rollout.sampled,
        clipped=rollout.ending is Ending.CUT_OFF,
        unfinished=rollout.is_unfinished,
    )


def _shuffle_rewards(rollouts: Sequence[Rollout], name: str) -> list[Rollout]:
    """Each scored rollout with the reward of a random one; unscored ones keep theirs."""
    rewards = [rollout.reward for rollout in rollouts if rollout.scored]
    random.Random(name).shuffle(rewards)
    shuffled = iter(rewards)
    return [
        dataclasses.replace(rollout, reward=next(shuffled) if rollout.scored else math.nan)
        for rollout in rollouts
    ]
