"""Points in a plane, some of which belong together: what was gained against what it costs.

A track is a few points in their order, joined by a thin line, of one colour. Which point is which
is told by its mark (ring, disc, diamond), whose meaning the caller writes into the note, and to the
pointer by its name; nothing is written beside the points, so that none can hide another's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from toolgym.report.plots.axes import Axis, Unit, along, element, frame, number_text, upward
from toolgym.report.plots.lines import figure, path_of, style_class

Mark = Literal["ring", "disc", "diamond"]


@dataclass(frozen=True)
class Spot:
    """One point.

    Attributes:
        name: What the pointer is told.
        x: On the horizontal axis.
        y: On the vertical one.
        low: Lower end of its interval; as `y` for none.
        high: Upper end.
        mark: How it is drawn.
        is_joined: The line of its track leads to it.
    """

    name: str
    x: float
    y: float
    low: float
    high: float
    mark: Mark = "disc"
    is_joined: bool = True


@dataclass(frozen=True)
class Track:
    """Points that belong together."""

    label: str
    style: int
    spots: Sequence[Spot]


def scatter_plot(
    tracks: Sequence[Track], title: str, description: str, label: str, unit: Unit = "number"
) -> str:
    """The tracks as SVG; both axes begin at 0.

    Args:
        tracks: What to draw.
        title: For who cannot see it.
        description: What it shows, in words; for the same reader.
        label: What the horizontal axis counts.
        unit: How the vertical axis is written.
    """
    spots = [spot for track in tracks for spot in track.spots]
    horizontal = along([0.0, *(spot.x * 1.05 for spot in spots)])
    vertical = upward((v for spot in spots for v in (spot.y, spot.low, spot.high)), unit)
    drawn = [_track(track, horizontal, vertical) for track in tracks]
    return figure([frame(vertical, horizontal, label), *drawn], title, description)


def _track(track: Track, horizontal: Axis, vertical: Axis) -> str:
    joined = [
        (horizontal.place(spot.x), vertical.place(spot.y)) for spot in track.spots if spot.is_joined
    ]
    parts = [element("path", class_="joint", d=path_of(joined))] if len(joined) > 1 else []
    for spot in track.spots:
        x, y = horizontal.place(spot.x), vertical.place(spot.y)
        low, high = vertical.place(spot.low), vertical.place(spot.high)
        shown = number_text(spot.y, vertical.step / 100, vertical.unit)
        title = element("title", text=f"{track.label}, {spot.name}: {shown} at {spot.x:.2f}")
        if low != high:
            parts.append(element("line", class_="error thin", x1=x, x2=x, y1=low, y2=high))
        parts.append(_mark(spot.mark, title, x, y))
    return element("g", *parts, class_=style_class(track.style))


def _mark(mark: Mark, title: str, x: float, y: float) -> str:
    if mark == "diamond":
        path = f"M{x:.1f} {y - 7:.1f} l6 7 l-6 7 l-6 -7 Z"
        return element("path", title, class_="point", d=path)
    name = "ring" if mark == "ring" else "point"
    return element("circle", title, class_=name, cx=x, cy=y, r=5)
