"""Lines over steps, with bands, levels, and a rule at the step that the pointer is told of.

Whatever is not a finite number is a gap, never a zero. `lo`, `hi` and `at` are parameters of the
specification. The page sets the first two in all plots over the same steps when a reader zooms in
one, and the vertical axis follows what is seen; `at` is the step nearest to the pointer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from toolgym.report.numbers import Unit
from toolgym.report.plots.vega import (
    COLOURS,
    HOVER,
    SOFT,
    ZOOM,
    Drawing,
    Json,
    LegendEntry,
    Values,
    axis_title,
    cells,
    colour,
    dashes,
    entries_of,
    number,
    share_or_number,
    shown,
    specification,
    thinned,
    vertical,
)
from toolgym.sanitize import visible

DATA: Final = "lines"
"""The data of all lines of a plot, which several layers draw."""


@dataclass(frozen=True)
class Line:
    """One line over steps.

    Attributes:
        x: Ascending; as long as all that follow.
        y: The thick line.
        faint: A thin one behind it; empty for none.
        low: Lower edge of the band; empty for none.
        high: Upper edge of the band.
        run: The number of its run, where the page shows several.
    """

    label: str
    style: int
    x: Sequence[float]
    y: Values
    faint: Values = ()
    low: Values = ()
    high: Values = ()
    run: int | None = None


@dataclass(frozen=True)
class Level:
    """A value that something begins or ends at, as a thin line across the plot.

    Attributes:
        name: Written above its right end; empty where the legend has to do.
        value: Where it lies.
        since: The step from which it holds.
        run: The number of its run, where the page shows several.
    """

    name: str
    style: int
    value: float
    since: float
    run: int | None = None


def line_plot(
    lines: Sequence[Line],
    words: str,
    label: str,
    unit: Unit = "number",
    *,
    levels: Sequence[Level] = (),
    from_zero: bool = True,
    axis: str = "",
) -> Drawing:
    """Lines over steps, each with an optional band and a faint line behind it.

    Args:
        lines: What to draw; the first is drawn last, on top.
        words: What is seen, in words.
        label: What the steps count.
        levels: Drawn behind the lines.
        from_zero: The vertical axis shows 0.
        axis: Plots of the same name are zoomed together.
    """
    entries = entries_of((line.label, line.style, line.run) for line in lines)
    steps = sorted({float(x) for line in lines for x in line.x})
    values = [each for pair in zip(lines, entries, strict=True) for each in _values(*pair, unit)]
    spec = specification(
        words,
        _layers(values, levels, entries, label, unit, from_zero=from_zero),
        params=_span(steps),
        datasets={DATA: values[::-1]},
    )
    by_step = [dict(zip(line.x, line.faint or line.y, strict=False)) for line in lines]
    rows = tuple(_row(steps[place], by_step, unit) for place in thinned(len(steps)))
    columns = (label, *(entry.label for entry in entries))
    return Drawing(spec, words, entries, columns, rows, axis, unit == "share")


def _span(steps: Sequence[float]) -> list[Json]:
    low, high = (steps[0], steps[-1]) if steps else (0.0, 1.0)
    if low == high:
        low, high = low - 1, high + 1
    return [
        {"name": "lo", "value": low},
        {"name": "hi", "value": high},
        {"name": "at", "value": None},
    ]


def _layers(
    values: Sequence[Json],
    levels: Sequence[Level],
    entries: Sequence[LegendEntry],
    label: str,
    unit: Unit,
    *,
    from_zero: bool,
) -> list[Json]:
    """The layers, from the back to the front."""
    across = {
        "field": "x",
        "type": "quantitative",
        "title": axis_title(label),
        "scale": {"domainMin": {"expr": "lo"}, "domainMax": {"expr": "hi"}, "nice": False},
        "axis": {"tickMinStep": 1, "labelOverlap": True, "labelFlush": False},
    }
    shared = {"x": across, "color": colour(entries)}
    data = {"data": {"name": DATA}, "transform": shown("datum.x >= lo", "datum.x <= hi")}
    upward = {"y": vertical("y", unit, from_zero=from_zero)}
    if not any(value.get(key) for value in values for key in ("y", "raw", "low", "high")):
        upward["y"]["scale"] = {"domain": [0, 1]}  # nothing but zeros has no height of its own
    layers: list[Json] = []
    if any("low" in value for value in values):
        edges = {"y": vertical("low", unit, from_zero=from_zero), "y2": {"field": "high"}}
        mark = {"type": "area", "opacity": 0.13, "tooltip": None}
        layers.append({**data, "mark": mark, "encoding": {**shared, **edges}})
    layers += _level_layers(levels, entries, across, vertical("y", unit, from_zero=from_zero))
    if any("raw" in value for value in values):
        thin = {"y": vertical("raw", unit, from_zero=from_zero)}
        mark = {"type": "line", "strokeWidth": 1, "opacity": 0.38}
        layers.append({**data, "mark": mark, "encoding": {**shared, **thin}})
    mark = {"type": "line", "strokeWidth": 2.2, "strokeCap": "round"}
    encoding = {**shared, **upward, "strokeDash": dashes(entries)}
    layers.append({**data, "mark": mark, "encoding": encoding})
    if any("alone" in value for value in values):
        alone = {**data, "transform": [*data["transform"], {"filter": "datum.alone"}]}
        dot = {"type": "point", "filled": True, "size": 30, "opacity": 1}
        layers.append({**alone, "mark": dot, "encoding": {**shared, **upward}})
    return [*layers, _hover_layer(across)]


def _values(line: Line, entry: LegendEntry, unit: Unit) -> list[Json]:
    """The rows of a line's data; one without a neighbour is marked, since no line leads to it."""
    middle = [number(y) for y in line.y]
    rows: list[Json] = []
    for place, (x, y) in enumerate(zip(line.x, middle, strict=False)):
        row: Json = {"k": entry.key, "x": int(x) if float(x).is_integer() else float(x), "y": y}
        if line.faint:
            row["raw"] = number(line.faint[place])
        if line.low and line.high:
            row["low"] = share_or_number(line.low[place], unit)
            row["high"] = share_or_number(line.high[place], unit)
        around = [*middle[max(place - 1, 0) : place], *middle[place + 1 : place + 2]]
        if y is not None and not any(each is not None for each in around):
            row["alone"] = True
        rows.append(row)
    return rows


