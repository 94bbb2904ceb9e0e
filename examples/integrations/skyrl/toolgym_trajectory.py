"""One trajectory of a toolgym environment for SkyRL: all of the recipe that needs no SkyRL.

The whole message of the model goes to the environment, which reads the calls, repairs what has one
plain meaning, and answers mistakes with a call that works. SkyRL shows no tools to the chat
template, so they are told in words in the system message; results are messages of the user.

An exception would end the generation of a whole batch, so a fault of the machine ends the
trajectory instead, and `metrics` says `scored` 0. What SkyRL then makes of it is put right by
`settle` and `balance`: the tokens are not trained on, and the reward is the mean of the others of
its group, which moves no baseline.
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
"""The stop reason of a trajectory that is left out."""
GRID: Final = 2**20
"""Scores are rounded to multiples of one part in so many. SkyRL drops a group whose scores have no
spread at all, and the mean of equal floats is often another one: `numpy.std([0.1] * 3)` is not 0.
Sums of such multiples are exact."""
_logger = logging.getLogger(__name__)


class Trajectory:
    """The episode of one row that `toolgym export rows --for skyrl` wrote.

    Args:
        extras: The columns of the row, and `max_turns`, which SkyRL adds.

    Raises:
        ConfigurationError: The row is none of those.
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
        """Begin the episode: the chat before the first message; empty after a fault.

        Raises:
            ConfigurationError: The environment cannot be made, or SkyRL allows one turn only.
        """
        try:
            env = registration.make(self.env_id, **self.env_kwargs)
            # A message without an answer spends a call at least, so turns never end before calls.
            if self.most is not None and self.most < env.step_limit:
                raise ConfigurationError(
                    f"generator.max_turns is {self.most}, and {self.env_id} allows"
                    f" {env.step_limit} calls: set it to {env.step_limit} at least, or the"
                    " environment's step_limit lower (toolgym export rows --set step_limit=N)."
                )
            # SkyRL tells an environment neither step nor group, so its draws are fresh ones.
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
        """Give the environment a whole message.

        Returns:
            The observation, what the message changed of the score, and whether it was the last.
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
        """Close the episode: its figures; after a fault `scored`, 0, and no other."""
        if self.env is None or self.has_fault:
            return {"scored": 0.0}
        return EpisodeRecord.of(self.env.episode, self.env_id).figures()

    def close(self) -> None:
        """Close the environment."""
        if self.env is not None:
            self.env.close()

    def _note(self, fault: EnvironmentFault) -> None:
        self.has_fault = True
        _logger.error("a trajectory of task %s is left out: %s", self.task_id, fault)


def mean_metrics(metrics: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each figure over the trajectories that have it.

    >>> mean_metrics([{"scored": 1.0, "correct": 1.0}, {"scored": 0.0}])
    {'correct': 1.0, 'scored': 0.5}
    """
    values: dict[str, list[float]] = defaultdict(list)
    for each in metrics:
        for name, value in each.items():
            values[name].append(value)
    return {name: math.fsum(values[name]) / len(values[name]) for name in sorted(values)}


def settle(trajectory: Any) -> Any:
    """A trajectory of SkyRL, with its score as the reward of the last token.

    The rewards of an episode add up to its score, unless a limit of SkyRL on tokens cut it off: it
    is closed now, without an answer, and what that costs belongs to the score. After a fault no
    token is trained on, and the stop reason says why.

    Args:
        trajectory: A `TrajectoryOutput`; one of another environment stays as it is.
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
    """The rewards of a batch, in which one that is left out earned the mean of its group.

    So the mean of the group is that of the others. With a spread that divides advantages
    (`grpo_norm_by_std`), or a mean of the others only (RLOO), it is still a neutral reward, but not
    an exact absence.

    Args:
        rewards: Of each token, for each trajectory.
        stop_reasons: `FAULT` for what is left out.
        groups: The task of each.

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
