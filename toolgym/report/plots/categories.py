"""Plots of a few values side by side: points with intervals, and bars.

They show what was measured once, before and after a training, where `lines` shows what was measured
at each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolgym.report.numbers import Unit, exact_text, is_drawable
from toolgym.report.plots.vega import (
    CARD,
    TIP,
    Drawing,
    Json,
    LegendEntry,
    Values,
    colour,
    entries_of,
    number,
    share_or_number,
    shown,
    specification,
    vertical,
)
from toolgym.sanitize import visible

CROWDED: Final = 8
"""With more points or bars side by side than this, their values are told to the pointer only."""


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
    run: int | None = None


@dataclass(frozen=True)
class Bars:
    """One bar for each category."""

    label: str
    style: int
    heights: Values


def point_plot(
    series: Sequence[Points], categories: Sequence[str], words: str, unit: Unit = "number"
) -> Drawing:
    """Points with error bars: one category beside the other, in each of them the series.

    Their values are written beside them where there is room; the pointer is told them in any case.
    """
    entries = entries_of(((one.label, one.style, one.run) for one in series), "point")
    values = [
        {
            "k": entry.key,
            "c": visible(categories[place]),
            "y": number(point.value),
            "low": share_or_number(point.low, unit),
            "high": share_or_number(point.high, unit),
            "text": exact_text(point.value, unit),
            "tip": f"{entry.label or 'value'}, {visible(categories[place])}:"
            f" {_with_interval(point, unit)}",
        }
        for one, entry in zip(series, entries, strict=True)
        for place, point in enumerate(one.points)
        if point is not None
    ]
    upward = vertical("y", unit)
    ends = {"y": vertical("low", unit), "y2": {"field": "high"}, "tooltip": TIP}
    layers: list[Json] = [
        {"mark": {"type": "line", "strokeWidth": 1.2, "opacity": 0.5}, "encoding": {"y": upward}},
        {"mark": {"type": "rule", "strokeWidth": 1.8}, "encoding": ends},
        *(
            {"mark": {"type": "tick", "size": 12, "thickness": 1.8}, "encoding": {"y": edge}}
            for edge in (vertical("low", unit), vertical("high", unit))
        ),
        {
            "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1, "stroke": CARD},
            "encoding": {"y": upward, "tooltip": TIP},
        },
    ]
    if len(values) <= CROWDED:
        layers.append(_written("y", upward, align="left", dx=9))
    spec = _by_category(words, layers, entries, values, categories)
    rows = tuple(
        (
            visible(name),
            *(_with_interval(point, unit) for one in series for point in one.points[place:][:1]),
        )
        for place, name in enumerate(categories)
    )
    columns = ("", *(entry.label or "value" for entry in entries))
    return Drawing(spec, words, entries, columns, rows, is_share=unit == "share")


def _with_interval(point: Point | None, unit: Unit) -> str:
    if point is None:
        return exact_text(None, unit)
    low, high = (exact_text(end, unit) for end in (point.low, point.high))
    value = exact_text(point.value, unit)
    return value if low == high else f"{value} [{low.removesuffix(' %')}, {high}]"


def bar_plot(
    series: Sequence[Bars], categories: Sequence[str], words: str, unit: Unit = "number"
) -> Drawing:
    """Bars: one category beside the other, in each of them one bar for each series."""
    entries = entries_of(((one.label, one.style, None) for one in series), "bar")
    values = [
        {
            "k": entry.key,
            "c": visible(categories[place]),
            "y": number(height),
            "text": exact_text(height, unit),
            "tip": f"{entry.label}, {visible(categories[place])}: {exact_text(height, unit)}",
        }
        for one, entry in zip(series, entries, strict=True)
        for place, height in enumerate(one.heights)
        if height is not None and is_drawable(height)
    ]
    upward = vertical("y", unit)
    bars = {"mark": {"type": "bar"}, "encoding": {"y": upward, "tooltip": TIP}}
    layers: list[Json] = [bars]
    if len(values) <= 2 * CROWDED:
        layers.append(_written("y", upward, baseline="bottom", dy=-3))
    spec = _by_category(words, layers, entries, values, categories)
    rows = tuple(
        (visible(name), *(exact_text(one.heights[place], unit) for one in series))
        for place, name in enumerate(categories)
    )
    columns = ("", *(entry.label for entry in entries))
    return Drawing(spec, words, entries, columns, rows, is_share=unit == "share")


def _written(field: str, upward: Json, **mark: object) -> Json:
    """A layer with the values as text, which has a border of the ground's colour."""
    return {
        "mark": {"type": "text", "fontWeight": 600, **mark},
        "encoding": {
            "y": {**upward, "field": field},
            "text": {"field": "text"},
            "color": {"value": "var(--ink)"},
        },
    }


def _by_category(
    words: str,
    layers: Sequence[Json],
    entries: Sequence[LegendEntry],
    values: Sequence[Json],
    categories: Sequence[str],
) -> Json:
    """A specification with categories from left to right, and in each the series side by side."""
    across = {
        "field": "c",
        "type": "nominal",
        "title": None,
        "scale": {"domain": [visible(name) for name in categories], "padding": 0.2},
        "axis": {"labelAngle": 0, "labelLimit": 110, "ticks": False, "labelFontSize": 12},
    }
    beside = {"field": "k", "type": "nominal", "scale": {"domain": [e.key for e in entries]}}
    return specification(
        words,
        layers,
        data={"values": list(values)},
        transform=shown(),
        encoding={"x": across, "xOffset": beside, "color": colour(entries)},
    )
