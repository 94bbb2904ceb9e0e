"""The metrics of `metrics.jsonl`: the key, unit and meaning of each number.

The trainers write these keys and no others. The guards read the metrics, the report shows most of
them with their descriptions, and a test compares the documentation with the descriptions. Shares
are between 0 and 1. If there are no items, their share is undefined: it is nan in memory and
omitted from the file. For metrics with `breaks`, a value that is not finite means that the training
failed.

A record of phase `grpo` describes one optimizer step: its rollouts, which were sampled with the
weights before the step, and the update.
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
        breaks: Whether nan or infinity means that the training failed, rather than that the value
            is undefined.
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
        ("reward", "score"): "mean score of the rollouts",
        (
            "reward_std",
            "score",
        ): "standard deviation of the rewards within a group, averaged over groups",
        ("reward_max", "score"): "highest score of a rollout",
        ("dead_groups", "share"): (
            "share of groups whose scored rollouts all have the same outcome (correctness and"
            " progress bin), or that have fewer than two scored rollouts"
        ),
        ("zero_variance_groups", "share"): (
            "share of groups whose rewards are all equal, or that have fewer than two scored"
            " rollouts; their gradient is zero"
        ),
        ("accuracy", "share"): (
            "share of correct rollouts, measured on training tasks at the sampling temperature"
        ),
        ("answered", "share"): "share of rollouts that ended with an answer",
        ("refused_answerable", "share"): (
            "share of rollouts that claim that an answerable question has no answer; only in"
            " environments with unanswerable questions"
        ),
        ("answered_unanswerable", "share"): (
            "share of rollouts that answer an unanswerable question; only in environments"
            " with such questions"
        ),
        ("validity", "share"): (
            "share of valid turns; a turn is valid if it contains at least one call and all"
            " its calls match a tool"
        ),
        ("turns", "count"): "number of turns (the denominator of `validity`)",
        ("repairs_per_call", "number"): "mean number of repairs per call",
        ("tool_failures", "share"): "share of calls whose observation is an error",
        ("rollouts", "count"): "number of rollouts, including those of replacement groups",
        ("faults", "count"): "number of rollouts that were excluded because the environment failed",
        ("over_limit", "count"): "number of calls that exceeded a computation or memory limit",
        (
            "completion_length",
            "tokens",
        ): "mean number of generated tokens per rollout, excluding tool results",
        ("clipped", "share"): "share of rollouts that were cut off within a turn",
        (
            "unfinished",
            "share",
        ): "share of rollouts that reached the token or turn limit before the episode ended",
    },
    "sampling": {
        ("drawn_groups", "count"): "number of groups that were generated, including replacements",
        ("dropped_groups", "count"): (
            "number of groups that were dropped because they are dead or have no tokens in the loss"
        ),
        ("surplus_groups", "count"): "number of live groups that did not fit into the batch",
        ("masked_groups", "count"): (
            "number of dead groups that fill up the batch and are masked in the loss"
        ),
        ("sampling_rounds", "count"): "number of sampling rounds, including the first",
    },
    "update": {
        (
            "loss",
            "number",
        ): "training loss; in supervised steps, the cross-entropy in nats per token",
        (
            "grad_norm",
            "number",
        ): "gradient norm before clipping; 0 means that the step has no learning signal",
        ("learning_rate", "number"): "learning rate of the step",
        ("entropy", "nats"): "mean entropy of the policy per generated token",
        ("kl", "nats"): (
            "mean KL divergence of the policy from the reference model per token; only with a"
            " reference model"
        ),
        ("policy_loss", "number"): "policy term of `loss`",
        ("ratio", "number"): "mean importance ratio of the tokens; 1 if each batch is used for one"
        " update",
        ("mismatch", "nats"): (
            "mean of ratio - 1 - log(ratio) over the tokens of a new batch; about 0 if"
            " training and sampling compute the same token probabilities"
        ),
        ("clip_low", "share"): "share of tokens whose ratio is clipped at the lower bound",
        ("clip_high", "share"): "share of tokens whose ratio is clipped at the upper bound",
        ("learnt_tokens", "tokens"): "number of tokens in the loss",
        (
            "nonfinite_gradients",
            "count",
        ): "number of parameter tensors whose gradient contains NaN or infinity",
        ("nonfinite_weights", "count"): "number of parameter tensors that contain NaN or infinity",
    },
    "guards": {
        ("guard_severity", "count"): (
            "most severe action of the guards: 0 ok, 1 warn, 2 skip, 3 lower_lr, 4 roll_back,"
            " 5 stop"
        ),
        ("updates", "count"): "number of updates since the start of the run",
        ("skipped_updates", "count"): "number of skipped updates since the start of the run",
        ("roll_backs", "count"): "number of roll-backs since the start of the run",
        (
            "learning_rate_scale",
            "number",
        ): "factor by which the guards multiply the scheduled learning rate",
    },
    "evaluation": {
        ("held_out_accuracy", "share"): (
            "share of selection tasks that the model solves with greedy decoding; selection"
            " tasks are not used for training"
        ),
        ("held_out_low", "share"): "lower bound of the 95 % Wilson interval of `held_out_accuracy`",
        (
            "held_out_high",
            "share",
        ): "upper bound of the 95 % Wilson interval of `held_out_accuracy`",
        ("held_out_answered", "share"): "share of selection tasks that the model answers",
        ("held_out_validity", "share"): "`validity` on selection tasks",
        ("held_out_episodes", "count"): "number of scored selection tasks",
    },
    "clock": {
        ("evaluation_seconds", "seconds"): "duration of the evaluation on selection tasks",
        ("rollout_seconds", "seconds"): "duration of the rollouts",
        ("update_seconds", "seconds"): "duration of the update",
        ("peak_memory", "MiB"): "peak memory of the GPU, or of the process on a CPU",
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
    """Return the numbers to record: all finite ones, and also others if their metric has `breaks`.

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
