"""Plots hold whatever numbers and whatever text a run may bring, inside their box."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgym.report import charts
from toolgym.report.catalogue import ACTIONS
from toolgym.report.plots import axes, categories
from toolgym.report.plots import lines as plot
from toolgym.report.plots.points import Incidents, guard_plot

NUMBERS = st.none() | st.floats() | st.floats(-1, 2) | st.integers(-(10**9), 10**9).map(float)
TEXTS = st.text(st.characters(codec=None), max_size=12)


def places(svg: str) -> list[float]:
    """Every coordinate; the text must be XML for it."""
    values: list[str] = []
    for node in ElementTree.fromstring(svg).iter():
        values += [
            v for k, v in node.attrib.items() if k in ("x", "y", "x1", "x2", "y1", "y2", "cx")
        ]
        values += re.findall(r"-?\d[\d.e+]*", node.attrib.get("d", ""))
    return [float(value) for value in values]


@given(
    values=st.lists(NUMBERS, min_size=1, max_size=12),
    text=TEXTS,
    unit=st.sampled_from(["share", "number"]),
)
def test_any_numbers_and_any_text_make_a_line_plot_inside_its_box(
    values: list[float | None], text: str, unit: axes.Unit
) -> None:
    steps = range(1, len(values) + 1)
    low, high = charts.band(values, values)
    lines = [plot.Line(text, 0, steps, values, values, low, high), plot.Line(text, 1, [3.0], [1.0])]

    levels = [plot.Level(text, 9, value, 2) for value in values if axes.is_drawable(value)]
    svg = plot.line_plot(lines, text, text, text, unit, levels=levels, floor=None)

    assert all(-20 <= place <= axes.WIDTH for place in places(svg))


@given(
    points=st.lists(st.none() | st.tuples(*[st.floats(0, 1)] * 3), min_size=2, max_size=2),
    heights=st.lists(st.none() | st.floats(-1e9, 1e9), min_size=2, max_size=2),
    text=TEXTS,
)
def test_any_intervals_and_bars_are_drawn_inside_their_box(
    points: list[tuple[float, float, float] | None], heights: list[float | None], text: str
) -> None:
    shown = [None if point is None else categories.Point(*point) for point in points]
    drawn = (
        categories.point_plot(
            [categories.Points(text, 0, shown)] * 2, ["a", text], text, text, "share"
        ),
        categories.bar_plot([categories.Bars(text, 7, heights)], [text, "b"], text, text),
    )

    for svg in drawn:
        assert all(-20 <= place <= axes.WIDTH + 10 for place in places(svg))


@pytest.mark.parametrize("value", [5e-324, 1e-310, -1e-200, 1e-12])
def test_the_smallest_numbers_are_drawn_too(value: float) -> None:
    svg = categories.bar_plot([categories.Bars("a", 0, [value, 0.0])], ["b", "c"], "d", "e")

    assert all(-20 <= place <= axes.WIDTH + 10 for place in places(svg))


@given(
    values=st.lists(st.floats(-1e12, 1e12), max_size=6), unit=st.sampled_from(["share", "number"])
)
def test_an_axis_shows_every_value_between_two_to_eight_ticks(
    values: list[float], unit: axes.Unit
) -> None:
    axis = axes.upward(values, unit)

    assert 2 <= len(axis.ticks()) <= 8
    hair = 1e-6 * (axis.high - axis.low)
    beyond = [v for v in values if not axis.low - hair <= v <= axis.high + hair]
    assert [v for v in beyond if unit == "number" or 0 <= v <= 1] == []
    texts = [axes.number_text(tick, axis.step, unit) for tick in axis.ticks()]
    assert len(set(texts)) == len(texts)


def test_a_gap_cuts_a_line_and_a_lone_value_is_a_dot() -> None:
    svg = plot.line_plot([plot.Line("kl", 0, [1, 2, 3, 4], [1, 2, None, 3])], "t", "d", "step")

    (path,) = re.findall(r'class="line" d="([^"]*)"', svg)
    assert re.fullmatch(r"M[\d. ]+ L[\d. ]+ M[\d. ]+ h0", path)


@given(
    severities=st.dictionaries(st.integers(1, 500), st.integers(1, 5), max_size=8),
    last=st.integers(1, 500),
    runs=st.integers(1, 4),
    text=TEXTS,
)
def test_any_incidents_are_drawn_inside_their_box(
    severities: dict[int, int], last: int, runs: int, text: str
) -> None:
    seen = [Incidents(text, style, last, severities) for style in range(runs)]

    svg = guard_plot(seen, ACTIONS, text, text, last)

    assert svg.count("<circle") == runs * len(severities)
    assert all(-20 <= place <= axes.WIDTH for place in places(svg))


def test_written_values_give_way_where_many_points_stand_side_by_side() -> None:
    point = categories.Point(0.5, 0.4, 0.6)
    charts = [categories.Points("a", 0, [point, point])]

    few = categories.point_plot(charts * 2, ["before", "after"], "t", "d", "share")
    many = categories.point_plot(charts * 6, ["before", "after"], "t", "d", "share")

    assert few.count('class="value"') == 4
    assert many.count('class="value"') == 0
    assert many.count("a: 50.0 %") == 12
