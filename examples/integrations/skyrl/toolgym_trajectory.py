"""One trajectory of a toolgym environment for SkyRL; this module does not import SkyRL.

The environment receives each message of the model unchanged. SkyRL passes no tools to the chat
template, so the system message describes them in words. Results are user messages.

An exception would end the generation of the whole batch. A fault of the machine therefore only
ends its trajectory, with `scored` 0 in `metrics`. `settle` excludes its tokens from the loss, and
`balance` sets its reward to the mean of the others in its group.
"""

import json
import logging
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.messages import Message, system_prompt, tools_in_words
from toolgym.records import EpisodeRecord

FAULT: Final = "environment_fault"
"""The stop reason of a trajectory with a fault."""
GRID: Final = 2**20
"""Scores are rounded to multiples of 1 / GRID, whose sums are exact. SkyRL drops a group only if
the standard deviation of its scores is 0, and `numpy.std([0.1] * 3)` is not 0."""
_logger = logging.getLogger(__name__)


class Trajectory:
    """The episode of one row of `toolgym export rows --for skyrl`.

    Args:
        extras: The columns of the row, and `max_turns`, which SkyRL adds.

    Raises:
        ConfigurationError: The row lacks a column.
    """

    def __init__(self, extras: Mapping[str, Any]) -> None:
        if not {"env_id", "task_id"} <= extras.keys():
            raise ConfigurationError(
                "the row has no env_id and task_id: write the rows with toolgym export rows ENV"
                " --for skyrl."
            )
        self.env_id, self.task_id = str(extras["env_id"]), str(extras["task_id"])
        self.env_kwargs: dict[str, Any] = json.loads(extras.get("env_kwargs") or "{}")
        self.most = extras.get("max_turns")
        self.turns = 0
        self.env: ToolEnv[Any] | None = None
        self.has_fault = False

    def begin(self) -> list[Message]:
        """Begin the episode and return the chat before the first message; empty after a fault.

        Raises:
            ConfigurationError: The environment cannot be created, or SkyRL allows too few turns.
        """
        try:
            env = registration.make(self.env_id, **self.env_kwargs)
            # Every message without an answer uses at least one call.
            if self.most is not None and self.most < env.step_limit:
                raise ConfigurationError(
                    f"generator.max_turns is {self.most}, and {self.env_id} allows"
                    f" {env.step_limit} calls: set it to {env.step_limit} at least, or lower the"
                    " environment's step_limit (toolgym export rows --set step_limit=N)."
                )
            # The draws of the environment are random, because SkyRL passes neither step nor group.
            env.reset(options={"task_id": self.task_id})
        except EnvironmentFault as fault:
            self._note(fault)
            return []
        self.env = env
        return [
            {"role": "system", "content": f"{system_prompt(env)}\n\n{tools_in_words(env.tools)}"},
            {"role": "user", "content": env.user_prompt()},
        ]

    def take(self, text: str) -> tuple[str, float, bool]:
        """Pass a message of the model to the environment.

        Returns:
            The observation, the change of the score, and whether the episode is over.
        """
        self.turns += 1
        if self.env is None or self.has_fault:
            return "", 0.0, True
        try:
            observation, reward, *_ = self.env.step(text)
        except EnvironmentFault as fault:
            self._note(fault)
            return "", 0.0, True
        return observation, reward, self.env.episode.over

    def metrics(self) -> dict[str, float]:
        """Close the episode and return its metrics; after a fault only `scored`, which is 0."""
        if self.env is None or self.has_fault:
            return {"scored": 0.0}
        return EpisodeRecord.of(self.env.episode, self.env_id).figures()

    def close(self) -> None:
        """Close the environment."""
        if self.env is not None:
            self.env.close()

    def _note(self, fault: EnvironmentFault) -> None:
        self.has_fault = True
        _logger.error("a trajectory of task %s is excluded: %s", self.task_id, fault)


def mean_metrics(metrics: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each metric over the trajectories that have it.

    >>> mean_metrics([{"scored": 1.0, "correct": 1.0}, {"scored": 0.0}])
    {'correct': 1.0, 'scored': 0.5}
    """
    values: dict[str, list[float]] = defaultdict(list)
    for each in metrics:
        for name, value in each.items():
            values[name].append(value)
    return {name: math.fsum(values[name]) / len(values[name]) for name in sorted(values)}


def settle(trajectory: Any) -> Any:
    """Set the reward of a trajectory to its score, on the last token.

    An episode that the token limit cut off was closed without an answer, and its score includes the
    cost of that. After a fault the loss mask is 0 and the stop reason is `FAULT`.

    Args:
        trajectory: A `TrajectoryOutput`; those of other environments are unchanged.
    """
    figures = trajectory.env_metrics
    if "scored" not in figures:
        return trajectory
    reward = 0.0
    if figures["scored"]:
        reward = round(figures["score"] * GRID) / GRID
    else:
        trajectory.loss_mask = [0] * len(trajectory.loss_mask)
        trajectory.stop_reason = FAULT
    trajectory.reward = _on_last_token(reward, len(trajectory.response_ids))
    return trajectory


def balance(
    rewards: Sequence[list[float]], stop_reasons: Sequence[str], groups: Sequence[str]
) -> list[list[float]]:
    """Return rewards in which a trajectory with a fault has the mean reward of its group.

    The mean of the group is then that of the others. With `grpo_norm_by_std` or RLOO the trajectory
    still affects the advantages of the others.

    Args:
        rewards: Rewards of the tokens, for each trajectory.
        stop_reasons: Stop reasons; `FAULT` for trajectories with a fault.
        groups: Task of each trajectory.

    >>> balance([[0.0, 1.0], [0.5], [0.0, 0.0]], ["stop", "stop", FAULT], ["a", "a", "a"])
    [[0.0, 1.0], [0.5], [0.0, 0.75]]
    """
    scores: dict[str, list[float]] = defaultdict(list)
    for reward, reason, group in zip(rewards, stop_reasons, groups, strict=True):
        if reason != FAULT:
            scores[group].append(math.fsum(reward))
    balanced = []
    for reward, reason, group in zip(rewards, stop_reasons, groups, strict=True):
        others = scores[group]
        if reason == FAULT and others:
            reward = _on_last_token(math.fsum(others) / len(others), len(reward))
        balanced.append(reward)
    return balanced


def _on_last_token(reward: float, length: int) -> list[float]:
    return [*[0.0] * (length - 1), reward] if length else []
