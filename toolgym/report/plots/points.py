"""Two plots of points: tracks in a plane, and the actions of the guards over the steps.

A track is a few points in their order, joined by a thin line, of one colour: what was gained
against what it costs. Which point is which is told by its mark (ring, disc, diamond), whose meaning
the caller writes into the note, and to the pointer by its name; nothing is written beside the
points, so that none can hide another's name.

An action of a guard is a dot whose height is its severity, so that a run that warns now and then
has dots low down, and one that ends in a stop can be seen to climb there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from toolgym.report.plots.axes import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    Unit,
    along,
    element,
    frame,
    number_text,
    ticks_along,
    upward,
)
from toolgym.report.plots.lines import figure, path_of, style_class

Mark = Literal["ring", "disc", "diamond"]


@dataclass(frozen=True)
class Spot:
    """One point.

    Attributes:
        name: What the pointer is told.
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
    """The tracks as SVG; both axes begin at 0."""
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


LABELS = LEFT + 22.0  # words need more room than numbers


@dataclass(frozen=True)
class Incidents:
    """The steps at which the guards of one run acted.

    Attributes:
        steps: How many steps the guards saw.
        severities: By step, without the steps at which nothing happened.
    """

    label: str
    style: int
    steps: int
    severities: Mapping[int, int]

    def in_words(self, actions: Sequence[str]) -> str:
        """The count of each action, and its first step.

        >>> Incidents("run", 0, 60, {3: 2, 5: 2}).in_words(("ok", "warn", "skip"))
        'at 2 of 60 steps: skip 2 times, first at step 3.'
        """
        if not self.severities:
            return f"at none of {self.steps} steps."
        counted = sorted(Counter(self.severities.values()).items())
        parts = ", ".join(
            f"{actions[severity]} {_times(count)}, first at step {self._first(severity)}"
            for severity, count in counted
        )
        return f"at {len(self.severities)} of {self.steps} steps: {parts}."

    def _first(self, severity: int) -> int:
        return min(step for step, value in self.severities.items() if value == severity)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def guard_plot(
    runs: Sequence[Incidents], actions: Sequence[str], title: str, description: str, last: int
) -> str:
    """The plot.

    Args:
        runs: Whose incidents; those of several are drawn beside each other.
        actions: Names of the severities, 0 first; 0 is the ground that the others stand on.
        last: The last step of any run.
    """
    scale = along([1, last])
    horizontal = Axis(scale.low, scale.high, LABELS + 8, scale.end, scale.step)
    vertical = Axis(0, len(actions) - 1, HEIGHT - BOTTOM, TOP + 6, 1)
    parts = [_row(vertical, number, name) for number, name in enumerate(actions)]
    parts.append(ticks_along(horizontal, "GRPO step"))
    for number, run in enumerate(runs):
        shift = 5 * (number - (len(runs) - 1) / 2)
        dots = [
            _dot(run, step, severity, horizontal.place(step), vertical.place(severity) + shift)
            for step, severity in sorted(run.severities.items())
        ]
        parts.append(element("g", *dots, class_=style_class(run.style)))
    return figure(parts, title, description)


def _row(vertical: Axis, severity: int, name: str) -> str:
    y = vertical.place(severity)
    kind = "grid" if severity else "zero"
    line = element("line", class_=kind, x1=LABELS, x2=WIDTH - RIGHT, y1=y, y2=y)
    return line + element("text", class_="tick end", x=LABELS - 6, y=y + 4, text=name)


def _dot(run: Incidents, step: int, severity: int, x: float, y: float) -> str:
    title = element("title", text=f"{run.label}, step {step}")
    return element("circle", title, class_="point", cx=x, cy=y, r=4 if severity > 1 else 3)
