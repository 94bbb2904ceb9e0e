"""Three plots as SVG: lines with a band, points with error bars, bars.

A reader who cannot see colours is told by dashes and by position what belongs together, one who
cannot see the plot by its title and description, and one who wants a number by resting the pointer
on it. Whatever is not a finite number is a gap, never a zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from toolgym.report.axes import (
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
        label: Its name in the legend.
        style: Number of its colour and dashes.
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
class Point:
    """A value with the interval it may lie in."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Points:
    """One point for each category, joined by a thin line."""

    label: str
    style: int
    points: Sequence[Point | None]


@dataclass(frozen=True)
class Bars:
    """One bar for each category."""

    label: str
    style: int
    heights: Values


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
    lines: Sequence[Line], title: str, description: str, label: str, unit: Unit = "number"
) -> str:
    """Lines over steps, each with an optional band and a faint line behind it.

    Args:
        lines: What to draw; the first is drawn last, on top.
        title: For who cannot see it.
        description: What it shows, in words; for the same reader.
        label: What the horizontal axis counts.
        unit: How the vertical axis is written.
    """
    horizontal = along(x for line in lines for x in line.x)
    spans = (v for line in lines for v in (*line.y, *line.faint, *line.low, *line.high))
    vertical = upward((v for v in spans if v is not None), unit)
    drawn = [_line(line, horizontal, vertical) for line in reversed(lines)]
    hover = _hover(lines, horizontal, vertical)
    return _figure([frame(vertical, horizontal, label), *drawn, hover], title, description)


def point_plot(
    series: Sequence[Points],
    categories: Sequence[str],
    title: str,
    description: str,
    unit: Unit = "number",
) -> str:
    """Points with error bars: one category beside the other, in each of them the series."""
    points = [point for one in series for point in one.points if point is not None]
    vertical = upward((v for p in points for v in (p.value, p.low, p.high)), unit)
    slot = (WIDTH - LEFT - RIGHT) / len(categories)
    gap = slot / (len(series) + 1)
    drawn = [
        _points(
            one, [LEFT + slot * i + gap * (number + 1) for i in range(len(categories))], vertical
        )
        for number, one in enumerate(series)
    ]
    names = _category_names(categories)
    return _figure([frame(vertical, None, ""), names, *drawn], title, description)


def bar_plot(
    series: Sequence[Bars],
    categories: Sequence[str],
    title: str,
    description: str,
    unit: Unit = "number",
) -> str:
    """Bars: one category beside the other, in each of them one bar for each series."""
    heights = [v for one in series for v in one.heights if v is not None]
    vertical = upward(heights, unit)
    slot = (WIDTH - LEFT - RIGHT) / len(categories)
    width = slot * 0.8 / len(series)
    drawn = [
        _bar(one, height, LEFT + slot * (i + 0.1) + width * number, width, vertical)
        for number, one in enumerate(series)
        for i, height in enumerate(one.heights)
        if height is not None and is_drawable(height)
    ]
    names = _category_names(categories)
    return _figure([frame(vertical, None, ""), names, *drawn], title, description)


def _figure(parts: Iterable[str], title: str, description: str) -> str:
    texts = element("title", text=title) + element("desc", text=description)
    box = f"0 0 {WIDTH:g} {HEIGHT:g}"
    return element("svg", texts, *parts, class_="plot", viewBox=box, role="img", aria_label=title)


def _line(line: Line, horizontal: Axis, vertical: Axis) -> str:
    parts = []
    if line.low and line.high:
        parts.append(_band(line, horizontal, vertical))
    for values, name in ((line.faint, "faint"), (line.y, "line")):
        path = " ".join(_path(run) for run in _runs(line.x, values, horizontal, vertical))
        if path:
            parts.append(element("path", class_=name, d=path))
    return element("g", *parts, class_=style_class(line.style))


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


def _path(places: Sequence[tuple[float, float]]) -> str:
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
        told = [
            f"{line.label}: {number_text(value, vertical.step / 100, vertical.unit)}"
            for line, by_step in zip(lines, values, strict=True)
            if (value := by_step.get(step)) is not None and is_drawable(value)
        ]
        title = element("title", text="\n".join([f"step {step:g}", *told]))
        left = max(LEFT, horizontal.place(step) - width / 2)
        right = min(WIDTH - RIGHT, horizontal.place(step) + width / 2)
        strips.append(_box(title, "hover", left, TOP, right - left, HEIGHT - TOP - BOTTOM))
    return "".join(strips)


def _box(title: str, name: str, x: float, y: float, width: float, height: float) -> str:
    return element("rect", title, class_=name, x=x, y=y, width=width, height=height)


def _points(series: Points, places: Sequence[float], vertical: Axis) -> str:
    known = [
        (x, point) for x, point in zip(places, series.points, strict=False) if point is not None
    ]
    joined = [(x, vertical.place(point.value)) for x, point in known]
    parts = [element("path", class_="joint", d=_path(joined))] if len(joined) > 1 else []
    for x, point in known:
        y, low, high = (vertical.place(v) for v in (point.value, point.low, point.high))
        shown = number_text(point.value, vertical.step / 100, vertical.unit)
        parts.append(element("line", class_="error", x1=x, x2=x, y1=low, y2=high))
        for end in (low, high):
            parts.append(element("line", class_="error", x1=x - 6, x2=x + 6, y1=end, y2=end))
        title = element("title", text=f"{series.label}: {shown}")
        parts.append(element("circle", title, class_="point", cx=x, cy=y, r=5))
        parts.append(element("text", class_="value", x=x + 10, y=y + 4, text=shown))
    return element("g", *parts, class_=style_class(series.style))


def _bar(series: Bars, height: float, x: float, width: float, vertical: Axis) -> str:
    zero, top = vertical.place(0.0), vertical.place(height)
    counted = vertical.unit == "number" and float(height).is_integer()
    shown = number_text(height, 1 if counted else vertical.step / 100, vertical.unit)
    title = element("title", text=f"{series.label}: {shown}")
    bar = _box(title, "bar", x + 1, min(zero, top), width - 2, abs(zero - top))
    above = min(zero, top) - 4
    value = element("text", class_="value mid", x=x + width / 2, y=above, text=shown)
    return element("g", bar, value, class_=style_class(series.style))


def _category_names(categories: Sequence[str]) -> str:
    slot = (WIDTH - LEFT - RIGHT) / len(categories)
    return "".join(
        element("text", class_="tick mid", x=LEFT + slot * (i + 0.5), y=HEIGHT - 22, text=name)
        for i, name in enumerate(categories)
    )
