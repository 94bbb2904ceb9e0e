"""Which plots over steps a report has, section by section.

One table (`SECTIONS`) says what is drawn together and how; the keys are those of `metrics.jsonl`,
whichever trainer wrote it, and the sentence under a plot is that of the vocabulary
(`toolgym.runs.metrics`). What no run has is left out and named in one sentence.

A single run's plot may hold several series that are read together. Several runs need the legend for
themselves, so then each series has a plot of its own, with its name as the title. A series that is
marked quiet is left out where it has one value throughout, and told in words: most runs never lose
a rollout to a fault, and flat lines would hide the plots that tell something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from toolgym.report.numbers import Unit
from toolgym.runs.metrics import METRICS


@dataclass(frozen=True)
class Series:
    """One metric in a plot.

    Attributes:
        key: Its key in the records.
        name: In legends, and as the title where it has a plot for itself.
        is_quiet: Not drawn where it never changes.
    """

    key: str
    name: str
    is_quiet: bool = False

    @property
    def meaning(self) -> str:
        """The metric's meaning with its unit, without capital and full stop."""
        metric = METRICS[self.key]
        before = {"share": "share of ", "nats": "in nats: ", "MiB": "in MiB: "}.get(metric.unit, "")
        return before + metric.meaning.replace("`", "")


@dataclass(frozen=True)
class Plot:
    """One plot over steps.

    Attributes:
        series: What it shows.
        note: What is to be said of all its series together.
        phase: Whose steps.
        spread: Key of the metric that is drawn as a band to either side of the first series.
        band: Keys of the lower and upper edge of a band around the first series, in place of that.
        spread_note: What the band means.
        is_smoothed: Each step is so noisy that a running mean is needed to see where it goes.
        from_zero: The vertical axis begins at 0, or shows it.
        is_usual: That it is not shown is told where nothing of it was logged.
    """

    title: str
    series: tuple[Series, ...]
    note: str = ""
    phase: str = "grpo"
    spread: str = ""
    band: tuple[str, str] | None = None
    spread_note: str = ""
    is_smoothed: bool = True
    from_zero: bool = True
    is_usual: bool = True

    @property
    def unit(self) -> Unit:
        """The unit in which values are written."""
        return "share" if METRICS[self.series[0].key].unit == "share" else "number"


@dataclass(frozen=True)
class Section:
    """Plots that are read together."""

    title: str
    plots: tuple[Plot, ...]


def _one(key: str, name: str, *, is_quiet: bool = False, **more: Any) -> Plot:
    """A plot of one series, with the series' name as its title."""
    return _plot(name, Series(key, name, is_quiet), **more)


def _plot(title: str, *series: Series, **more: Any) -> Plot:
    return Plot(title, series, **more)


_SUCCESS: Final = (
    _plot(
        "Reward",
        Series("reward", "Reward"),
        Series("reward_max", "Best reward"),
        spread="reward_std",
        spread_note="The band is one standard deviation within a group to either side: where it"
        " closes, a group has nothing left to compare.",
    ),
    _one("accuracy", "Sampled accuracy"),
    _one("answered", "Answered"),
    _plot(
        "Mistakes about what has an answer",
        Series("refused_answerable", "Refused, with an answer"),
        Series("answered_unanswerable", "Answered, without one"),
        is_usual=False,
    ),
    _one("completion_length", "Completion length"),
)
_SIGNAL: Final = (
    _plot(
        "Groups without signal",
        Series("dead_groups", "Equal outcomes"),
        Series("zero_variance_groups", "Equal rewards"),
    ),
    _plot(
        "Dynamic sampling",
        Series("drawn_groups", "Sampled groups"),
        Series("dropped_groups", "Dropped groups"),
        Series("surplus_groups", "Surplus groups", True),
        Series("masked_groups", "Masked groups", True),
    ),
    _one("sampling_rounds", "Sampling rounds", is_quiet=True),
)
_POLICY: Final = (
    _one("entropy", "Entropy"),
    _one("kl", "KL divergence"),
    _one("grad_norm", "Gradient norm"),
    _plot(
        "Clipping",
        Series("clip_low", "Clipped low", True),
        Series("clip_high", "Clipped high", True),
        Series("clip_dual", "Dual clip", True),
        Series("log_ratio_limited", "Clamped ratios", True),
    ),
    _one("ratio", "Importance ratio", is_quiet=True, from_zero=False),
    _plot(
        "Loss",
        Series("loss", "Loss", True),
        Series("policy_loss", "Policy loss", True),
        note="Its height says nothing about success.",
    ),
    _one("learning_rate", "Learning rate", is_quiet=True, is_smoothed=False),
    _plot(
        "Not finite",
        Series("nonfinite_gradients", "Broken gradients", True),
        Series("nonfinite_weights", "Broken weights", True),
        is_smoothed=False,
    ),
)
_GUARDS: Final = (
    _plot(
        "Updates that were not kept",
        Series("skipped_updates", "Updates left out", True),
        Series("roll_backs", "Roll-backs", True),
        is_smoothed=False,
    ),
    _one("collapse_share", "Updates followed by a collapse", is_quiet=True, is_smoothed=False),
    _one("learning_rate_scale", "Learning rate left", is_quiet=True, is_smoothed=False),
)
_HELD_OUT: Final = (
    *(
        _one(
            "held_out_accuracy",
            name,
            phase=phase,
            band=("held_out_low", "held_out_high"),
            spread_note="The band is the 95 % Wilson interval. No task of the figures before and"
            " after is among these: they choose the checkpoint.",
            is_smoothed=False,
            is_usual=False,
        )
        for name, phase in (
            ("Held-out accuracy", "selection"),
            ("Held-out accuracy in the warm-up", "warmup-selection"),
        )
    ),
    _plot(
        "Held-out calls",
        Series("held_out_answered", "Answered, held out"),
        Series("held_out_validity", "Validity, held out"),
        phase="selection",
        is_smoothed=False,
        is_usual=False,
    ),
    _one(
        "evaluation_seconds",
        "Seconds of an evaluation",
        phase="selection",
        is_smoothed=False,
        is_usual=False,
    ),
)
_CALLS: Final = (
    _one("validity", "Validity"),
    _one("tool_failures", "Failed calls"),
    _one("repairs_per_call", "Repairs per call"),
    _plot(
        "Rollouts without an end",
        Series("clipped", "Rollouts cut off", True),
        Series("unfinished", "Rollouts unfinished", True),
    ),
    _plot(
        "Faults",
        Series("faults", "Faults", True),
        Series("deadlines", "Deadlines", True),
        is_smoothed=False,
    ),
)
_COST: Final = (
    _plot(
        "Seconds per step",
        Series("rollout_seconds", "Seconds of playing"),
        Series("update_seconds", "Seconds of learning"),
    ),
    _one("learnt_tokens", "Tokens learnt from"),
    _one("peak_memory", "Peak memory", is_smoothed=False),
    _one("loss", "Warm-up loss", phase="warmup", is_smoothed=False),
)

SECTIONS: Final = (
    Section("Success", _SUCCESS),
    Section("Held-out evaluation", _HELD_OUT),
    Section("What groups teach", _SIGNAL),
    Section("The policy and its updates", _POLICY),
    Section("Guards", _GUARDS),
    Section("Calls", _CALLS),
    Section("Cost and warm-up", _COST),
)
SEVERITY: Final = "guard_severity"
ACTIONS: Final = ("ok", "warn", "skip", "lower rate", "roll back", "stop")
"""What the values 0 to 5 of `SEVERITY` mean; drawn by a plot of its own."""
