"""Metrics of a batch of rollouts for all trainers: rewards, groups, validity and lengths.

The group metrics (see the module `groups`) show whether the batch has a learning signal. The shares
of valid, repaired and failed calls show whether the policy is healthy. Metric names are defined in
`toolgym.runs.metrics`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from adapters.training.algorithms.groups import by_group, dead_share, equal_rewards_share, mean
from toolgym.episode import Outcome
from toolgym.rewards import MISTAKES
from toolgym.rollout import EpisodeRecord

_NOTHING = Outcome(correct=False, progress_bin=0)
_LIMITS = ("too_many_steps", "too_much_memory")  # error codes of calls that exceeded a limit


@dataclass(frozen=True)
class Figures:
    """The counts of one finished rollout, which are gathered across processes.

    Attributes:
        scored: False if a fault made the rollout unscored; in that case, only `written`, `clipped`
            and `unfinished` are used.
        outcome: Correctness and progress bin.
        answered: Whether the rollout ended with an answer.
        turns: Number of turns of the model.
        valid_turns: Number of turns in which the arguments of every call were bound to a tool.
        calls: Number of calls, including rejected ones.
        repairs: Number of repairs of calls.
        failures: Number of calls that ended in an error.
        over_limit: Number of calls that exceeded a limit on steps or memory.
        written: Number of tokens that the model generated.
        clipped: Whether the rollout was cut off in the middle of a turn.
        unfinished: Whether the rollout ran out of tokens or turns before the episode was over.
        mistake: The `mistake` of the episode record; None if every question has an answer.
    """

    scored: bool
    outcome: Outcome = _NOTHING
    answered: bool = False
    turns: int = 0
    valid_turns: int = 0
    calls: int = 0
    repairs: int = 0
    failures: int = 0
    over_limit: int = 0
    written: int = 0
    clipped: bool = False
    unfinished: bool = False
    mistake: str | None = None

    @classmethod
    def of(
        cls,
        episode: EpisodeRecord | None,
        *,
        written: int = 0,
        clipped: bool = False,
        unfinished: bool = False,
    ) -> Figures:
        """Return the counts of a closed episode.

        Args:
            episode: Record of the episode; None if the episode could not begin.
            written: Number of tokens that the model generated.
            clipped: Whether the rollout was cut off in the middle of a turn.
            unfinished: Whether the rollout ran out of tokens or turns.
        """
        outcome = episode.outcome if episode is not None else None
        if episode is None or outcome is None:
            return cls(False, written=written, clipped=clipped, unfinished=unfinished)
        turns = episode.turns
        errors = [code for turn in turns if turn["calls"] for code in turn["errors"]]
        return cls(
            scored=True,
            outcome=outcome,
            answered=episode.answered,
            turns=len(turns),
            valid_turns=sum(turn["valid"] for turn in turns),
            calls=sum(len(turn["calls"]) for turn in turns),
            repairs=sum(len(turn["repairs"]) for turn in turns),
            failures=len(errors),
            over_limit=sum(code in _LIMITS for code in errors),
            written=written,
            clipped=clipped,
            unfinished=unfinished,
            mistake=episode.mistake,
        )


def batch_metrics(
    figures: Sequence[Figures], rewards: Sequence[float], groups: Sequence[int]
) -> dict[str, float]:
    """Compute the metrics of one batch of rollouts.

    Args:
        figures: The counts of each rollout.
        rewards: The rewards used for training; nan if unscored.
        groups: Group number of each rollout; members need not be adjacent.

    Returns:
        The metrics that `toolgym.runs.metrics` lists with the source `rollouts`. A share or mean is
        nan if there are no values.
    """
    scored = [figure for figure in figures if figure.scored]
    finite = [reward for reward in rewards if math.isfinite(reward)]
    outcomes = [figure.outcome if figure.scored else None for figure in figures]
    of_groups = [list(filter(math.isfinite, group)) for group in by_group(rewards, groups).values()]
    mistakes = [figure.mistake for figure in scored if figure.mistake is not None]

    def total(name: str) -> float:
        return float(sum(getattr(figure, name) for figure in scored))

    turns, calls = total("turns"), total("calls")
    return {
        "reward": mean(finite),
        "reward_std": mean([statistics.stdev(group) for group in of_groups if len(group) > 1]),
        "reward_max": max(finite, default=math.nan),
        "dead_groups": dead_share(outcomes, groups),
        "zero_variance_groups": equal_rewards_share(rewards, groups),
        "accuracy": mean([figure.outcome.correct for figure in scored]),
        "answered": mean([figure.answered for figure in scored]),
        **{mistake: mean([each == mistake for each in mistakes]) for mistake in MISTAKES},
        "validity": total("valid_turns") / turns if turns else math.nan,
        "turns": turns,
        "repairs_per_call": total("repairs") / calls if calls else math.nan,
        "tool_failures": total("failures") / calls if calls else math.nan,
        "rollouts": float(len(figures)),
        "faults": float(len(figures) - len(scored)),
        "over_limit": total("over_limit"),
        "completion_length": mean([figure.written for figure in figures]),
        "clipped": mean([figure.clipped for figure in figures]),
        "unfinished": mean([figure.unfinished for figure in figures]),
    }
