"""Figures as PNG files, for pages that cannot hold a plot of their own. Needs matplotlib.

Colours are those of the report's style sheet on paper, and neither a clock nor the version of the
library is written into the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from adapters.lab.figures import Figure, Series

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
        draw = _line if figure.is_lines else _points
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


def _line(axes: Any, figure: Figure, series: Series, number: int) -> None:
    colour = COLOURS[number % len(COLOURS)]
    axes.plot(figure.places, _gaps(series.values), color=colour, label=series.label)
    if series.low:
        low, high = _gaps(series.low), _gaps(series.high)
        axes.fill_between(figure.places, low, high, color=colour, alpha=0.14, linewidth=0)


def _points(axes: Any, figure: Figure, series: Series, number: int) -> None:
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
