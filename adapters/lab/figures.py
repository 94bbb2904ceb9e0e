"""Figures of results as data, so that a page and a file of pixels are drawn from the same.

A figure has lines over steps with bands, or points with intervals side by side. On the page it is
drawn by the plots of `toolgym.report`; `write_pictures` draws it as a PNG file, for pages that
cannot hold a plot of their own, and needs matplotlib. Its colours are those of the report's style
sheet on paper, and neither a clock nor the version of the library is written into the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from toolgym.intervals import Effect
from toolgym.report.plots.axes import Unit
from toolgym.report.plots.categories import Point, Points, point_plot
from toolgym.report.plots.lines import Line, line_plot, swatch
from toolgym.statistics import Chart

Values = Sequence[float | None]


@dataclass(frozen=True)
class Series:
    """One line, or one row of points.

    Attributes:
        label: Its name in the legend.
        values: One for each place of the figure; None where there is none.
        low: Lower ends of their intervals; empty for none.
        high: Upper ends.
    """

    label: str
    values: Values
    low: Values = ()
    high: Values = ()

    @classmethod
    def of(cls, label: str, effects: Sequence[Effect | None]) -> Series:
        """From measured effects."""
        values = _ends(effects, "value")
        return cls(label, values, *(_ends(effects, end) for end in ("low", "high")))


@dataclass(frozen=True)
class Figure:
    """One picture.

    Attributes:
        name: Of the file, without its ending.
        title: Stands above it.
        note: What is to be seen.
        series: What is drawn.
        places: Names of the points; or, of lines, the steps.
        label: What the steps count.
        unit: How values are written.
    """

    name: str
    title: str
    note: str
    series: tuple[Series, ...]
    places: tuple[str, ...] | tuple[float, ...]
    label: str = ""
    unit: Unit = "share"

    @property
    def is_lines(self) -> bool:
        """Whether it has lines over steps, and not points."""
        return not any(isinstance(place, str) for place in self.places)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw yet."""
        return all(value is None for one in self.series for value in one.values)

    def chart(self) -> Chart:
        """The picture as a page shows it."""
        svg = self._lines() if self.is_lines else self._points()
        legend = tuple((Markup(swatch(i)), one.label) for i, one in enumerate(self.series))
        return Chart(self.title, self.note, Markup(svg), legend if len(legend) > 1 else ())

    def _lines(self) -> str:
        steps = [float(place) for place in self.places]
        lines = [
            Line(one.label, i, steps, one.values, low=one.low, high=one.high)
            for i, one in enumerate(self.series)
        ]
        return line_plot(lines, self.title, self.note, self.label, self.unit)

    def _points(self) -> str:
        points = [Points(one.label, i, _points(one)) for i, one in enumerate(self.series)]
        return point_plot(points, [str(p) for p in self.places], self.title, self.note, self.unit)


def _ends(effects: Sequence[Effect | None], name: str) -> list[float | None]:
    """One number of each effect; None where nothing was measured, and for an end that no seeds
    bound the value itself."""
    pairs = [None if e is None or not e.seeds else (getattr(e, name), e.value) for e in effects]
    return [each and (each[0] if math.isfinite(each[0]) else each[1]) for each in pairs]


def _points(series: Series) -> list[Point | None]:
    low, high = series.low or series.values, series.high or series.values
    return [
        None if value is None or bottom is None or top is None else Point(value, bottom, top)
        for value, bottom, top in zip(series.values, low, high, strict=True)
    ]


COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#b07800", "#3f4a56")
_SIZE: Final = (7.2, 3.8)
_ROOM: Final = 60
"""Letters that have room side by side."""


def write_pictures(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write each figure as `NAME.png` into a folder, which is made; the files."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Sheet

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures:
        sheet = Sheet(figsize=_SIZE, layout="constrained")
        FigureCanvasAgg(sheet)
        _draw(figure, sheet.subplots())
        file = folder / f"{figure.name}.png"
        sheet.savefig(file, dpi=110, metadata={"Software": None})
        written.append(file)
    return written


def _draw(figure: Figure, axes: Any) -> None:
    for number, series in enumerate(figure.series):
        draw = _draw_line if figure.is_lines else _draw_points
        draw(axes, figure, series, number)
    if not figure.is_lines:
        crowded = sum(len(str(place)) for place in figure.places) > _ROOM
        turned = {"rotation": 20, "ha": "right"} if crowded else {}
        axes.set_xticks(range(len(figure.places)), figure.places, **turned)
    axes.set_title(figure.title, fontsize=11)
    axes.set_xlabel(figure.label)
    if figure.unit == "share":
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if len(figure.series) > 1:
        axes.legend(frameon=False, fontsize=9)


def _draw_line(axes: Any, figure: Figure, series: Series, number: int) -> None:
    colour = COLOURS[number % len(COLOURS)]
    axes.plot(figure.places, _gaps(series.values), color=colour, label=series.label)
    if series.low:
        low, high = _gaps(series.low), _gaps(series.high)
        axes.fill_between(figure.places, low, high, color=colour, alpha=0.14, linewidth=0)


def _draw_points(axes: Any, figure: Figure, series: Series, number: int) -> None:
    colour = COLOURS[number % len(COLOURS)]
    shift = 0.6 * ((number + 1) / (len(figure.series) + 1) - 0.5)
    places = [place + shift for place in range(len(figure.places))]
    values = _gaps(series.values)
    low, high = _gaps(series.low or series.values), _gaps(series.high or series.values)
    below = [max(v - e, 0.0) if v == v else v for v, e in zip(values, low, strict=True)]
    above = [max(e - v, 0.0) if v == v else v for v, e in zip(values, high, strict=True)]
    error = [below, above]
    axes.errorbar(places, values, error, fmt="o", color=colour, capsize=3, label=series.label)


def _gaps(values: Iterable[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]
