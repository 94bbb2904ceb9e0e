"""The plots of a report, each with its title, legend and note, out of the runs' numbers.

Which there are and what they mean stands in `catalogue`. Several runs are laid over each other, one
plot for each metric; a single run's plot may hold several that are read together. A metric that no
run has is named in one sentence rather than shown as an empty frame, and so is one that never
changes where a change is what would matter.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolgym.report.catalogue import ACTIONS, SECTIONS, SEVERITY, Plot, Section, Series
from toolgym.report.numbers import Unit, is_drawable, number_text
from toolgym.report.plots.categories import Bars, Point, Points, bar_plot, point_plot
from toolgym.report.plots.lines import Level, Line, line_plot
from toolgym.report.plots.points import Incidents, guard_plot
from toolgym.report.plots.vega import Chart, Values
from toolgym.report.view import Record, RunView, interval, limits

# What a run's metrics are as curves: one value a step, smoothed, with the spread around it.
#
# A metric that is missing, null or no number in some step leaves a gap there. A step that was
# logged twice counts as it was logged last, since that is what a resumed run went on from.


@dataclass(frozen=True)
class Curve:
    """One metric of one run; all sequences are as long as `steps`."""

    steps: tuple[int, ...]
    values: tuple[float | None, ...]

    @property
    def known(self) -> list[float]:
        """The values that exist, in order."""
        return [value for value in self.values if value is not None]


def curve(records: Sequence[dict[str, Any]], key: str) -> Curve | None:
    """One metric over the steps of one phase; None where no step has it."""
    by_step = {record["step"]: record.get(key) for record in records}
    steps = tuple(sorted(by_step))
    column = (by_step[step] for step in steps)
    values = tuple(float(value) if is_drawable(value) else None for value in column)
    return Curve(steps, values) if any(value is not None for value in values) else None


def window(steps: int) -> int:
    """Over how many steps a curve is smoothed: a tenth of them, 1 to 25.

    >>> window(60), window(5)
    (6, 1)
    """
    return min(25, max(1, steps // 10))


def running_mean(values: Values, width: int) -> list[float | None]:
    """Mean of the last `width` values that exist among the last `width`; None where there is none.

    >>> running_mean([1.0, 3.0, None, 5.0], 2)
    [1.0, 2.0, 3.0, 5.0]
    """
    latest: deque[float | None] = deque(maxlen=width)
    means: list[float | None] = []
    for value in values:
        latest.append(value)
        present = [item for item in latest if item is not None]
        means.append(math.fsum(present) / len(present) if present else None)
    return means


def band(middle: Values, spread: Values) -> tuple[list[float | None], list[float | None]]:
    """Lower and upper edge of middle plus and minus spread; None in both where one is missing."""
    pairs = [
        (None, None) if m is None or s is None else (m - s, m + s)
        for m, s in zip(middle, spread, strict=True)
    ]
    return [low for low, _ in pairs], [high for _, high in pairs]


STEP_NAMES = {
    "grpo": "GRPO step",
    "warmup": "warm-up step",
    "selection": "GRPO step",
    "warmup-selection": "warm-up step",
}
AXES = {
    "grpo": "grpo",
    "warmup": "warmup",
    "selection": "grpo",
    "warmup-selection": "warmup",
}
"""Which plots count the same steps, and so are zoomed together."""
CROWDED = 3
"""More runs than this hide each other behind bands and thin lines, which are left out then."""
FAR = 2.0
"""A limit further up than this many times the highest value would press the curve flat."""


@dataclass
class Charts:
    """All plots over steps.

    Attributes:
        sections: Title and plots of each section that has any.
        missing: Titles of the plots that no run has numbers for.
        constant: The quiet series that never change, each with its value.
    """

    sections: list[tuple[str, list[Chart]]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    constant: list[str] = field(default_factory=list)


def metric_charts(runs: Sequence[RunView]) -> Charts:
    """The plots over steps that the runs have numbers for, and what is not drawn."""
    result = Charts()
    for section in SECTIONS:
        charts = _section(section, runs, result)
        if section.title == "Guards":
            charts = [*_guards(runs, result), *charts]
        if charts:
            result.sections.append((section.title, charts))
    return result


def _section(section: Section, runs: Sequence[RunView], result: Charts) -> list[Chart]:
    drawn: list[Chart] = []
    for plot in section.plots:
        curves = {
            series.key: [curve(run.metrics(plot.phase), series.key) for run in runs]
            for series in plot.series
        }
        if plot.is_usual and not any(one for each in curves.values() for one in each):
            result.missing.append(plot.title)
        present = tuple(s for s in plot.series if any(curves[s.key]))
        still = {
            s.key: value for s in present if (value := _constant(s, curves[s.key])) is not None
        }
        for series in present:
            if series.key in still:
                text = _value_text(still[series.key], plot.unit)
                result.constant.append(f"{series.name} ({text})")
        present = tuple(series for series in present if series.key not in still)
        for part in _parts(plot, present, len(runs)):
            drawn.append(_chart(plot, part, curves, runs))
    return drawn


def _constant(series: Series, curves: Sequence[Curve | None]) -> float | None:
    """The one value that a quiet series has at every step of every run; None where it changes."""
    values = {value for one in curves if one for value in one.known}
    return values.pop() if series.is_quiet and len(values) == 1 else None


def _value_text(value: float, unit: Unit) -> str:
    return f"{value * 100:.4g} %" if unit == "share" else f"{value:.4g}"


def _parts(plot: Plot, series: tuple[Series, ...], runs: int) -> list[tuple[Series, ...]]:
    """Several runs need the legend for themselves, so then each series has its own plot."""
    if runs == 1:
        return [series] if series else []
    return [(one,) for one in series]


def _chart(
    plot: Plot,
    shown: Sequence[Series],
    curves: dict[str, list[Curve | None]],
    runs: Sequence[RunView],
) -> Chart:
    lines: list[Line] = []
    levels: list[Level] = []
    sentences: list[str] = []
    for place, run in enumerate(runs):
        for number, series in enumerate(shown):
            data = curves[series.key][place]
            if data is None:
                continue
            label = run.label if len(runs) > 1 else series.name
            of = _number(run, runs)
            lines.append(_line(plot, series, data, run, label, number + run.style, of))
            levels += _levels(series.key, data, run, of)
            sentences.append(_in_words(label, data, plot.unit))
    if len(runs) > CROWDED:
        lines = [replace(line, faint=(), low=(), high=()) for line in lines]
    title = plot.title if len(runs) == 1 or plot.band else shown[0].name
    drawing = line_plot(
        lines,
        " ".join(sentences),
        STEP_NAMES[plot.phase],
        plot.unit,
        levels=_named_once(levels),
        from_zero=plot.from_zero,
        axis=AXES[plot.phase],
    )
    note = _note(plot, shown, lines, levels)
    return Chart(title, note, drawing, has_legend=len(lines) > 1 or len(runs) > 1)


def _number(run: RunView, runs: Sequence[RunView]) -> int | None:
    """The number of a run, by which a reader switches it off; None on the page of a single one."""
    return run.style if len(runs) > 1 else None


def _note(
    plot: Plot, shown: Sequence[Series], lines: Sequence[Line], levels: Sequence[Level]
) -> str:
    """The text under a plot: its meaning, and how to read it."""
    if len(shown) == 1:
        parts = [f"{shown[0].meaning[:1].upper()}{shown[0].meaning[1:]}."]
    else:
        parts = [f"{series.name}: {series.meaning}." for series in shown]
    parts += [plot.note] if plot.note else []
    if plot.spread_note and any(line.low for line in lines):
        parts.append(plot.spread_note)
    width = max(window(len(line.x)) for line in lines) if plot.is_smoothed else 1
    if width > 1:
        thin = "; thin: each step" if any(line.faint for line in lines) else ""
        parts.append(f"{'Thick: mean' if thin else 'Mean'} of the last {width} steps{thin}.")
    if levels:
        parts.append("Dotted: the limits of the guards.")
    return " ".join(parts)


def _levels(key: str, data: Curve, run: RunView, of: int | None) -> list[Level]:
    """The limits of the run's guards that can be shown beside the curve."""
    highest = max(data.known)
    return [
        Level(limit.name, run.style, limit.value, limit.since, of)
        for limit in limits(key, data.steps, data.values, run.guards)
        if limit.value <= FAR * highest
    ]


