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
from typing import Final, Literal

from toolgym.report.markup import Unit, exact_text
from toolgym.report.plots.vega import (
    CARD,
    TIP,
    ZOOM,
    Json,
    axis_title,
    colour,
    entries_of,
    number,
    share_or_number,
    shown,
    specification,
    vertical,
)
from toolgym.sanitize import visible
from toolgym.statistics import Drawing

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


def scatter_plot(tracks: Sequence[Track], words: str, label: str, unit: Unit = "number") -> Drawing:
    """The tracks; both axes begin at 0.

    Args:
        label: What the horizontal axis counts.
    """
    entries = entries_of(((track.label, track.style, None) for track in tracks), "point")
    values: list[Json] = [
        {
            "k": entry.key,
            "n": place,
            "x": number(spot.x),
            "y": number(spot.y),
            "low": share_or_number(spot.low, unit),
            "high": share_or_number(spot.high, unit),
            "mark": spot.mark,
            "joined": spot.is_joined,
            "tip": f"{entry.label}, {visible(spot.name)}: {exact_text(spot.y, unit)}"
            f" at {spot.x:.2f}",
        }
        for track, entry in zip(tracks, entries, strict=True)
        for place, spot in enumerate(track.spots)
    ]
    room = 1.08 * max((value["x"] or 0.0 for value in values), default=1.0)
    scale = {"domainMin": 0, "domainMax": room or 1.0, "nice": False}
    across = {"field": "x", "type": "quantitative", "title": axis_title(label), "scale": scale}
    upward = vertical("y", unit)
    joined = [{"filter": "datum.joined"}]
    discs, rings = [{"filter": "datum.mark !== 'ring'"}], [{"filter": "datum.mark === 'ring'"}]
    shapes = {"domain": ["disc", "diamond"], "range": ["circle", "diamond"]}
    shape = {"field": "mark", "type": "nominal", "scale": shapes, "legend": None}
    layers: list[Json] = [
        {
            "transform": joined,
            "mark": {"type": "line", "strokeWidth": 1.2, "opacity": 0.6},
            "encoding": {"y": upward, "order": {"field": "n"}},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1.2, "opacity": 0.45},
            "encoding": {"y": vertical("low", unit), "y2": {"field": "high"}},
        },
        {
            "transform": rings,
            "mark": {"type": "point", "fill": CARD, "size": 80, "strokeWidth": 2.2, "opacity": 1},
            "encoding": {"y": upward, "tooltip": TIP},
        },
        {
            "transform": discs,
            "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
            "encoding": {"y": upward, "shape": shape, "tooltip": TIP},
        },
    ]
    spec = specification(
        words,
        layers,
        data={"values": values},
        transform=shown(),
        encoding={"x": across, "color": colour(entries)},
    )
    rows = tuple(
        (f"{track.label}, {visible(spot.name)}", f"{spot.x:.2f}", exact_text(spot.y, unit))
        for track in tracks
        for spot in track.spots
    )
    return Drawing(spec, words, entries, ("", label, "value"), rows, is_share=unit == "share")


@dataclass(frozen=True)
class Incidents:
    """The steps at which the guards of one run acted.

    Attributes:
        steps: How many steps the guards saw.
        severities: By step, without the steps at which nothing happened.
        run: The number of the run, where the page shows several.
    """

    label: str
    style: int
    steps: int
    severities: Mapping[int, int]
    run: int | None = None

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


AXIS: Final = "GRPO step"


def guard_plot(
    runs: Sequence[Incidents], actions: Sequence[str], words: str, last: int, axis: str = ""
) -> Drawing:
    """The dots.

    Args:
        runs: Whose incidents; those of several are drawn beside each other.
        actions: Names of the severities, 0 first; 0 is the ground that the others stand on.
        last: The last step of any run.
        axis: Plots of the same name are zoomed together.
    """
    entries = entries_of(((run.label, run.style, run.run) for run in runs), "point")
    values = [
        {
            "k": entry.key,
            "x": step,
            "c": actions[severity],
            "tip": f"{entry.label}, step {step}: {actions[severity]}",
        }
        for run, entry in zip(runs, entries, strict=True)
        for step, severity in sorted(run.severities.items())
    ]
    scale = {"domainMin": {"expr": "lo"}, "domainMax": {"expr": "hi"}, "nice": False}
    across = {"field": "x", "type": "quantitative", "title": AXIS, "scale": scale}
    order = {"domain": list(actions[:0:-1]), "padding": 0.3}
    upward = {"field": "c", "type": "nominal", "title": None, "scale": order}
    keys = {"domain": [entry.key for entry in entries]}
    encoding = {
        "x": {**across, "axis": {"tickMinStep": 1}},
        "y": {**upward, "axis": {"grid": True, "labelFontSize": 12}},
        "color": colour(entries),
        "tooltip": TIP,
    }
    if len(entries) > 1:
        encoding["yOffset"] = {"field": "k", "type": "nominal", "scale": keys}
    dots = {"type": "point", "filled": True, "size": 55, "opacity": 1}
    spec = specification(
        words,
        [{"mark": dots, "encoding": encoding, "params": [ZOOM]}],
        params=[{"name": "lo", "value": 0 if last < 2 else 1}, {"name": "hi", "value": last}],
        data={"values": values},
        transform=shown("datum.x >= lo", "datum.x <= hi"),
    )
    rows = tuple(
        (str(step), entry.label, actions[severity])
        for run, entry in zip(runs, entries, strict=True)
        for step, severity in sorted(run.severities.items())
    )
    return Drawing(spec, words, entries, (AXIS, "run", "action"), rows, axis)
