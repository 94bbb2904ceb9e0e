"""Lines over steps as SVG, with bands and levels, and what all plots have in common.

A reader who cannot see colours is told by dashes and by position what belongs together, one who
cannot see the plot by its title and description, and one who wants a number by resting the pointer
on it. Whatever is not a finite number is a gap, never a zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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
    is_drawable,
    number_text,
    upward,
)

COLOURS, DASHES = 6, 5
"""How many of each the style sheet knows; a style is one of each, so 30 differ."""
HOVER_STEPS = 160
"""Places of a line plot that answer to the pointer; more make the page heavy and are too narrow."""

Values = Sequence[float | None]


@dataclass(frozen=True)
class Line:
    """One line over steps.

    Attributes:
        x: Ascending; as long as all that follow.
        y: The thick line.
        faint: A thin one behind it; empty for none.
        low: Lower edge of the band; empty for none.
        high: Upper edge of the band.
    """

    label: str
    style: int
    x: Sequence[float]
    y: Values
    faint: Values = ()
    low: Values = ()
    high: Values = ()


@dataclass(frozen=True)
class Level:
    """A value that something begins or ends at, as a thin line across the plot.

    Attributes:
        name: Written above its right end; empty where the legend has to do.
        value: Where it lies.
        since: The step from which it holds.
    """

    name: str
    style: int
    value: float
    since: float


def style_class(style: int) -> str:
    """The classes of a style number.

    >>> style_class(0), style_class(7)
    ('c0 d0', 'c1 d2')
    """
    return f"c{style % COLOURS} d{style % DASHES}"


def swatch(style: int, *, bar: bool = False) -> str:
    """A short piece of line, or of a bar, for a legend."""
    line = element("line", class_="line", x1=1, x2=25, y1=5, y2=5)
    piece = element("rect", class_="bar", x=7, y=0, width=12, height=10) if bar else line
    classes = f"swatch {style_class(style)}"
    return element("svg", piece, class_=classes, viewBox="0 0 26 10", aria_hidden="true")


def line_plot(
    lines: Sequence[Line],
    title: str,
    description: str,
    label: str,
    unit: Unit = "number",
    *,
    levels: Sequence[Level] = (),
    floor: float | None = 0.0,
) -> str:
    """Lines over steps, each with an optional band and a faint line behind it.

    Args:
        lines: What to draw; the first is drawn last, on top.
        levels: Drawn behind the lines.
        floor: A value that the vertical axis shows in any case; None for none.
    """
    horizontal = along(x for line in lines for x in line.x)
    spans = [v for line in lines for v in (*line.y, *line.faint, *line.low, *line.high)]
    spans += [level.value for level in levels]
    vertical = upward((v for v in spans if v is not None), unit, floor)
    drawn = [_level(level, horizontal, vertical) for level in levels]
    drawn += [_line(line, horizontal, vertical) for line in reversed(lines)]
    hover = _hover(lines, horizontal, vertical)
    return figure([frame(vertical, horizontal, label), *drawn, hover], title, description)


def figure(parts: Iterable[str], title: str, description: str) -> str:
    """A plot out of its parts, with what it shows in words."""
    texts = element("title", text=title) + element("desc", text=description)
    box = f"0 0 {WIDTH:g} {HEIGHT:g}"
    return element("svg", texts, *parts, class_="plot", viewBox=box, role="img", aria_label=title)


def _line(line: Line, horizontal: Axis, vertical: Axis) -> str:
    parts = []
    if line.low and line.high:
        parts.append(_band(line, horizontal, vertical))
    for values, name in ((line.faint, "faint"), (line.y, "line")):
        path = " ".join(path_of(run) for run in _runs(line.x, values, horizontal, vertical))
        if path:
            parts.append(element("path", class_=name, d=path))
    return element("g", *parts, class_=style_class(line.style))


def _level(level: Level, horizontal: Axis, vertical: Axis) -> str:
    y, start = vertical.place(level.value), horizontal.place(level.since)
    line = element("line", class_="level", x1=start, x2=horizontal.end, y1=y, y2=y)
    name = element("text", class_="tick end", x=horizontal.end, y=y - 4, text=level.name)
    return element("g", line, name, class_=f"c{level.style % COLOURS}")


def _runs(
    x: Sequence[float], values: Values, horizontal: Axis, vertical: Axis
) -> Iterator[list[tuple[float, float]]]:
    """The places of the values, cut where one is missing."""
    run: list[tuple[float, float]] = []
    for step, value in zip(x, values, strict=False):
        if value is not None and is_drawable(value):
            run.append((horizontal.place(step), vertical.place(value)))
        elif run:
            yield run
            run = []
    if run:
        yield run


def path_of(places: Sequence[tuple[float, float]]) -> str:
    """A line through some places as the data of a path; a lone one becomes a dot."""
    if len(places) == 1:
        return f"M{_pair(places[0])} h0"  # round line ends make a dot of it
    return "M" + " L".join(_pair(place) for place in places)


def _pair(place: tuple[float, float]) -> str:
    return f"{place[0]:.1f} {place[1]:.1f}"


def _band(line: Line, horizontal: Axis, vertical: Axis) -> str:
    # Both edges are missing in the same places: they are a mean and a deviation apart.
    lower = _runs(line.x, line.low, horizontal, vertical)
    upper = _runs(line.x, line.high, horizontal, vertical)
    areas = (
        f"M{' L'.join(_pair(place) for place in [*below, *reversed(above)])} Z"
        for below, above in zip(lower, upper, strict=False)
    )
    return element("path", class_="band", d=" ".join(areas))


def _hover(lines: Sequence[Line], horizontal: Axis, vertical: Axis) -> str:
    """Invisible strips that tell the values of one step."""
    steps = sorted({x for line in lines for x in line.x})
    shown = steps[:: max(1, -(-len(steps) // HOVER_STEPS))]
    width = (WIDTH - LEFT - RIGHT) / max(1, len(shown))
    values = [dict(zip(line.x, line.faint or line.y, strict=False)) for line in lines]
    strips = []
    for step in shown:
        texts = [
            f"{line.label}: {number_text(value, vertical.step / 100, vertical.unit)}"
            for line, by_step in zip(lines, values, strict=True)
            if (value := by_step.get(step)) is not None and is_drawable(value)
        ]
        title = element("title", text="\n".join([f"step {step:g}", *texts]))
        left = max(LEFT, horizontal.place(step) - width / 2)
        right = min(WIDTH - RIGHT, horizontal.place(step) + width / 2)
        strips.append(box(title, "hover", left, TOP, right - left, HEIGHT - TOP - BOTTOM))
    return "".join(strips)


def box(title: str, name: str, x: float, y: float, width: float, height: float) -> str:
    """A rectangle of a class, with a title that the pointer shows."""
    return element("rect", title, class_=name, x=x, y=y, width=width, height=height)
