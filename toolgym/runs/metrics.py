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
Source = Literal["rollouts", "sampling", "update", "guards", "clock"]


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
    breaks: bool = False
    phases: tuple[str, ...] = ("grpo",)

    @property
    def repeats(self) -> bool:
        """Two runs of the same settings on one machine agree on it to the last digit."""
        return self.source != "clock"


_BOTH: Final = ("warmup", "grpo")

_ROLLOUTS: Final = (
    Metric(
        "reward",
        "score",
        "rollouts",
        "mean episode score of the step's rollouts, as they were trained on",
    ),
    Metric(
        "reward_std",
        "score",
        "rollouts",
        "mean over groups of the sample standard deviation of their rewards",
    ),
    Metric("reward_max", "score", "rollouts", "the best reward of the step"),
    Metric(
        "dead_groups",
        "share",
        "rollouts",
        "groups whose scored members all have one outcome (correct, progress bin), or with fewer"
        " than two scored members: such a group teaches the cost of a call more or less",
    ),
    Metric(
        "zero_variance_groups",
        "share",
        "rollouts",
        "groups whose rewards are all equal, or with fewer than two scored members; their gradient"
        " is zero",
    ),
    Metric(
        "accuracy", "share", "rollouts", "correct rollouts, as they were sampled on training tasks"
    ),
    Metric(
        "answered",
        "share",
        "rollouts",
        "rollouts that ended with an answer; a fall means that the policy learns to stop",
    ),
    Metric(
        "validity",
        "share",
        "rollouts",
        "the model's turns in which every call was bound; a turn that stops early, without a call,"
        " counts as not valid",
    ),
    Metric("turns", "count", "rollouts", "the model's turns that `validity` is a share of"),
    Metric(
        "repairs_per_call",
        "number",
        "rollouts",
        "repairs divided by calls; it falls as calls become clean",
    ),
    Metric("tool_failures", "share", "rollouts", "calls that ended in an error observation"),
    Metric("rollouts", "count", "rollouts", "rollouts played for the step, refills included"),
    Metric("faults", "count", "rollouts", "rollouts left out because the environment failed"),
    Metric("deadlines", "count", "rollouts", "calls that time or memory ended"),
    Metric(
        "completion_length",
        "tokens",
        "rollouts",
        "mean tokens that the model wrote in a rollout, results of tools not counted",
    ),
    Metric("clipped", "share", "rollouts", "rollouts that were cut off inside a turn"),
    Metric(
        "unfinished",
        "share",
        "rollouts",
        "rollouts that ran out of tokens or turns before their episode was over",
    ),
)

_SAMPLING: Final = (
    Metric("drawn_groups", "count", "sampling", "groups played for the step, refills included"),
    Metric(
        "dropped_groups",
        "count",
        "sampling",
        "groups dead, or left out of the loss whole",
    ),
    Metric("surplus_groups", "count", "sampling", "live groups that found no place in the step"),
    Metric(
        "masked_groups",
        "count",
        "sampling",
        "places of the step that no live group filled within the cap",
    ),
    Metric(
        "sampling_rounds",
        "count",
        "sampling",
        "rounds of sampling that the step took, the first included",
    ),
)

_UPDATE: Final = (
    Metric(
        "loss",
        "number",
        "update",
        "what was minimised; in the warm-up, cross-entropy on demonstrations in nats per token",
        breaks=True,
        phases=_BOTH,
    ),
    Metric(
        "grad_norm",
        "number",
        "update",
        "before clipping; at 0 the step taught nothing",
        breaks=True,
        phases=_BOTH,
    ),
    Metric("learning_rate", "number", "update", "of this step", phases=_BOTH),
    Metric(
        "entropy",
        "nats",
        "update",
        "mean over the tokens that the model wrote; what is healthy depends on model and task, so"
        " the guards compare with the first steps",
        breaks=True,
    ),
    Metric(
        "kl",
        "nats",
        "update",
        "of the policy from its reference, where there is one, per token",
        breaks=True,
    ),
    Metric("policy_loss", "number", "update", "the surrogate's part of the loss", breaks=True),
    Metric(
        "ratio",
        "number",
        "update",
        "mean over tokens of the importance ratio to the policy that sampled them: 1 where each"
        " batch is trained on once, by the weights that played it",
        breaks=True,
    ),
    Metric("clip_low", "share", "update", "tokens held at the lower bound of the ratio"),
    Metric("clip_high", "share", "update", "tokens held at the upper bound of the ratio"),
    Metric("clip_dual", "share", "update", "tokens of negative advantage held at their own bound"),
    Metric("log_ratio_limited", "share", "update", "tokens whose log-ratio was clamped"),
    Metric("learnt_tokens", "tokens", "update", "tokens that the loss was taken over"),
    Metric(
        "nonfinite_gradients", "count", "update", "parameters whose gradient has a nan or infinity"
    ),
    Metric("nonfinite_weights", "count", "update", "parameters that have a nan or infinity"),
)

_GUARDS: Final = (
    Metric(
        "guard_severity", "count", "guards", "0 ok, 1 warn, 2 skip, 3 lower_lr, 4 roll_back, 5 stop"
    ),
    Metric("updates", "count", "guards", "updates made since the run began"),
    Metric("skipped_updates", "count", "guards", "updates left out since the run began"),
    Metric(
        "collapse_share",
        "share",
        "guards",
        "updates at once followed by a fall of `validity` to half or less, among those since the"
        " run began whose validity before and after is known",
    ),
    Metric("roll_backs", "count", "guards", "returns to a checkpoint since the run began"),
    Metric(
        "learning_rate_scale", "number", "guards", "what the guards multiply the learning rate by"
    ),
)

_CLOCK: Final = (
    Metric("rollout_seconds", "seconds", "clock", "the step's time for its rollouts"),
    Metric("update_seconds", "seconds", "clock", "the step's time for its update"),
    Metric("peak_memory", "MiB", "clock", "the most that the process, or its GPU, has held"),
)

METRICS: Final[dict[str, Metric]] = {
    metric.key: metric for metric in (*_ROLLOUTS, *_SAMPLING, *_UPDATE, *_GUARDS, *_CLOCK)
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


def unknown(metrics: Mapping[str, Any]) -> list[str]:
    """The keys that are not in the vocabulary, in order; a trainer's tests keep this empty."""
    return [key for key in metrics if key not in METRICS]
