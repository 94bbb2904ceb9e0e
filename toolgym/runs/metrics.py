"""The metrics of `metrics.jsonl`: the key, unit and meaning of each number.

The trainers write these keys and no others, the guards read them, the report shows most of them
with these descriptions, and the documentation is checked against them. Shares are between 0 and 1.
An undefined share (of no items) is nan in memory and left out of the file. For metrics with
`breaks`, a value that is not finite means that the training broke down.

A record of phase `grpo` describes one optimizer step: the rollouts that it trains on, which were
sampled with the weights before the step, and the update.
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
    """A metric of `metrics.jsonl`.

    Attributes:
        key: The key.
        unit: The unit of the values.
        source: The part of the training that the metric describes.
        meaning: A description, without a period.
        breaks: Whether nan or infinity means a breakdown, and not that the value is undefined.
        phases: The phases whose records have the key.
    """

    key: str
    unit: Unit
    source: Source
    meaning: str
    breaks: bool
    phases: tuple[str, ...]


_MEANINGS: Final[dict[Source, dict[tuple[str, Unit], str]]] = {
    "rollouts": {
        ("reward", "score"): "mean episode score of the rollouts in the step",
        ("reward_std", "score"): "sample standard deviation of the rewards of a group, mean over"
        " groups",
        ("reward_max", "score"): "highest reward in the step",
        ("dead_groups", "share"): "groups whose scored rollouts all have the same outcome (correct,"
        " progress bin), or that have fewer than two scored rollouts; their rewards differ by the"
        " costs of calls only",
        ("zero_variance_groups", "share"): "groups whose rewards are all equal, or that have fewer"
        " than two scored rollouts; their gradient is zero",
        ("accuracy", "share"): "correct rollouts on training tasks, at the sampling temperature",
        ("answered", "share"): "rollouts that ended with an answer; if it falls, the policy is"
        " learning to stop",
        ("refused_answerable", "share"): "rollouts that deny an answer that exists; only in"
        " environments where a question may have no answer",
        ("answered_unanswerable", "share"): "rollouts that answer a question without an answer;"
        " only in environments where a question may have no answer",
        ("validity", "share"): "turns of the model in which every call was bound; a turn without a"
        " call is not valid",
        ("turns", "count"): "turns of the model, the denominator of `validity`",
        ("repairs_per_call", "number"): "repairs divided by calls; it falls as calls become clean",
        ("tool_failures", "share"): "calls that ended in an error observation",
        ("rollouts", "count"): "rollouts played for the step, including refills",
        ("faults", "count"): "rollouts left out because the environment failed",
        ("over_limit", "count"): "calls that exceeded a limit of steps or memory",
        ("completion_length", "tokens"): "mean number of tokens that the model generated in a"
        " rollout, without tool results",
        ("clipped", "share"): "rollouts that were cut off inside a turn",
        ("unfinished", "share"): "rollouts that ran out of tokens or turns before the end of the"
        " episode",
    },
    "sampling": {
        ("drawn_groups", "count"): "groups played for the step, including refills",
        ("dropped_groups", "count"): "groups that are dead or completely excluded from the loss",
        ("surplus_groups", "count"): "live groups that exceed the batch of the step",
        ("masked_groups", "count"): "groups of the batch that are masked because too few live"
        " groups were found within the limit",
        ("sampling_rounds", "count"): "rounds of sampling for the step, including the first",
    },
    "update": {
        ("loss", "number"): "loss that was minimized; in supervised steps, cross-entropy on"
        " demonstrations in nats per token",
        ("grad_norm", "number"): "norm of the gradient before clipping; 0 means no learning signal",
        ("learning_rate", "number"): "learning rate of the step",
        ("entropy", "nats"): "mean entropy over the generated tokens; healthy values depend on"
        " model and task, so the guards compare with the first steps",
        ("kl", "nats"): "KL divergence of the policy from the reference model per token, if there"
        " is a reference model",
        ("policy_loss", "number"): "part of the loss that is the policy-gradient surrogate",
        ("ratio", "number"): "mean over tokens of the importance ratio to the sampling policy; 1 if"
        " each batch is trained on once, by the weights that sampled it",
        ("mismatch", "nats"): "mean over tokens of ratio - 1 - log(ratio) for a fresh batch: the"
        " divergence of its probabilities in training from those at sampling, about 0 if both"
        " compute alike",
        ("clip_low", "share"): "tokens clipped at the lower bound of the ratio",
        ("clip_high", "share"): "tokens clipped at the upper bound of the ratio",
        ("learnt_tokens", "tokens"): "tokens in the loss",
        ("nonfinite_gradients", "count"): "parameters whose gradient has a nan or infinity",
        ("nonfinite_weights", "count"): "parameters that have a nan or infinity",
    },
    "guards": {
        ("guard_severity", "count"): "0 ok, 1 warn, 2 skip, 3 lower_lr, 4 roll_back, 5 stop",
        ("updates", "count"): "updates since the start of the run",
        ("skipped_updates", "count"): "skipped updates since the start of the run",
        ("roll_backs", "count"): "rollbacks to a checkpoint since the start of the run",
        ("learning_rate_scale", "number"): "factor of the guards on the learning rate",
    },
    "evaluation": {
        ("held_out_accuracy", "share"): "selection tasks, none of which is trained on, that the"
        " model solves greedily with the weights after this step",
        ("held_out_low", "share"): "lower end of the 95 % Wilson interval of `held_out_accuracy`",
        ("held_out_high", "share"): "upper end of the 95 % Wilson interval of `held_out_accuracy`",
        ("held_out_answered", "share"): "selection tasks that the model answers",
        ("held_out_validity", "share"): "turns on selection tasks in which every call was bound",
        ("held_out_episodes", "count"): "selection tasks that were scored",
    },
    "clock": {
        ("evaluation_seconds", "seconds"): "time of an evaluation on selection tasks",
        ("rollout_seconds", "seconds"): "time of the rollouts of the step",
        ("update_seconds", "seconds"): "time of the update of the step",
        ("peak_memory", "MiB"): "peak memory of the process, or of its GPU",
    },
}
_BREAKS: Final = ("loss", "grad_norm", "entropy", "kl", "policy_loss", "ratio", "mismatch")
_BOTH_PHASES: Final = ("loss", "grad_norm", "learning_rate")

METRICS: Final[dict[str, Metric]] = {
    key: Metric(
        key,
        unit,
        source,
        meaning,
        breaks=key in _BREAKS,
        phases=("selection",)
        if source == "evaluation" or key == "evaluation_seconds"
        else ("sft", "grpo")
        if key in _BOTH_PHASES
        else ("grpo",),
    )
    for source, meanings in _MEANINGS.items()
    for (key, unit), meaning in meanings.items()
}
"""All metrics by key, in the order of the documentation."""


def broken(metrics: Mapping[str, Any]) -> list[str]:
    """Return the keys with `breaks` whose value is not finite, in order.

    >>> broken({"loss": float("nan"), "validity": float("nan"), "kl": 0.1})
    ['loss']
    """
    return [
        key
        for key, value in metrics.items()
        if key in METRICS and METRICS[key].breaks and is_number(value) and not math.isfinite(value)
    ]


def finite(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the finite numbers as floats.

    >>> finite({"loss": 1, "kl": None, "validity": float("nan")})
    {'loss': 1.0}
    """
    return {
        key: float(value)
        for key, value in metrics.items()
        if is_number(value) and math.isfinite(value)
    }


def recorded(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers for the record of a step: finite ones, and all values with `breaks`.

    >>> recorded({"loss": float("nan"), "validity": float("nan"), "kl": None, "reward": 1})
    {'loss': nan, 'reward': 1.0}
    """
    return {
        key: float(value)
        for key, value in metrics.items()
        if is_number(value) and (math.isfinite(value) or (key in METRICS and METRICS[key].breaks))
    }


def is_number(value: object) -> bool:
    """Return whether a value is an int or a float, and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)
