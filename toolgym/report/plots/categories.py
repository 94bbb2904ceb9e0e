"""Plots of a few values side by side: points with intervals, bars, and bars that lie.

They show what was measured once, before and after a training, where `lines` shows what was measured
at each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolgym.report.markup import Unit, exact_text, is_drawable, number_text
from toolgym.report.plots.vega import (
    CARD,
    TIP,
    Json,
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
from toolgym.statistics import Drawing, LegendEntry, Share

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


# Shares of things with long names, as bars that lie: the name above, the 95 % interval at the end.
#
# The other plots have room for names of a word or two. A workflow or a query needs a line of its
# own, so here each name stands over its bars, one bar for each series; what is too long even so is
# cut, and told whole to the pointer and in the table.

LONGEST_NAME: Final = 66
_NAME: Final = "name"
_BAR: Final = 15


@dataclass(frozen=True)
class ShareBars:
    """One bar for each name.

    Attributes:
        shares: As many as there are names; a share of nothing has no bar.
    """

    label: str
    style: int
    shares: Sequence[Share]


def share_bars(series: Sequence[ShareBars], names: Sequence[str], words: str) -> Drawing:
    """The bars, from the first name down.

    Args:
        names: What the shares are of.
    """
    entries = entries_of(((one.label, one.style, None) for one in series), "bar")
    values = [
        {
            "k": entry.key,
            "n": place,
            "x": share.value,
            "low": share.interval[0],
            "high": share.interval[1],
            "text": number_text(share.value, 0.001, "share"),
            "tip": f"{entry.label}: {share} ({share.count:,} of {share.of:,})",
        }
        for one, entry in zip(series, entries, strict=True)
        for place, share in enumerate(one.shares)
        if share.value is not None
    ]
    written = [
        {"k": _NAME, "n": n, "text": _short(visible(name), LONGEST_NAME), "tip": visible(name)}
        for n, name in enumerate(names)
    ]
    spec = _lying(words, entries, values, written)
    rows = tuple(
        (visible(name), *(f"{one.shares[n]} ({one.shares[n].count:,})" for one in series))
        for n, name in enumerate(names)
    )
    return Drawing(spec, words, entries, ("", *(e.label for e in entries)), rows, is_share=True)


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _lying(
    words: str, entries: Sequence[LegendEntry], values: Sequence[Json], names: Sequence[Json]
) -> Json:
    down = {"field": "n", "type": "ordinal", "axis": None, "scale": {"paddingInner": 0.25}}
    slots = {"domain": [_NAME, *(entry.key for entry in entries)]}
    beside = {"field": "k", "type": "nominal", "scale": slots}
    room = 1.18 * max((value["high"] for value in values), default=1.0)  # for what is written
    along = {"type": "quantitative", "axis": None, "scale": {"domain": [0, room], "nice": False}}
    bars = {"data": {"values": list(values)}, "transform": shown()}
    width = {**along, "field": "x"}
    layers: list[Json] = [
        {
            "data": {"values": list(names)},
            "mark": {"type": "text", "align": "left", "baseline": "middle", "limit": 430},
            "encoding": {"x": {"value": 0}, "text": {"field": "text"}, "tooltip": TIP},
        },
        {
            **bars,
            "mark": {"type": "bar", "opacity": 0.75},
            "encoding": {"x": width, "color": colour(entries), "tooltip": TIP},
        },
        {
            **bars,
            "mark": {"type": "rule", "strokeWidth": 1.4, "color": "var(--ink)"},
            "encoding": {"x": {**along, "field": "low"}, "x2": {"field": "high"}},
        },
        {
            **bars,
            "mark": {"type": "text", "align": "left", "dx": 6, "fontWeight": 600},
            "encoding": {"x": {**along, "field": "high"}, "text": {"field": "text"}},
        },
    ]
    height = max(len(names), 1) * (_BAR * (len(entries) + 1) + 8)
    return specification(words, layers, height=height, encoding={"y": down, "yOffset": beside})
