"""The numbers of a step between TRL's log and ours.

What the rollouts of a step say of the run is taken by `adapters.training.figures`, as for every
trainer. TRL counts groups with equal rewards only, and under one of its settings counts them
wrongly, so its own numbers of rewards are passed over; those of the update keep their values and
get our names. Numbers of a step that was filled up with further draws are over all that was drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.training.figures import Figures
from adapters.training.metric_names import recorded
from adapters.trl.endings import End
from adapters.trl.factory import RolloutEnvironment
from toolgym.rollout import EpisodeRecord

PREFIX: Final = "toolgym/"
_FROM_TRL: Final = {
    "loss": "loss",
    "grad_norm": "grad_norm",
    "learning_rate": "learning_rate",
    "entropy": "entropy",
    "kl": "kl",
    "policy_loss": "policy_loss",
    "clip_ratio/low_mean": "clip_low",
    "clip_ratio/high_mean": "clip_high",
    "cispo_clip_ratio": "clip_high",
    "completions/mean_length": "completion_length",
    "completions/clipped_ratio": "clipped",
}


def figures_of(environment: RolloutEnvironment, stopped_early: bool, end: End) -> Figures:
    """What a rollout says of the run, once its reward was asked for.

    Args:
        environment: It.
        stopped_early: The model stopped before the episode was over.
        end: How it ended.
    """
    played = environment._played()
    return Figures.of(
        EpisodeRecord.of(played.episode, environment._env_id) if played is not None else None,
        written=end.tokens,
        stopped_early=stopped_early,
        clipped=end.clipped,
        unfinished=end.unfinished,
    )


def step_metrics(logs: Mapping[str, Any]) -> dict[str, float]:
    """Our names for what TRL logged of one optimizer step.

    What is missing or has nothing to be a share of is left out; what broke stays as it is.
    """
    named = {ours: logs[theirs] for theirs, ours in _FROM_TRL.items() if theirs in logs}
    named |= {key.removeprefix(PREFIX): logs[key] for key in logs if key.startswith(PREFIX)}
    return recorded(named)
