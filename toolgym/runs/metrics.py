"""The one vocabulary of `metrics.jsonl`: what a number is called, its unit, and what it means.

Both trainers write these keys and no others, the guards read them, the report draws most of them
with these sentences, and the page about metrics is checked against them. A share is between 0 and
1. What has nothing to be a share of is nan in memory and left out of the file; only where `breaks`
is set is a number that is not finite a sign that something broke.

A key of phase `grpo` describes one optimizer step: first the rollouts that the step learns from,
sampled by the weights as they were before it, then the update itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

Unit = Literal["share", "score", "nats", "tokens", "count", "number", "seconds", "MiB"]
Source = Literal["rollouts", "sampling", "update", "guards", "evaluation", "clock"]


@dataclass(frozen=True)
class Metric:
    """One key of `metrics.jsonl`.

    Attributes:
        key: Its name.
        unit: Of its values.
        source: What it describes.
        meaning: One sentence, without the full stop.
        breaks: nan or infinity means a breakdown, not that there was nothing to measure.
        phases: Whose records have it.
    """

    key: str
    unit: Unit
    source: Source
    meaning: str
    breaks: bool
    phases: tuple[str, ...]


_MEANINGS: Final[dict[Source, dict[tuple[str, Unit], str]]] = {
    "rollouts": {
        ("reward", "score"): "mean episode score of the step's rollouts, as they were trained on",
        ("reward_std", "score"): "mean over groups of the sample standard deviation of their"
        " rewards",
        ("reward_max", "score"): "the best reward of the step",
        ("dead_groups", "share"): "groups whose scored members all have one outcome (correct,"
        " progress bin), or with fewer than two scored members: such a group teaches the cost of a"
        " call more or less",
        ("zero_variance_groups", "share"): "groups whose rewards are all equal, or with fewer than"
        " two scored members; their gradient is zero",
        ("accuracy", "share"): "correct rollouts, as they were sampled on training tasks",
        ("answered", "share"): "rollouts that ended with an answer; a fall means that the policy"
        " learns to stop",
        ("refused_answerable", "share"): "rollouts that said that there is no answer where there is"
        " one; only where questions may have none",
        ("answered_unanswerable", "share"): "rollouts that gave an answer where there is none; only"
        " where questions may have none",
        ("validity", "share"): "the model's turns in which every call was bound; a turn that stops"
        " early, without a call, counts as not valid",
        ("turns", "count"): "the model's turns that `validity` is a share of",
        ("repairs_per_call", "number"): "repairs divided by calls; it falls as calls become clean",
        ("tool_failures", "share"): "calls that ended in an error observation",
        ("rollouts", "count"): "rollouts played for the step, refills included",
        ("faults", "count"): "rollouts left out because the environment failed",
        ("deadlines", "count"): "calls that time or memory ended",
        ("completion_length", "tokens"): "mean tokens that the model wrote in a rollout, results"
        " of tools not counted",
        ("clipped", "share"): "rollouts that were cut off inside a turn",
        ("unfinished", "share"): "rollouts that ran out of tokens or turns before their episode"
        " was over",
    },
    "sampling": {
        ("drawn_groups", "count"): "groups played for the step, refills included",
        ("dropped_groups", "count"): "groups dead, or left out of the loss whole",
        ("surplus_groups", "count"): "live groups that found no place in the step",
        ("masked_groups", "count"): "places of the step that no live group filled within the cap",
        ("sampling_rounds", "count"): "rounds of sampling that the step took, the first included",
    },
    "update": {
        ("loss", "number"): "what was minimized; in the warm-up, cross-entropy on demonstrations"
        " in nats per token",
        ("grad_norm", "number"): "before clipping; at 0 the step taught nothing",
        ("learning_rate", "number"): "of this step",
        ("entropy", "nats"): "mean over the tokens that the model wrote; what is healthy depends"
        " on model and task, so the guards compare with the first steps",
        (
            "kl",
            "nats",
        ): "divergence of the policy from its reference, where there is one, per token",
        ("policy_loss", "number"): "the surrogate's part of the loss",
        ("ratio", "number"): "mean over tokens of the importance ratio to the policy that sampled"
        " them: 1 where each batch is trained on once, by the weights that played it",
        ("clip_low", "share"): "tokens held at the lower bound of the ratio",
        ("clip_high", "share"): "tokens held at the upper bound of the ratio",
        ("clip_dual", "share"): "tokens of negative advantage held at their own bound",
        ("log_ratio_limited", "share"): "tokens whose log-ratio was clamped",
        ("learnt_tokens", "tokens"): "tokens that the loss was taken over",
        ("nonfinite_gradients", "count"): "parameters whose gradient has a nan or infinity",
        ("nonfinite_weights", "count"): "parameters that have a nan or infinity",
    },
    "guards": {
        ("guard_severity", "count"): "0 ok, 1 warn, 2 skip, 3 lower_lr, 4 roll_back, 5 stop",
        ("updates", "count"): "updates made since the run began",
        ("skipped_updates", "count"): "updates left out since the run began",
        ("collapse_share", "share"): "updates at once followed by a fall of `validity` to half or"
        " less, among those since the run began whose validity before and after is known",
        ("roll_backs", "count"): "returns to a checkpoint since the run began",
        ("learning_rate_scale", "number"): "what the guards multiply the learning rate by",
    },
    "evaluation": {
        ("held_out_accuracy", "share"): "selection tasks that the model solves greedily, with the"
        " weights as they are after this step; none is trained on",
        ("held_out_low", "share"): "the lower end of the 95 % Wilson interval of"
        " `held_out_accuracy`",
        ("held_out_high", "share"): "its upper end",
        ("held_out_answered", "share"): "selection tasks that it answers",
        ("held_out_validity", "share"): "its turns on them in which every call was bound",
        ("held_out_episodes", "count"): "selection tasks that were scored",
    },
    "clock": {
        ("evaluation_seconds", "seconds"): "the time of an evaluation on selection tasks",
        ("rollout_seconds", "seconds"): "the step's time for its rollouts",
        ("update_seconds", "seconds"): "the step's time for its update",
        ("peak_memory", "MiB"): "the most that the process, or its GPU, has held",
    },
}
_BREAKS: Final = ("loss", "grad_norm", "entropy", "kl", "policy_loss", "ratio")
_BOTH_PHASES: Final = ("loss", "grad_norm", "learning_rate")
_SELECTION: Final = ("selection", "warmup-selection")

METRICS: Final[dict[str, Metric]] = {
    key: Metric(
        key,
        unit,
        source,
        meaning,
        breaks=key in _BREAKS,
        phases=_SELECTION
        if source == "evaluation" or key == "evaluation_seconds"
        else ("warmup", "grpo")
        if key in _BOTH_PHASES
        else ("grpo",),
    )
    for source, meanings in _MEANINGS.items()
    for (key, unit), meaning in meanings.items()
}
"""All of them by key, in the order in which a page shows them."""


def broken(metrics: Mapping[str, Any]) -> list[str]:
    """The keys whose value is not finite although it always ought to be, in order.

    >>> broken({"loss": float("nan"), "validity": float("nan"), "kl": 0.1})
    ['loss']
    """
    return [
        key
        for key, value in metrics.items()
        if key in METRICS and METRICS[key].breaks and is_number(value) and not math.isfinite(value)
    ]


def finite(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The numbers that exist, as floats.

    >>> finite({"loss": 1, "kl": None, "validity": float("nan")})
    {'loss': 1.0}
    """
    return {
        key: float(value)
        for key, value in metrics.items()
        if is_number(value) and math.isfinite(value)
    }


def recorded(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The numbers that a step's record has: those that exist, and what broke as it is.

    >>> recorded({"loss": float("nan"), "validity": float("nan"), "kl": None, "reward": 1})
    {'loss': nan, 'reward': 1.0}
    """
    return {
        key: float(value)
        for key, value in metrics.items()
        if is_number(value) and (math.isfinite(value) or (key in METRICS and METRICS[key].breaks))
    }


def is_number(value: object) -> bool:
    """A Python number that is no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)
