"""Figures of results as data, so that a page and a file of pixels are drawn from the same.

A figure has lines over steps with bands, or points with intervals side by side. It is a plot of
`toolgym.report`, which a page shows; `write_pictures` draws the same plot as a PNG file, for pages
that cannot hold a plot of their own. No browser is needed for either, and no clock is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolgym.intervals import Effect
from toolgym.report.library import picture_of
from toolgym.report.markup import Unit
from toolgym.report.plots.categories import Point, Points, point_plot
from toolgym.report.plots.lines import Line, line_plot
from toolgym.statistics import Chart, Drawing

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
        return Chart(self.title, self.note, self.drawing(), has_legend=len(self.series) > 1)

    def drawing(self) -> Drawing:
        """The plot."""
        if not self.is_lines:
            points = [Points(one.label, i, _points(one)) for i, one in enumerate(self.series)]
            return point_plot(points, [str(p) for p in self.places], self.note, self.unit)
        steps = [float(place) for place in self.places]
        lines = [
            Line(one.label, i, steps, one.values, low=one.low, high=one.high)
            for i, one in enumerate(self.series)
        ]
        return line_plot(lines, self.note, self.label, self.unit)


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


def write_pictures(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write each figure as `NAME.png` into a folder, which is made; the files.

    Raises:
        ConfigurationError: The library that draws them is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures:
        file = folder / f"{figure.name}.png"
        file.write_bytes(picture_of(figure.chart()))
        written.append(file)
    return written
