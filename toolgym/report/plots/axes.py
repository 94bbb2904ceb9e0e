"""From numbers to places on paper: ticks that people can read, and the frame of a plot.

A plot is text (SVG) in a box of `WIDTH` by `HEIGHT` units that the page scales. Colours and strokes
are classes, never values, so that the page's style sheet decides over light, dark and print. All
text and every attribute pass through `element`, which escapes; nothing else here writes markup.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Literal, TypeGuard

WIDTH, HEIGHT = 480.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 50.0, 14.0, 12.0, 40.0
LARGEST = 1e150
"""Beyond this a number is treated as missing: differences of larger ones overflow."""
SMALLEST = 1e-150
"""What is nearer to 0 counts as 0: parts of smaller spans underflow."""

Unit = Literal["share", "number"]

UNPRINTABLE = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {
    0x7F: 0x2421
}
"""Control characters have pictures of their own; other code points that are no text have one."""
UNPRINTABLE |= dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF), 0xFFFD)


def visible(text: str) -> str:
    """The text with a visible sign for each character that a page cannot hold or would swallow.

    >>> visible("a\\x00b")
    'a␀b'
    """
    return text.translate(UNPRINTABLE)


def element(name: str, *children: str, text: str = "", **attributes: str | float) -> str:
    """One SVG element.

    Args:
        children: Markup made by this function.
        text: Plain text, escaped here.
        attributes: A trailing underscore is dropped (`class_`), others become hyphens; numbers are
            rounded to a tenth of a unit.
    """
    pairs = (
        f' {key.rstrip("_").replace("_", "-")}="{escape(_attribute(value))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{''.join(pairs)}>{escape(visible(text))}{''.join(children)}</{name}>"


def _attribute(value: str | float) -> str:
    return visible(value) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def is_drawable(value: object) -> TypeGuard[float]:
    """A finite number of a size that can be drawn; nan, None and text are gaps."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < LARGEST  # False for nan too
    )


def nice_step(span: float, count: int) -> float:
    """The step of 1, 2 or 5 times a power of ten that cuts a span into about `count` parts.

    >>> [nice_step(span, 5) for span in (1.0, 7.0, 60.0)]
    [0.2, 2.0, 10.0]
    """
    power = math.floor(math.log10(max(span, SMALLEST) / count))
    for factor in (1, 2, 5):
        # Divided where that is exact: 3 / 10 is 0.3, and 3 * 0.1 is not.
        step = factor * 10.0**power if power >= 0 else factor / 10.0**-power
        if span / step <= count * 1.3:
            return step
    return 10.0 ** (power + 1)


def number_text(value: float, step: float, unit: Unit) -> str:
    """A value with as many decimals as its axis' step needs.

    >>> number_text(0.25, 0.05, "number"), number_text(0.25, 0.05, "share")
    ('0.25', '25 %')
    """
    if unit == "share":
        value, step = value * 100, step * 100
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 0
    is_extreme = abs(value) >= 1e6 or decimals > 6
    text = f"{value:.3g}" if is_extreme else f"{value:.{decimals}f}"
    text = text.replace("-", "\N{MINUS SIGN}") if float(text) else text.replace("-", "")
    return f"{text} %" if unit == "share" else text


@dataclass(frozen=True)
class Axis:
    """A scale from values to places.

    Attributes:
        low: The value at `start`.
        high: The value at `end`; larger than `low`.
        start: The place of `low`.
        end: The place of `high`; smaller than `start` on an axis that goes upward.
        step: Between two ticks.
        unit: How ticks are written.
    """

    low: float
    high: float
    start: float
    end: float
    step: float
    unit: Unit = "number"

    def place(self, value: float) -> float:
        """Where a value lies; one beyond the axis lies at its end."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """The multiples of the step on the axis."""
        first = math.ceil(self.low / self.step - 1e-6)
        last = math.floor(self.high / self.step + 1e-6)
        return [number * self.step for number in range(first, last + 1)]


def upward(values: Iterable[float], unit: Unit, floor: float | None = 0.0) -> Axis:
    """The vertical axis that shows all values, its ends on ticks.

    Args:
        values: Those that must be seen; may be empty.
        unit: A share ends at 1, even where a band goes beyond.
        floor: A value that must be seen too; None for none.
    """
    seen = [v if abs(v) >= SMALLEST else 0.0 for v in values if is_drawable(v)]
    seen += [] if floor is None else [floor]
    low, high = min(seen, default=0.0), max(seen, default=1.0)
    if unit == "share":
        low, high = max(low, 0.0), min(high, 1.0)
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        low, high = low - (0.0 if low == floor else _margin(low)), high + _margin(high)
    step = nice_step(high - low, 4)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return Axis(low, high, HEIGHT - BOTTOM, TOP, step, unit)


def _margin(value: float) -> float:
    return abs(value) / 2 if value else 1.0


def along(values: Iterable[float]) -> Axis:
    """The horizontal axis from the first to the last step."""
    seen = [v for v in values if is_drawable(v)]
    low, high = min(seen, default=0.0), max(seen, default=1.0)
    if low == high:
        low, high = low - 1, high + 1
    return Axis(low, high, LEFT, WIDTH - RIGHT, max(1.0, nice_step(high - low, 6)))


def frame(vertical: Axis, horizontal: Axis | None, label: str) -> str:
    """Grid lines and numbers of both axes, and what the horizontal one counts.

    Args:
        vertical: From `upward`.
        horizontal: From `along`; None where the plot writes categories itself.
        label: Stands under the horizontal axis.
    """
    marks = []
    for tick in vertical.ticks():
        y = vertical.place(tick)
        name = "zero" if abs(tick) < vertical.step / 2 else "grid"
        marks.append(element("line", class_=name, x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y))
        shown = number_text(tick, vertical.step, vertical.unit)
        marks.append(element("text", class_="tick end", x=LEFT - 6, y=y + 4, text=shown))
    if horizontal is not None:
        marks.append(ticks_along(horizontal, label))
    return "".join(marks)


def ticks_along(horizontal: Axis, label: str) -> str:
    """The numbers of a horizontal axis, and under them what it counts."""
    marks = [_tick_below(horizontal, tick) for tick in horizontal.ticks()]
    if horizontal.ticks()[0] - horizontal.low > horizontal.step / 2:
        marks.append(_tick_below(horizontal, horizontal.low))  # the first step is step 1
    middle = (horizontal.start + horizontal.end) / 2
    marks.append(element("text", class_="label mid", x=middle, y=HEIGHT - 5, text=label))
    return "".join(marks)


def _tick_below(axis: Axis, tick: float) -> str:
    shown = number_text(tick, axis.step, "number")
    place = axis.place(tick)
    return element("text", class_="tick mid", x=place, y=HEIGHT - BOTTOM + 16, text=shown)
