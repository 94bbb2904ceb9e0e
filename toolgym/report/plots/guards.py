"""What the guards did, step by step: a dot for each step at which one of them acted.

Its height is how severe the action was, so that a run without incident is an empty plot (and is
not drawn at all), one that warns now and then has dots low down, and one that ends in a stop can be
seen to climb there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolgym.report.plots.axes import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    along,
    element,
    ticks_along,
)
from toolgym.report.plots.lines import figure, style_class

LABELS = LEFT + 22.0  # words need more room than numbers


@dataclass(frozen=True)
class Incidents:
    """The steps at which the guards of one run acted.

    Attributes:
        label: The run.
        style: Number of its colour.
        steps: How many steps the guards saw.
        severities: By step, without the steps at which nothing happened.
    """

    label: str
    style: int
    steps: int
    severities: Mapping[int, int]

    def in_words(self, actions: Sequence[str]) -> str:
        """How often each action was taken, and when first.

        >>> Incidents("run", 0, 60, {3: 2, 5: 2}).in_words(("ok", "warn", "skip"))
        'at 2 of 60 steps: skip 2 times, first at step 3.'
        """
        if not self.severities:
            return f"at none of {self.steps} steps."
        counted = sorted(Counter(self.severities.values()).items())
        told = ", ".join(
            f"{actions[severity]} {_times(count)}, first at step {self._first(severity)}"
            for severity, count in counted
        )
        return f"at {len(self.severities)} of {self.steps} steps: {told}."

    def _first(self, severity: int) -> int:
        return min(step for step, found in self.severities.items() if found == severity)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def guard_plot(
    runs: Sequence[Incidents], actions: Sequence[str], title: str, description: str, last: int
) -> str:
    """The plot.

    Args:
        runs: Whose incidents; those of several are drawn beside each other.
        actions: Names of the severities, 0 first; 0 is the ground that the others stand on.
        title: For who cannot see it.
        description: What it shows, in words.
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
