"""Which plots over steps a report has, and the sentence under each.

One table (`SECTIONS`) says what is drawn and what it means; the keys are those of `metrics.jsonl`,
whichever trainer wrote it. What no run has is left out and named in one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from toolgym.report.plots.axes import Unit

# What a plot over steps is made of, before any run is looked at.
#
# A series is one metric with its name and meaning. A single run's plot may hold several that are
# read together; several runs need the legend for themselves, so then each series has a plot of its
# own, with its name as the title and its meaning as the note. A series that is marked quiet is left
# out where it has one value throughout, and told in words: most runs never lose a rollout to a
# fault, and flat lines would hide the plots that tell something.


@dataclass(frozen=True)
class Series:
    """One metric in a plot.

    Attributes:
        key: Its key in the records.
        name: In legends, and as the title where it has a plot for itself.
        meaning: One sentence for a reader who meets it for the first time.
        is_quiet: Not drawn where it never changes.
    """

    key: str
    name: str
    meaning: str
    is_quiet: bool = False


@dataclass(frozen=True)
class Band:
    """A metric that is drawn as a band around another.

    Attributes:
        key: Its key in the records; the band reaches as far to either side.
        meaning: One sentence.
    """

    key: str
    meaning: str


@dataclass(frozen=True)
class Plot:
    """One plot over steps.

    Attributes:
        title: Stands above it.
        series: What it shows.
        note: What is to be said of all its series together.
        unit: How values are written.
        phase: Whose steps.
        spread: Drawn around the first series.
        is_smoothed: Each step is so noisy that a running mean is needed to see where it goes.
        from_zero: The vertical axis begins at 0, or shows it.
    """

    title: str
    series: tuple[Series, ...]
    note: str = ""
    unit: Unit = "number"
    phase: str = "grpo"
    spread: Band | None = None
    is_smoothed: bool = True
    from_zero: bool = True


@dataclass(frozen=True)
class Section:
    """Plots that are read together."""

    title: str
    plots: tuple[Plot, ...]


def _one(key: str, name: str, meaning: str, *, is_quiet: bool = False, **more: Any) -> Plot:
    """A plot of one series, with the series' name as its title."""
    return Plot(name, (Series(key, name, meaning, is_quiet),), **more)


_SUCCESS: Final = Section(
    "Success",
    (
        Plot(
            "Reward",
            (
                Series(
                    "reward",
                    "Reward",
                    "Mean episode score of each step's rollouts.",
                ),
                Series("reward_max", "Best reward", "The best score of each step."),
            ),
            spread=Band(
                "reward_std",
                "The band is one standard deviation within a group to either side: where it"
                " closes, a group has nothing left to compare.",
            ),
        ),
        _one(
            "accuracy",
            "Sampled accuracy",
            "Share of each step's rollouts, sampled on training tasks, whose answer was right.",
            unit="share",
        ),
        _one(
            "answered",
            "Answered",
            "Share of rollouts that ended with an answer. A fall means that the policy learns to"
            " stop.",
            unit="share",
        ),
        _one(
            "completion_length",
            "Completion length",
            "Mean tokens that the model wrote in a rollout, tool results left out.",
        ),
    ),
)

_SIGNAL: Final = Section(
    "What groups teach",
    (
        Plot(
            "Groups without signal",
            (
                Series(
                    "dead_groups",
                    "Equal outcomes",
                    "Groups whose members were all equally right and equally far: what such a group"
                    " teaches is the cost of a call more or less.",
                ),
                Series(
                    "zero_variance_groups",
                    "Equal rewards",
                    "Groups whose members all earned the same; their gradient is zero.",
                ),
            ),
            unit="share",
        ),
        Plot(
            "Dynamic sampling",
            (
                Series(
                    "drawn_groups", "Drawn groups", "Groups played for a step, refills included."
                ),
                Series("dropped_groups", "Dropped groups", "Groups left out for equal outcomes."),
                Series(
                    "surplus_groups",
                    "Surplus groups",
                    "Good groups more than the step needed.",
                    True,
                ),
                Series(
                    "masked_groups", "Masked groups", "Places that stayed empty at the cap.", True
                ),
            ),
        ),
        _one(
            "sampling_rounds",
            "Sampling rounds",
            "Draws that a step took, the first included.",
            is_quiet=True,
        ),
    ),
)