def _named_once(levels: Sequence[Level]) -> list[Level]:
    """The levels, with a name where it is the only one of that name."""
    names = Counter(level.name for level in levels)
    return [level if names[level.name] == 1 else replace(level, name="") for level in levels]


def _line(
    plot: Plot,
    series: Series,
    data: Curve,
    run: RunView,
    label: str,
    style: int,
    of: int | None,
) -> Line:
    width = window(len(data.steps)) if plot.is_smoothed else 1
    middle = running_mean(data.values, width)
    low: list[float | None] = []
    high: list[float | None] = []
    if plot.spread and series is plot.series[0]:
        spread = curve(run.metrics(plot.phase), plot.spread)
        if spread is not None:
            low, high = band(middle, running_mean(spread.values, width))
    if plot.band and series is plot.series[0]:
        edges = [curve(run.metrics(plot.phase), key) for key in plot.band]
        low, high = (list(edge.values) if edge is not None else [] for edge in edges)
    faint = data.values if width > 1 else ()
    return Line(label, style, data.steps, middle, faint, low, high, of)


def _in_words(label: str, data: Curve, unit: Unit) -> str:
    first, last = (number_text(value, 0.01, unit) for value in (data.known[0], data.known[-1]))
    return f"{label}: from {first} to {last} over {len(data.steps)} steps."


