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
from adapters.training.algorithms.dynamic_sampling import DynamicSampling, TaskStream
from adapters.training.algorithms.rollout_metrics import Figures, batch_metrics
from toolgym.episode import Outcome

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
        task_ids: The tasks to draw from.
        config: Sizes, seed, sampling.
        processes: Each plays its share of the groups.
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
        self._groups_per_batch = processes.share_of(config.prompts)
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

    def sample(self, step: int) -> PlayedBatch:
        """Play the groups of a step's batch.

        Args:
            step: The first step that learns from it; it names the random numbers.
        """
        initial = self._play(step, self._tasks.take(self._groups_per_batch), 0)
        if self._sampling is None:
            return self._batch_of(initial, [], initial, {})
        filling = self._sampling.begin(self._groups_per_batch)
        live, dead_groups, sampled, new = list[_Group](), list[_Group](), list[_Group](), initial
        while new:
            choice = filling.offer([self._outcomes(group) for group in new])
            live += [new[place] for place in choice.keep]
            dead_groups += [new[place] for place in choice.spare]
            sampled += new
            more = self._sampling.refill(
                filling.next_draw(self._processes.gather([tuple(filling.tally)]))
            )
            new = self._play(step, more, len(sampled)) if more else []
        self._sampling.note(
            self._processes.gather([[r.outcome for r in group] for group in sampled])
        )
        metrics = self._processes.sum_of(filling.metrics())
        metrics["sampling_rounds"] /= self._processes.size  # which all draw equally often
        return self._batch_of(live, dead_groups[: filling.missing], sampled, metrics)

    def _play(self, step: int, tasks: Sequence[int], played_before: int) -> list[_Group]:
        """One group for each task, after the groups of the step that were `played_before`."""
        size, seed = self._config.group_size, self._config.seed
        numbers = [
            self._processes.size * place + self._processes.rank
            for place in range(played_before, played_before + len(tasks))
        ]
        played = self._player.play(
            [
                Request(self._ids[task], group, f"{seed}-{step}-{group}-{member}")
                for group, task in zip(numbers, tasks, strict=True)
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
        sampling = self._sampling.state_dict() if self._sampling is not None else None
        return {"tasks": self._tasks.state_dict(), "sampling": sampling}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of `state_dict`.

        Raises:
            ConfigurationError: It is the state of other tasks or of another seed.
        """
        self._tasks.load_state_dict(state["tasks"])
        if self._sampling is not None and state["sampling"] is not None:
            self._sampling.load_state_dict(state["sampling"])


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
