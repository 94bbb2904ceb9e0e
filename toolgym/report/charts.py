"""Which plots a report has, and the sentence under each.

One table (`METRICS`) says what is drawn and what it means. A metric that no run has is left out,
and its absence is named in one sentence rather than shown as an empty frame. Several runs are laid
over each other, one plot for each metric; a single run's plot may hold two that are read together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from toolgym.report.axes import Unit, is_drawable, number_text
from toolgym.report.plot import (
    Bars,
    Line,
    Point,
    Points,
    bar_plot,
    line_plot,
    point_plot,
    swatch,
)
from toolgym.report.series import Curve, band, curve, running_mean, window
from toolgym.report.view import Record, RunView, interval


@dataclass(frozen=True)
class Metric:
    """One plot over steps.

    Attributes:
        keys: The metrics it shows, with their names in a legend.
        title: Stands above it.
        note: What it means, for a reader who meets it for the first time.
        unit: How values are written.
        phase: Whose steps.
        spread: The metric that is drawn as a band; empty for none.
        is_smoothed: Each step is so noisy that a running mean is needed to see where it goes.
    """

    keys: tuple[tuple[str, str], ...]
    title: str
    note: str
    unit: Unit = "number"
    phase: str = "grpo"
    spread: str = ""
    is_smoothed: bool = True


@dataclass(frozen=True)
class Chart:
    """One plot as the page shows it; `legend` is empty where the title says it all."""

    title: str
    note: str
    svg: Markup
    legend: tuple[tuple[Markup, str], ...] = ()


METRICS = (
    Metric(
        (("reward", "reward"),),
        "Reward",
        "Mean episode score of each step's rollouts. The band is one standard deviation within "
        "a group to either side: where it closes, a group has nothing left to compare.",
        spread="reward_std",
    ),
    Metric(
        (("accuracy", "accuracy"),),
        "Sampled accuracy",
        "Share of each step's rollouts, sampled on training tasks, whose answer was right.",
        "share",
    ),
    Metric(
        (("validity", "validity"),),
        "Validity",
        "Share of turns in which every call could be bound without an error.",
        "share",
    ),
    Metric(
        (("dead_groups", "dead groups"), ("zero_variance_groups", "zero-variance groups")),
        "Groups that teach nothing",
        "Dead: all members had the same outcome. Zero variance: all earned the same reward, "
        "so the gradient of the group is zero.",
        "share",
    ),
    Metric(
        (("answered", "answered"),),
        "Answered",
        "Share of rollouts that ended with an answer. A fall means that the policy learns to stop.",
        "share",
    ),
    Metric(
        (("repairs_per_call", "repairs"),),
        "Repairs per call",
        "How often a call had to be repaired before it could run. It falls as calls become clean.",
    ),
    Metric(
        (("entropy", "entropy"),),
        "Entropy",
        "In nats per token. Near zero the policy no longer explores.",
    ),
    Metric(
        (("kl", "KL"),),
        "KL divergence",
        "How far the policy has moved from its reference, in nats per token.",
    ),
    Metric(
        (("grad_norm", "gradient norm"),),
        "Gradient norm",
        "Before clipping. Zero means that the step taught nothing.",
    ),
    Metric(
        (("tool_failures", "failed calls"),),
        "Failed calls",
        "Share of calls that ended in an error observation.",
        "share",
    ),
    Metric(
        (("completion_length", "tokens"),),
        "Completion length",
        "Mean tokens that the model wrote in a rollout, tool results left out.",
    ),
    Metric(
        (("loss", "loss"),),
        "Warm-up loss",
        "Cross-entropy of the supervised warm-up on demonstrations, in nats per token.",
        phase="warmup",
        is_smoothed=False,
    ),
)
STEP_NAMES = {"grpo": "GRPO step", "warmup": "warm-up step"}


def metric_charts(runs: Sequence[RunView]) -> tuple[list[Chart], list[str]]:
    """The plots over steps that the runs have numbers for, and the titles of the others."""
    drawn: list[Chart] = []
    missing: list[str] = []
    for metric in METRICS:
        charts = [chart for part in _parts(metric, len(runs)) if (chart := _chart(part, runs))]
        drawn.extend(charts)
        missing.extend([] if charts else [metric.title])
    return drawn, missing


def _parts(metric: Metric, runs: int) -> list[Metric]:
    """Several runs need the legend for themselves, so then each key has its own plot."""
    if runs == 1 or len(metric.keys) == 1:
        return [metric]
    return [replace(metric, keys=(key,), title=key[1].capitalize()) for key in metric.keys]


def _chart(metric: Metric, runs: Sequence[RunView]) -> Chart | None:
    lines: list[Line] = []
    told: list[str] = []
    widths: set[int] = set()
    for run in runs:
        records = run.metrics(metric.phase)
        for number, (key, name) in enumerate(metric.keys):
            found = curve(records, key)
            if found is None:
                continue
            label = run.label if len(runs) > 1 else name
            spread = curve(records, metric.spread) if metric.spread else None
            width = window(len(found.steps)) if metric.is_smoothed else 1
            lines.append(_line(found, spread, width, label, number + run.style))
            told.append(_in_words(label, found, metric.unit))
            widths.add(width)
    if not lines:
        return None
    smoothed = f" Thick: mean of the last {max(widths)} steps; thin: each step."
    note = metric.note + (smoothed if max(widths) > 1 else "")
    label = STEP_NAMES[metric.phase]
    svg = line_plot(lines, metric.title, " ".join(told), label, metric.unit)
    return Chart(metric.title, note, Markup(svg), _legend(lines))


def _line(found: Curve, spread: Curve | None, width: int, label: str, style: int) -> Line:
    middle = running_mean(found.values, width)
    low: list[float | None] = []
    high: list[float | None] = []
    if spread is not None:
        low, high = band(middle, running_mean(spread.values, width))
    faint = found.values if width > 1 else ()
    return Line(label, style, found.steps, middle, faint, low, high)


def _legend(lines: Sequence[Line | Points | Bars]) -> tuple[tuple[Markup, str], ...]:
    if len(lines) == 1:
        return ()
    return tuple(
        (Markup(swatch(line.style, bar=isinstance(line, Bars))), line.label) for line in lines
    )


def _in_words(label: str, found: Curve, unit: Unit) -> str:
    first, last = (number_text(value, 0.01, unit) for value in (found.known[0], found.known[-1]))
    return f"{label}: from {first} to {last} over {len(found.steps)} steps."


def accuracy_chart(runs: Sequence[RunView]) -> Chart | None:
    """Held-out accuracy before and after with its intervals; None where no run has any."""
    series = [Points(run.label, run.style, [_point(run.before), _point(run.after)]) for run in runs]
    series = [one for one in series if any(one.points)]
    if not series:
        return None
    told = "; ".join(
        f"{one.label}: " + " to ".join(_share(point) for point in one.points) for one in series
    )
    svg = point_plot(series, ("before", "after"), "Held-out accuracy", told, "share")
    note = "Greedy, on tasks that were not trained on. Bars are 95 % Wilson intervals."
    return Chart("Held-out accuracy", note, Markup(svg), _legend(series))


def _share(point: Point | None) -> str:
    return "unknown" if point is None else number_text(point.value, 0.001, "share")


def _point(evaluation: Record) -> Point | None:
    accuracy = evaluation.get("accuracy")
    if not is_drawable(accuracy):
        return None
    return Point(accuracy, *(interval(evaluation) or (accuracy, accuracy)))


ENDINGS = ("right", "wrong answer", "no answer", "unscored")


def endings_chart(run: RunView) -> Chart | None:
    """How the evaluated episodes of one run ended, before and after; None without episodes."""
    series = []
    for style, (phase, episodes) in enumerate(
        (("before", run.episodes_before), ("after", run.episodes_after))
    ):
        counts = Counter(_ending(episode) for episode in episodes)
        if episodes:
            shares = [counts[ending] / len(episodes) for ending in ENDINGS]
            series.append(Bars(phase, style, shares))
    if not series:
        return None
    known = [i for i in range(len(ENDINGS)) if i < 3 or any(one.heights[i] for one in series)]
    names = [ENDINGS[i] for i in known]
    kept = [Bars(one.label, one.style, [one.heights[i] for i in known]) for one in series]
    svg = bar_plot(kept, names, "How episodes ended", "Shares before and after.", "share")
    note = "Share of the evaluated episodes. No answer: the budget was spent, or the model stopped."
    return Chart("How episodes ended", note, Markup(svg), _legend(kept))


def _ending(episode: Record) -> str:
    if episode.get("scored") is False:
        return "unscored"
    if episode.get("correct"):
        return "right"
    return "wrong answer" if episode.get("answered") else "no answer"