def _guards(runs: Sequence[RunView], result: Charts) -> list[Chart]:
    """The plot of the guards' actions; a sentence where they took none."""
    curves = [(run, curve(run.metrics("grpo"), SEVERITY)) for run in runs]
    seen = [_incidents(run, one, _number(run, runs)) for run, one in curves if one is not None]
    if not seen:
        result.missing.append("Guards")
        return []
    if not any(one.severities for one in seen):
        result.constant.append("Guards (ok)")
        return []
    last = max(one.steps[-1] for _, one in curves if one is not None)
    sentence = " ".join(
        f"{one.label + ': ' if len(runs) > 1 else 'They acted '}{one.in_words(ACTIONS)}"
        for one in seen
    )
    drawing = guard_plot(seen, ACTIONS, sentence, last, AXES["grpo"])
    return [Chart("What the guards did", sentence, drawing, has_legend=len(runs) > 1)]


def _incidents(run: RunView, data: Curve, of: int | None) -> Incidents:
    """The steps at which the guards of a run acted."""
    pairs = [(step, v) for step, v in zip(data.steps, data.values, strict=True) if v is not None]
    severities = {step: min(round(v), len(ACTIONS) - 1) for step, v in pairs if round(v) > 0}
    return Incidents(run.label, run.style, len(pairs), severities, of)


def accuracy_chart(runs: Sequence[RunView]) -> Chart | None:
    """Accuracy before and after with its intervals; None where no run has any.

    Of one run all evaluations, of several the first of each.
    """
    shown = [(run.label, run.style, run.evaluations[0], _number(run, runs)) for run in runs]
    if len(runs) == 1:
        shown = [(on.name, style, on, None) for style, on in enumerate(runs[0].evaluations)]
    series = [
        Points(label, style, [_point(on.before), _point(on.after)], of)
        for label, style, on, of in shown
    ]
    series = [one for one in series if any(one.points)]
    if not series:
        return None
    description = "; ".join(
        f"{one.label or 'accuracy'}: " + " to ".join(_share(point) for point in one.points)
        for one in series
    )
    names = {on.name for _, _, on, _ in shown}
    title = f"Accuracy on {names.pop()}" if len(names) == 1 and all(names) else "Accuracy"
    drawing = point_plot(series, ("before", "after"), description, "share")
    how = "" if any(on.is_sampled for _, _, on, _ in shown) else "Greedy. "
    note = f"{how}Bars are 95 % intervals."
    return Chart(title, note, drawing, has_legend=len(shown) > 1)


def _share(point: Point | None) -> str:
    return "unknown" if point is None else number_text(point.value, 0.001, "share")


def _point(evaluation: Record) -> Point | None:
    accuracy = evaluation.get("accuracy")
    if not is_drawable(accuracy):
        return None
    return Point(accuracy, *(interval(evaluation) or (accuracy, accuracy)))


def _after(run: RunView) -> str:
    return "evaluated" if run.is_evaluation else "after"


ENDINGS = ("right", "wrong answer", "no answer", "unscored")


def endings_chart(run: RunView) -> Chart | None:
    """The endings of one run's evaluated episodes, before and after; None without episodes."""
    series = []
    for phase, episodes in (("before", run.episodes_before), (_after(run), run.episodes_after)):
        counts = Counter(_ending(episode) for episode in episodes)
        if episodes:
            shares = [counts[ending] / len(episodes) for ending in ENDINGS]
            series.append(Bars(phase, int(phase == "after"), shares))
    if not series:
        return None
    places = [i for i in range(len(ENDINGS)) if i < 3 or any(one.heights[i] for one in series)]
    names = [ENDINGS[i] for i in places]
    bars = [Bars(one.label, one.style, [one.heights[i] for i in places]) for one in series]
    drawing = bar_plot(bars, names, "Shares of the episodes.", "share")
    note = "Share of the evaluated episodes. No answer: the budget was spent, or the model stopped."
    return Chart("How episodes ended", note, drawing, has_legend=len(bars) > 1)


def _ending(episode: Record) -> str:
    if episode.get("scored") is False:
        return "unscored"
    if episode.get("correct"):
        return "right"
    return "wrong answer" if episode.get("answered") else "no answer"
