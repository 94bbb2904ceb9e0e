"""What a batch of rollouts says of the run, as plain numbers.

TRL reports a reward and its spread over the batch. What tells whether anything can be learnt is the
group: how many have one outcome throughout, whatever their costs. A group is dead when all its
scored members agree in (correct, progress bin), or fewer than two are scored.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolgym.env import ToolEnv
from toolgym.episode import Outcome

_SAME = 1e-8
_NOTHING = Outcome(correct=False, progress_bin=0)
PREFIX = "toolgym/"
_FROM_TRL = {
    "loss": "loss",
    "grad_norm": "grad_norm",
    "learning_rate": "learning_rate",
    "entropy": "entropy",
    "kl": "kl",
    "completions/mean_length": "completion_length",
    "completions/clipped_ratio": "clipped",
}


@dataclass(frozen=True)
class Figures:
    """One finished rollout, small enough to be gathered across processes.

    Attributes:
        scored: False where a fault left it out; then nothing else counts.
        turns: The model's turns. One that ended the rollout without a call, before the episode was
            over, is among them.
        valid_turns: Those in which every call bound.
        calls: Calls that were run or refused; `repairs` and `failures` are counted over them.
    """

    scored: bool
    outcome: Outcome = _NOTHING
    answered: bool = False
    turns: int = 0
    valid_turns: int = 0
    calls: int = 0
    repairs: int = 0
    failures: int = 0

    @classmethod
    def of(cls, env: ToolEnv[Any], ended_early: bool) -> Figures:
        """Read them off a closed episode.

        Args:
            env: The environment.
            ended_early: The model stopped before the episode was over.
        """
        episode = env.episode
        if episode.ledger.faulted:
            return cls(scored=False)
        calls = [call for turn in episode.turns for call in turn.calls]
        return cls(
            scored=True,
            outcome=episode.outcome,
            answered=episode.ledger.answered,
            turns=len(episode.turns) + ended_early,
            valid_turns=sum(turn.valid for turn in episode.turns),
            calls=len(calls),
            repairs=sum(len(call.repairs) for call in calls),
            failures=sum(error is not None for turn in episode.turns for error in turn.errors),
        )


def batch_metrics(
    figures: Sequence[Figures], rewards: Sequence[float], group_size: int
) -> dict[str, float]:
    """The numbers of one generation batch.

    Args:
        figures: One per rollout, groups after one another.
        rewards: What each was trained on; nan where unscored.
        group_size: Members of a group.

    Returns:
        `reward`, `reward_std` (mean of the groups' sample standard deviations), `dead_groups`,
        `zero_variance_groups`, `accuracy`, `answered`, `validity`, `repairs_per_call`,
        `tool_failures` (share of calls that ended in an error), `faults`. What has nothing to be a
        share of is nan.
    """
    scored = [figure for figure in figures if figure.scored]
    known = [reward for reward in rewards if not math.isnan(reward)]
    starts = range(0, len(figures), group_size)
    members = [[f for f in figures[i : i + group_size] if f.scored] for i in starts]
    earned = [[r for r in rewards[i : i + group_size] if not math.isnan(r)] for i in starts]
    calls = sum(figure.calls for figure in scored)
    turns = sum(figure.turns for figure in scored)
    return {
        "reward": _share(math.fsum(known), len(known)),
        "reward_std": _mean([statistics.stdev(group) for group in earned if len(group) > 1]),
        "dead_groups": _mean([len({f.outcome for f in group}) < 2 for group in members]),
        "zero_variance_groups": _mean([_spread(group) < _SAME for group in earned]),
        "accuracy": _mean([figure.outcome.correct for figure in scored]),
        "answered": _mean([figure.answered for figure in scored]),
        "validity": _share(sum(figure.valid_turns for figure in scored), turns),
        "repairs_per_call": _share(sum(figure.repairs for figure in scored), calls),
        "tool_failures": _share(sum(figure.failures for figure in scored), calls),
        "faults": float(len(figures) - len(scored)),
    }


def step_metrics(logs: Mapping[str, Any]) -> dict[str, float]:
    """Our names for what TRL logged of one optimizer step; what is missing or nan is left out."""
    named = {ours: logs.get(theirs) for theirs, ours in _FROM_TRL.items()}
    named |= {key.removeprefix(PREFIX): logs[key] for key in logs if key.startswith(PREFIX)}
    numbers = {key: value for key, value in named.items() if isinstance(value, int | float)}
    return {key: float(value) for key, value in numbers.items() if math.isfinite(value)}


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values) if len(values) > 1 else 0.0


def _mean(values: Sequence[float]) -> float:
    return _share(math.fsum(values), len(values))


def _share(part: float, whole: int) -> float:
    return part / whole if whole else math.nan
