"""What all plots have in common: colours, axes, legends and the table behind a plot.

A plot is a Vega-Lite specification, a JSON object that holds its data. Text from outside stands in
its data only, never in an expression or a name of a field, so that Vega shows it and reads no
meaning into it. Colours are the variables of the page's style sheet, which decides over light, dark
and print without a script.
A reader who cannot see colours is told by dashes what belongs together, one who cannot see the plot
by its description and its table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from toolgym.report.numbers import Unit, exact_text, is_drawable
from toolgym.sanitize import visible

SMALLEST: Final = 1e-150
"""What is nearer to 0 counts as 0: parts of smaller spans underflow."""
HEIGHT: Final = 200
COLOURS: Final = 6
"""Number of colors of series, which the style sheet names `--s0` to `--s5`."""
DASHES: Final = ([1, 0], [8, 4], [2, 4], [10, 4, 2, 4], [16, 5])
"""A style is one of each, so 30 differ."""
ROWS: Final = 40
"""Rows of the table behind a plot; of more steps, evenly chosen ones are shown."""
INK, SOFT, CARD = "var(--ink)", "var(--soft)", "var(--card)"
FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif'
CONFIG: Final[Mapping[str, Any]] = {
    "background": None,
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": SOFT,
        "titleColor": SOFT,
        "gridColor": "var(--grid)",
        "domainColor": SOFT,
        "tickColor": "var(--grid)",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelPadding": 4,
    },
    "axisX": {"grid": False},
    "axisY": {"domain": False, "ticks": False, "tickCount": 5},
    "text": {"color": INK, "fontSize": 11},
}

Json = dict[str, Any]
Values = Sequence[float | None]


@dataclass(frozen=True)
class LegendEntry:
    """One series of a plot.

    Attributes:
        key: Names it inside the plot's data.
        style: The number of its colour and dashes.
        run: The number of the run that it is of, where a page shows several; else None.
        mark: How its key looks in a legend.
    """

    key: str
    label: str
    style: int
    run: int | None = None
    mark: Literal["line", "bar", "point"] = "line"


@dataclass(frozen=True)
class Drawing:
    """A plot as data: a specification for the library that draws it, and a table for who reads.

    Attributes:
        spec: A Vega-Lite specification with its data in it.
        words: What it shows, in a sentence or a few.
        entries: Its series.
        columns: Names of the columns of its table; the first says what a row is of.
        rows: What it shows in numbers, as text.
        axis: Plots with the same name of an axis are zoomed together; empty for none.
        is_share: Values are shares, and written in percent.
    """

    spec: Json
    words: str
    entries: tuple[LegendEntry, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    axis: str = ""
    is_share: bool = False


@dataclass(frozen=True)
class Chart:
    """A plot under a title, as a page shows it.

    Attributes:
        has_legend: The title does not say by itself what is drawn.
    """

    title: str
    note: str
    drawing: Drawing
    has_legend: bool = False


def number(value: float | None) -> float | None:
    """A value as it stands in the data: six digits; None, a gap, for what cannot be drawn."""
    if not is_drawable(value):
        return None
    return float(f"{value:.6g}") if abs(value) >= SMALLEST else 0.0


def share_or_number(value: float | None, unit: Unit) -> float | None:
    """The same for an edge of an interval: a share ends at 0 and 1, even where a band goes on."""
    known = number(value)
    return known if known is None or unit == "number" else min(max(known, 0.0), 1.0)


_SPLITTING: Final = str.maketrans(
    {'"': "\u201d", "\\": "\u2216", "\n": " ", "\u2028": " ", "\u2029": " "}
)


def axis_title(text: str) -> str:
    """A text as the title of an axis, without what would end a text in JavaScript.

    Vega-Lite describes each mark for screen readers by an expression, and writes the titles of axes
    into it as they are.

    >>> print(axis_title('the "step"'))
    the ”step”
    """
    return visible(text).translate(_SPLITTING)


def specification(words: str, layers: Sequence[Json], *, height: int = HEIGHT, **more: Any) -> Json:
    """A whole specification.

    Args:
        words: The description, for who cannot see it.
        layers: From the back to the front.
        more: What else stands at its top, such as `encoding`.
    """
    return {
        "description": visible(words),
        "width": "container",
        "height": height,
        "autosize": {"type": "fit", "contains": "padding"},
        "params": [{"name": "off", "value": []}, *more.pop("params", ())],
        **more,
        "layer": list(layers),
    }


def shown(*conditions: str) -> list[Json]:
    """The filter that leaves out the series that the reader switched off."""
    return [{"filter": " && ".join(["indexof(off, datum.k) < 0", *conditions])}]


def colour(entries: Sequence[LegendEntry]) -> Json:
    """The encoding of the series' colours."""
    scale = {
        "domain": [entry.key for entry in entries],
        "range": [f"var(--s{entry.style % COLOURS})" for entry in entries],
    }
    return {"field": "k", "type": "nominal", "scale": scale, "legend": None}


def dashes(entries: Sequence[LegendEntry]) -> Json:
    """The encoding of their dashes."""
    scale = {
        "domain": [entry.key for entry in entries],
        "range": [DASHES[entry.style % len(DASHES)] for entry in entries],
    }
    return {"field": "k", "type": "nominal", "scale": scale, "legend": None}


def vertical(field: str, unit: Unit, *, from_zero: bool = True) -> Json:
    """The encoding of a value upward."""
    axis: Json = {"title": None}
    if unit == "share":
        axis["labelExpr"] = "format(datum.value * 100, '.4~g') + ' %'"
    scale = {"zero": from_zero, "nice": True}
    return {"field": field, "type": "quantitative", "axis": axis, "scale": scale}


HOVER: Final = {"type": "rule", "color": SOFT, "cursor": "crosshair"}
"""The mark of the rule at the step nearest to the pointer."""
ZOOM: Final = {
    "name": "brush",
    # Not by a finger, which scrolls the page.
    "select": {
        "type": "interval",
        "encodings": ["x"],
        "on": "[pointerdown[event.pointerType !== 'touch'], window:pointerup] >"
        " window:pointermove!",
        "translate": False,
        "zoom": False,
        "mark": {"fill": SOFT, "fillOpacity": 0.15, "stroke": "transparent"},
    },
}
"""Dragging over steps selects them; the page then shows these only, in all plots of that axis."""
TIP: Final = {"field": "tip", "type": "nominal"}
"""What the pointer is told: a text that was made here."""


def entries_of(
    labels: Iterable[tuple[str, int, int | None]], mark: str = "line"
) -> tuple[LegendEntry, ...]:
    """The series, in order: each with its label, style and run."""
    return tuple(
        LegendEntry(str(place), visible(label), style, run, mark)  # type: ignore[arg-type]
        for place, (label, style, run) in enumerate(labels)
    )


def thinned(count: int) -> list[int]:
    """The rows that a table shows of so many: all, or evenly chosen ones with first and last.

    >>> thinned(3), len(thinned(1000)), thinned(1000)[-1]
    ([0, 1, 2], 40, 999)
    """
    if count <= ROWS:
        return list(range(count))
    return [round(place * (count - 1) / (ROWS - 1)) for place in range(ROWS)]


def cells(values: Iterable[float | None], unit: Unit) -> tuple[str, ...]:
    """Values as the cells of a table."""
    return tuple(exact_text(value, unit) for value in values)
