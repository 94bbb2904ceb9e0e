"""Rollouts: the tokens of one finished episode, their mask and log-probabilities, and rewards.

    prompt            | completion
    system, question  | turn, results, turn, results, ..., turn
                      | 1111  0000000  1111  0000000  ...  1111      mask: 1 = sampled by the policy

The tokens are those that the model read and wrote, never decoded and encoded again, and every
sampled one has the log-probability that it was sampled with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from toolgym.episode import Outcome
from toolgym.rollout import EpisodeRecord


class Ending(StrEnum):
    """Why a rollout ended."""

    ANSWERED = "answered"
    """The terminal call was made."""
    OUT_OF_CALLS = "out_of_calls"
    """The environment's budget of calls was spent."""
    CUT_OFF = "cut_off"
    """The tokens ran out inside a turn."""
    NO_ROOM = "no_room"
    """The tokens ran out between turns: what came back did not fit any more."""
    FAULT = "fault"
    """The environment failed; the rollout is unscored."""


@dataclass(frozen=True)
class Request:
    """The request for one rollout.

    Attributes:
        task_id: A task of the environment.
        group: Rollouts with the same number form one group.
        stream: The name of the random numbers; the same name on the same task samples the same.
    """

    task_id: str
    group: int
    stream: str

    @property
    def name(self) -> str:
        """The name that seeds its random numbers, the policy's and the environment's."""
        return f"{self.stream}-{self.task_id}"


@dataclass(frozen=True)
class Rollout:
    """The rollout of a request.

    Attributes:
        request: The request.
        prompt: Tokens before the first turn; empty where a fault let no episode begin.
        completion: Tokens after it: turns, and what came back between them.
        mask: For each token of the completion, 1 where the policy sampled it, else 0.
        log_probs: For each, the log-probability it was sampled with; 0.0 where it was not sampled.
        turns: First token of each turn in the completion, and the one after its last.
        turn_rewards: What each turn changed of the score; what closing the episode changed belongs
            to the last. They sum to the reward.
        reward: The episode's score; nan where a fault left it unscored.
        ending: Why it ended.
        episode: The transcript; None where no episode began.
        fault: What failed in the environment; empty where nothing did.
    """

    request: Request
    prompt: list[int]
    completion: list[int]
    mask: list[int]
    log_probs: list[float]
    turns: list[tuple[int, int]]
    turn_rewards: list[float]
    reward: float
    ending: Ending
    episode: EpisodeRecord | None
    fault: str = ""

    @property
    def scored(self) -> bool:
        """Whether it has a reward; a fault leaves none."""
        return math.isfinite(self.reward)

    @property
    def truncated(self) -> bool:
        """Whether it ended without an answer: out of tokens or out of calls."""
        return self.is_unfinished or self.ending is Ending.OUT_OF_CALLS

    @property
    def is_unfinished(self) -> bool:
        """Whether the tokens ran out before the episode was over."""
        return self.ending in (Ending.CUT_OFF, Ending.NO_ROOM)

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of its episode; None where it is unscored."""
        return self.episode.outcome if self.episode is not None and self.scored else None

    @property
    def sampled(self) -> int:
        """The number of tokens that the policy sampled."""
        return sum(self.mask)