_POLICY: Final = Section(
    "The policy and its updates",
    (
        _one(
            "entropy",
            "Entropy",
            "In nats per token. What is healthy depends on model and task, so the guards compare"
            " with the first steps.",
        ),
        _one("kl", "KL divergence", "How far the policy is from its reference, in nats per token."),
        _one("grad_norm", "Gradient norm", "Before clipping. At 0 the step taught nothing."),
        Plot(
            "Clipping",
            (
                Series("clip_low", "Clipped low", "Share of tokens held at the lower bound.", True),
                Series(
                    "clip_high", "Clipped high", "Share of tokens held at the upper bound.", True
                ),
                Series(
                    "clip_dual",
                    "Dual clip",
                    "Share of tokens held at the bound for bad ones.",
                    True,
                ),
                Series(
                    "log_ratio_limited",
                    "Clamped ratios",
                    "Share of tokens whose log-ratio was clamped.",
                    True,
                ),
            ),
            unit="share",
        ),
        _one(
            "ratio",
            "Importance ratio",
            "Mean over tokens, to the policy that sampled them: 1 where each batch is learnt from"
            " once, by the weights that played it.",
            is_quiet=True,
            from_zero=False,
        ),
        Plot(
            "Loss",
            (
                Series("loss", "Loss", "What was minimised.", True),
                Series("policy_loss", "Policy loss", "The surrogate's part of the loss.", True),
            ),
            note="Its height says nothing about success.",
        ),
        _one("learning_rate", "Learning rate", "Of each step.", is_quiet=True, is_smoothed=False),
        Plot(
            "Not finite",
            (
                Series(
                    "nonfinite_gradients",
                    "Broken gradients",
                    "Parameters whose gradient is not finite.",
                    True,
                ),
                Series(
                    "nonfinite_weights", "Broken weights", "Parameters that are not finite.", True
                ),
            ),
            is_smoothed=False,
        ),
    ),
)

_GUARDS: Final = Section(
    "Guards",
    (
        Plot(
            "Updates that were not kept",
            (
                Series("skipped_updates", "Updates left out", "Not made so far.", True),
                Series("roll_backs", "Roll-backs", "Returns to a checkpoint so far.", True),
            ),
            is_smoothed=False,
        ),
        _one(
            "collapse_share",
            "Updates followed by a collapse",
            "Share of the updates so far after which validity fell to half or less at once.",
            unit="share",
            is_quiet=True,
            is_smoothed=False,
        ),
        _one(
            "learning_rate_scale",
            "Learning rate left",
            "What the guards multiply the learning rate by.",
            is_quiet=True,
            is_smoothed=False,
        ),
    ),
)

_CALLS: Final = Section(
    "Calls",
    (
        _one(
            "validity",
            "Validity",
            "Share of turns in which every call could be bound without an error.",
            unit="share",
        ),
        _one(
            "tool_failures",
            "Failed calls",
            "Share of calls that ended in an error observation.",
            unit="share",
        ),
        _one(
            "repairs_per_call",
            "Repairs per call",
            "How often a call had to be repaired before it could run. It falls as calls become"
            " clean.",
        ),
        Plot(
            "Rollouts without an end",
            (
                Series(
                    "clipped",
                    "Rollouts cut off",
                    "Share that ran out of tokens inside a turn.",
                    True,
                ),
                Series(
                    "unfinished",
                    "Rollouts unfinished",
                    "Share that ran out of tokens or turns.",
                    True,
                ),
            ),
            unit="share",
        ),
        Plot(
            "Faults",
            (
                Series("faults", "Faults", "Rollouts left out, the environment failed.", True),
                Series("deadlines", "Deadlines", "Calls that a deadline stopped.", True),
            ),
            is_smoothed=False,
        ),
    ),
)

_COST: Final = Section(
    "Cost and warm-up",
    (
        Plot(
            "Seconds per step",
            (
                Series("rollout_seconds", "Seconds of playing", "Of a step, for its rollouts."),
                Series("update_seconds", "Seconds of learning", "Of a step, for its update."),
            ),
        ),
        _one(
            "learnt_tokens",
            "Tokens learnt from",
            "Tokens of each step that the loss was taken over.",
        ),
        _one(
            "peak_memory",
            "Peak memory",
            "The most MiB that the process, or its GPU, has held.",
            is_smoothed=False,
        ),
        _one(
            "loss",
            "Warm-up loss",
            "Cross-entropy of the supervised warm-up on demonstrations, in nats per token.",
            phase="warmup",
            is_smoothed=False,
        ),
    ),
)

SECTIONS: Final = (_SUCCESS, _SIGNAL, _POLICY, _GUARDS, _CALLS, _COST)
SEVERITY: Final = "guard_severity"
ACTIONS: Final = ("ok", "warn", "skip", "lower rate", "roll back", "stop")
"""What the values 0 to 5 of `SEVERITY` mean; drawn by a plot of its own."""


def drawn_keys() -> Iterator[str]:
    """Every key that some plot shows."""
    for section in SECTIONS:
        for plot in section.plots:
            yield from (series.key for series in plot.series)
            yield from [plot.spread.key] if plot.spread else []
    yield SEVERITY
