"""The actions of the guards over the steps, as points.

An action of a guard is a dot whose height is its severity, so that a run that warns now and then
has dots low down, and one that ends in a stop can be seen to climb there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from toolgym.report.plots.vega import (
    TIP,
    ZOOM,
    Drawing,
    colour,
    entries_of,
    shown,
    specification,
)


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
