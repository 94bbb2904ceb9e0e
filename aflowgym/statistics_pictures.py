"""The pictures of a set of rollouts: which workflows are liked, and how varied they are over time.

Each function is pure and gives charts that any page of `toolgym.report` can show; none where there
is nothing to draw. Before and after a training stand side by side where there are both, so that
what was learnt can be seen at a glance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup

from aflowgym.statistics_reading import Reading
from aflowgym.statistics_time import Moment, by_phase_of, diversity, entropy, ranked
from toolgym.report.charts import Chart
from toolgym.report.plot import Line, line_plot, swatch
from toolgym.report.share_bars import ShareBars, share_bars
from toolgym.statistics import Share


def favourites_chart(found: Sequence[Reading], top: int = 10) -> tuple[Chart, ...]:
    """The most frequent workflows as bars, one series for each phase.

    Args:
        found: What the agents wrote.
        top: Workflows to show at most.
    """
    by_phase = by_phase_of(found)
    total = sum(by_phase.values(), Counter[str]())
    names = [text for text, _ in ranked(total)[:top]]
    if not names:
        return ()
    series = [
        ShareBars(phase or "all", style, [Share(counts[name], counts.total()) for name in names])
        for style, (phase, counts) in enumerate(by_phase.items())
        if counts
    ]
    told = "; ".join(f"{name}: {Share(total[name], total.total())}" for name in names)
    legend = tuple((Markup(swatch(one.style, bar=True)), one.label) for one in series)
    note = "Share of the valid workflows; lines are 95 % Wilson intervals."
    title = "Favourite workflows"
    svg = Markup(share_bars(series, names, title, told))
    return (Chart(title, note, svg, legend if len(legend) > 1 else ()),)


def time_charts(told: Sequence[Moment]) -> tuple[Chart, ...]:
    """Validity, diversity and the favourite's share over time, and the entropy.

    Args:
        told: From `moments`; fewer than two have no course.
    """
    if len(told) < 2:
        return ()
    x, axis = _places(told), _axis(told)
    validity = [moment.validity for moment in told]
    lines = [
        Line(
            "with a valid workflow",
            0,
            x,
            [one.value for one in validity],
            low=[one.interval[0] for one in validity],
            high=[one.interval[1] for one in validity],
        ),
        Line("diversity", 1, x, [_known(diversity(moment.counts)) for moment in told]),
        Line("share of the favourite", 2, x, [moment.favourite[1].value for moment in told]),
    ]
    title, words = "Validity and diversity", "; ".join(_in_words(line, "share") for line in lines)
    legend = tuple((Markup(swatch(line.style)), line.label) for line in lines)
    note = (
        "Diversity is the chance that two valid workflows differ; a policy that collapses writes"
        " one workflow for all. The band is the 95 % Wilson interval of the rollouts with a valid"
        " workflow."
    )
    drawn = Chart(title, note, Markup(line_plot(lines, title, words, axis, "share")), legend)
    return drawn, _entropy_chart(told, x, axis)


def _entropy_chart(told: Sequence[Moment], x: Sequence[float], axis: str) -> Chart:
    line = Line("entropy", 3, x, [_known(entropy(moment.counts)) for moment in told])
    title = "Entropy of the workflows"
    note = "In nats, of the distribution of valid workflows by their canonical text."
    return Chart(title, note, Markup(line_plot([line], title, _in_words(line, ""), axis)))


def _axis(told: Sequence[Moment]) -> str:
    around = [moment.phase for moment in told if moment.first is None]
    return f"step; the points at the ends: {' and '.join(around)}" if around else "step"


def _places(told: Sequence[Moment]) -> list[float]:
    """The middle step of each moment; one around the training lies a window beside it."""
    steps = [moment for moment in told if moment.first is not None and moment.last is not None]
    last = max((moment.last or 0 for moment in steps), default=0)
    places, beside = [], 0
    for moment in told:
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
    known = [value for value in line.y if value is not None]
    if not known:
        return f"{line.label}: unknown"
    first, last = (f"{100 * v:.0f} %" if unit else f"{v:.2f}" for v in (known[0], known[-1]))
    return f"{line.label}: from {first} to {last}"
