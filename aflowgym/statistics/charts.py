"""The pictures of a set of rollouts: which workflows are liked, their cost, how varied they are.

Each function is pure and gives charts that any page of `toolgym.report` can show; none where there
is nothing to draw. Before and after a training stand side by side where there are both, so that
what was learnt can be seen at a glance.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup

from aflowgym.statistics.counts import Gathered, Moment, Tally, diversity, entropy, rank
from aflowgym.statistics.regret import Regret
from aflowgym.statistics.workflow_svg import workflow_picture
from aflowgym.tasks.task import KINDS
from toolgym.report.plots.categories import ShareBars, share_bars
from toolgym.report.plots.lines import Line, line_plot
from toolgym.report.plots.points import Mark, Spot, Track, scatter_plot
from toolgym.statistics import Chart, Share

_ALIKE = re.compile(r"(?:(?<=\[)|(?<=, ))(\w+)((?:, \1)+)(?=[\],])")
_STEPS = "workflows"
"""These plots are zoomed together, beside those of the metrics: they have points around a run."""
_MARKS: dict[str, Mark] = {"before": "ring"}


def favourites_chart(gathered: Gathered, top: int = 10) -> tuple[Chart, ...]:
    """The most frequent workflows as bars, one series for each phase that is compared."""
    by_phase = {phase: gathered.by_phase[phase].counts for phase in gathered.compared}
    total = sum(by_phase.values(), Counter[str]())
    names = [text for text, _ in rank(total)[:top]]
    if not names:
        return ()
    series = [
        ShareBars(phase or "all", style, [Share(counts[name], counts.total()) for name in names])
        for style, (phase, counts) in enumerate(by_phase.items())
        if counts
    ]
    words = "; ".join(f"{name}: {Share(total[name], total.total())}" for name in names)
    note = "Share of the valid workflows; lines are 95 % Wilson intervals."
    drawing = share_bars(series, [shorten(name) for name in names], words)
    return (Chart("Favourite workflows", note, drawing, has_legend=len(series) > 1),)


def shorten(text: str) -> str:
    """A canonical text with equal branches written once; one with instructions stays as it is.

    >>> shorten("[Programmer, Programmer, Custom] -> ScEnsemble")
    '[Programmer * 2, Custom] -> ScEnsemble'
    """
    if '"' in text:
        return text
    return _ALIKE.sub(lambda alike: f"{alike[1]} * {1 + alike[2].count(',')}", text)


def favourite_pictures(gathered: Gathered) -> tuple[Chart, ...]:
    """For each kind of task the favourite of each phase that is compared, drawn."""
    drawn = []
    for kind in KINDS:
        for phase in gathered.compared:
            text, share = gathered.by_kind.get((kind, phase), Tally()).favourite
            if text:
                title = f"{kind}, {phase}" if phase else kind
                note = f"{share} of the valid workflows."
                drawn.append(Chart(title, note, picture=Markup(workflow_picture(text))))
    return tuple(drawn)


def accuracy_chart(gathered: Gathered, regret: Sequence[Regret] = ()) -> tuple[Chart, ...]:
    """Share right against mean calls, by kind of task, and where the best of the family lies."""
    best = {each.kind: each.best for each in regret}
    tracks = []
    for style, kind in enumerate(KINDS):
        spots = [
            _spot(phase, tally)
            for phase in gathered.compared
            if (tally := gathered.by_kind.get((kind, phase))) is not None and tally.scored
        ]
        if spots and kind in best:
            accuracy, calls, _ = best[kind].expectation
            name = f"the best of the stated family: {best[kind].workflow}"
            spots.append(Spot(name, calls, accuracy, accuracy, accuracy, "diamond", False))
        if spots:
            tracks.append(Track(kind, style, spots))
    if not tracks:
        return ()
    title, axis = "Accuracy against calls", "mean calls of a model by the operators of a rollout"
    words = "; ".join(f"{one.label}: {_spots_text(one.spots)}" for one in tracks)
    drawing = scatter_plot(tracks, words, axis, "share")
    note = "Share of the rollouts that ended right, with its 95 % Wilson interval."
    if "before" in gathered.compared:
        note += " Ring: before the training; disc: after it."
    note += " Diamond: what the best workflow of the stated family comes to." if best else ""
    return (Chart(title, note, drawing, has_legend=True),)


def _spot(phase: str, tally: Tally) -> Spot:
    low, high = tally.accuracy.interval
    mark = _MARKS.get(phase, "disc")
    return Spot(
        phase or "all", tally.mean_calls or 0.0, tally.accuracy.value or 0.0, low, high, mark
    )


def _spots_text(spots: Sequence[Spot]) -> str:
    return ", ".join(f"{one.name} {one.y:.1%} with {one.x:.1f} calls" for one in spots)


def time_charts(course: Sequence[Moment]) -> tuple[Chart, ...]:
    """Validity, diversity, entropy and the favourite's share over time; none of one moment."""
    if len(course) < 2:
        return ()
    x, axis = _places(course), _axis(course)
    validity = [moment.tally.validity for moment in course]
    lines = [
        Line(
            "with a valid workflow",
            0,
            x,
            [one.value for one in validity],
            low=[one.interval[0] for one in validity],
            high=[one.interval[1] for one in validity],
        ),
        Line("diversity", 1, x, [_known(diversity(each.tally.counts)) for each in course]),
        Line("share of the favourite", 2, x, [each.tally.favourite[1].value for each in course]),
    ]
    words = "; ".join(_in_words(line, "share") for line in lines)
    note = (
        "Diversity is the chance that two valid workflows differ; a policy that collapses writes"
        " one workflow for all. The band is the 95 % Wilson interval of the rollouts with a valid"
        " workflow."
    )
    drawing = line_plot(lines, words, axis, "share", axis=_STEPS)
    drawn = Chart("Validity and diversity", note, drawing, has_legend=True)
    return drawn, _entropy_chart(course, x, axis)


def _entropy_chart(course: Sequence[Moment], x: Sequence[float], axis: str) -> Chart:
    line = Line("entropy", 3, x, [_known(entropy(each.tally.counts)) for each in course])
    note = "In nats, of the distribution of valid workflows by their canonical text."
    drawing = line_plot([line], _in_words(line, ""), axis, axis=_STEPS)
    return Chart("Entropy of the workflows", note, drawing)


def _axis(course: Sequence[Moment]) -> str:
    around = [moment.phase for moment in course if moment.first is None]
    return f"step; the points at the ends: {' and '.join(around)}" if around else "step"


def _places(course: Sequence[Moment]) -> list[float]:
    """The middle step of each moment; one around the training lies a window beside it."""
    steps = [moment for moment in course if moment.first is not None and moment.last is not None]
    last = max((moment.last or 0 for moment in steps), default=0)
    places, beside = [], 0
    for moment in course:
        if moment.first is not None and moment.last is not None:
            places.append((moment.first + moment.last) / 2)
            beside = last + 1
        else:
            places.append(float(beside))
            beside += 1
    return places


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _in_words(line: Line, unit: str) -> str:
    values = [value for value in line.y if value is not None]
    if not values:
        return f"{line.label}: unknown"
    first, last = (f"{100 * v:.0f} %" if unit else f"{v:.2f}" for v in (values[0], values[-1]))
    return f"{line.label}: from {first} to {last}"
