"""Two plots of a few values side by side: points with error bars, and bars.

They show what was measured once, before and after a training, where `plot` shows what was measured
at each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolgym.report.plots.axes import (
    HEIGHT,
    LEFT,
    RIGHT,
    WIDTH,
    Axis,
    Unit,
    element,
    frame,
    is_drawable,
    number_text,
    upward,
)
from toolgym.report.plots.lines import Values, box, figure, path_of, style_class
from toolgym.statistics import Share

WRITTEN = 50.0
"""Room that a written value needs beside its point."""


@dataclass(frozen=True)
class Point:
    """A value with the interval it may lie in."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Points:
    """One point for each category, joined by a thin line."""

    label: str
    style: int
    points: Sequence[Point | None]


@dataclass(frozen=True)
class Bars:
    """One bar for each category."""

    label: str
    style: int
    heights: Values


def point_plot(
    series: Sequence[Points],
    categories: Sequence[str],
    title: str,
    description: str,
    unit: Unit = "number",
) -> str:
    """Points with error bars: one category beside the other, in each of them the series.

    Their values are written beside them where there is room; the pointer is told them in any case.
    """
    points = [point for one in series for point in one.points if point is not None]
    vertical = upward((v for p in points for v in (p.value, p.low, p.high)), unit)
    slot = (WIDTH - LEFT - RIGHT) / len(categories)
    gap = slot / (len(series) + 1)
    drawn = [
        _points(
            one,
            [LEFT + slot * i + gap * (number + 1) for i in range(len(categories))],
            vertical,
            has_room=gap > WRITTEN,
        )
        for number, one in enumerate(series)
    ]
    names = _category_names(categories)
    return figure([frame(vertical, None, ""), names, *drawn], title, description)


def bar_plot(
    series: Sequence[Bars],
    categories: Sequence[str],
    title: str,
    description: str,
    unit: Unit = "number",
) -> str:
    """Bars: one category beside the other, in each of them one bar for each series."""
    heights = [v for one in series for v in one.heights if v is not None]
    vertical = upward(heights, unit)
    slot = (WIDTH - LEFT - RIGHT) / len(categories)
    width = slot * 0.8 / len(series)
    drawn = [
        _bar(one, height, LEFT + slot * (i + 0.1) + width * number, width, vertical)
        for number, one in enumerate(series)
        for i, height in enumerate(one.heights)
        if height is not None and is_drawable(height)
    ]
    names = _category_names(categories)
    return figure([frame(vertical, None, ""), names, *drawn], title, description)


def _points(series: Points, places: Sequence[float], vertical: Axis, *, has_room: bool) -> str:
    present = [
        (x, point) for x, point in zip(places, series.points, strict=False) if point is not None
    ]
    joined = [(x, vertical.place(point.value)) for x, point in present]
    parts = [element("path", class_="joint", d=path_of(joined))] if len(joined) > 1 else []
    for x, point in present:
        y, low, high = (vertical.place(v) for v in (point.value, point.low, point.high))
        shown = number_text(point.value, vertical.step / 100, vertical.unit)
        parts.append(element("line", class_="error", x1=x, x2=x, y1=low, y2=high))
        for end in (low, high):
            parts.append(element("line", class_="error", x1=x - 6, x2=x + 6, y1=end, y2=end))
        title = element("title", text=f"{series.label}: {shown}")
        parts.append(element("circle", title, class_="point", cx=x, cy=y, r=5))
        if has_room:
            parts.append(element("text", class_="value", x=x + 10, y=y + 4, text=shown))
    return element("g", *parts, class_=style_class(series.style))


def _bar(series: Bars, height: float, x: float, width: float, vertical: Axis) -> str:
    zero, top = vertical.place(0.0), vertical.place(height)
    counted = vertical.unit == "number" and float(height).is_integer()
    shown = number_text(height, 1 if counted else vertical.step / 100, vertical.unit)
    title = element("title", text=f"{series.label}: {shown}")
    bar = box(title, "bar", x + 1, min(zero, top), width - 2, abs(zero - top))
    above = min(zero, top) - 4
    value = element("text", class_="value mid", x=x + width / 2, y=above, text=shown)
    return element("g", bar, value, class_=style_class(series.style))


def _category_names(categories: Sequence[str]) -> str:
    slot = (WIDTH - LEFT - RIGHT) / len(categories)
    return "".join(
        element("text", class_="tick mid", x=LEFT + slot * (i + 0.5), y=HEIGHT - 22, text=name)
        for i, name in enumerate(categories)
    )


# Shares of things with long names, as bars that lie: the name above, the 95 % interval at the end.
#
# `category_plots` has room for names of a word or two. A workflow or a query needs a line of its
# own, so here each name stands over its bars, one bar for each series; what is too long even so is
# cut, and told whole to the pointer.

LONGEST_NAME = 66
_NAME, _BAR, _GAP = 18.0, 14.0, 8.0
_NUMBER = 60.0


@dataclass(frozen=True)
class ShareBars:
    """One bar for each name.

    Attributes:
        shares: As many as there are names; a share of nothing has no bar.
    """

    label: str
    style: int
    shares: Sequence[Share]


def share_bars(
    series: Sequence[ShareBars], names: Sequence[str], title: str, description: str
) -> str:
    """The bars as SVG, from the first name down.

    Args:
        names: What the shares are of.
    """
    highest = max(
        (one.interval[1] for each in series for one in each.shares if one.of), default=1.0
    )
    scale = (WIDTH - _NUMBER) / highest
    row = _NAME + _BAR * len(series) + _GAP
    parts = []
    for place, name in enumerate(names):
        top = place * row
        short = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
        whole = element("title", text=name)
        parts.append(element("text", whole, x=0, y=top + 13, text=short))
        for number, each in enumerate(series):
            parts.append(_share_bar(each, each.shares[place], top + _NAME + number * _BAR, scale))
    texts = element("title", text=title) + element("desc", text=description)
    box = f"0 0 {WIDTH:g} {max(len(names), 1) * row:g}"
    return element("svg", texts, *parts, class_="plot", viewBox=box, role="img", aria_label=title)


def _share_bar(series: ShareBars, share: Share, y: float, scale: float) -> str:
    if share.value is None:
        return ""
    title = element("title", text=f"{series.label}: {share} ({share.count:,} of {share.of:,})")
    width, height = max(share.value * scale, 0.5), _BAR - 2
    low, high = (end * scale for end in share.interval)
    middle = y + height / 2
    bar = element("rect", title, class_="bar", x=0, y=y, width=width, height=height)
    error = element("line", class_="error", x1=low, x2=high, y1=middle, y2=middle)
    shown = number_text(share.value, 0.001, "share")
    value = element("text", class_="value", x=high + 6, y=y + 10, text=shown)
    return element("g", bar, error, value, class_=style_class(series.style))