def _level_layers(
    levels: Sequence[Level], entries: Sequence[LegendEntry], across: Json, upward: Json
) -> Iterable[Json]:
    """Dotted rules from where a level holds to the right edge, and its name at their end."""
    keys = {entry.run: entry.key for entry in entries if entry.run is not None}
    edge = {**across, "datum": {"expr": "hi"}}
    del edge["field"]
    for level in levels:
        row = {
            "k": "" if level.run is None else keys.get(level.run, ""),
            "x": level.since,
            "y": number(level.value),
        }
        common = {
            "data": {"values": [{**row, "name": visible(level.name)}]},
            "transform": [*shown("datum.x <= hi"), {"calculate": "max(datum.x, lo)", "as": "from"}],
        }
        rule = {"type": "rule", "strokeWidth": 1.4, "strokeDash": [1, 4], "strokeCap": "round"}
        tint = {"value": f"var(--s{level.style % COLOURS})"}
        ends = {"x": {**across, "field": "from"}, "x2": {"datum": {"expr": "hi"}}}
        yield {**common, "mark": rule, "encoding": {**ends, "y": upward, "color": tint}}
        text = {"type": "text", "align": "right", "baseline": "bottom", "dy": -2, "color": SOFT}
        place = {"x": edge, "y": upward, "text": {"field": "name"}}
        yield {**common, "mark": text, "encoding": place}


def _hover_layer(across: Json) -> Json:
    """A rule at the step nearest to the pointer, which the page sets, as it tells its values.

    Vega could find that step by itself, from a mark for each; a page of long runs would have tens
    of thousands of them.
    """
    return {
        "data": {"values": [{}]},
        "transform": [{"calculate": "at", "as": "x"}, {"filter": "isNumber(datum.x)"}],
        "params": [ZOOM],
        "mark": HOVER,
        "encoding": {"x": across, "opacity": {"value": 0.7}},
    }


def _row(
    step: float, by_step: Sequence[Mapping[float, float | None]], unit: Unit
) -> tuple[str, ...]:
    """The values of one step; each as it was logged where the line is smoothed."""
    return (f"{step:g}", *cells((values.get(step) for values in by_step), unit))
