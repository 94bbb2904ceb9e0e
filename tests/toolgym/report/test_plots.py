"""Plots hold whatever numbers and whatever text a run may bring, and Vega draws all of them."""

import json
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgym.report import charts
from toolgym.report.catalogue import ACTIONS
from toolgym.report.numbers import Unit
from toolgym.report.plots import categories, lines, vega
from toolgym.report.plots.points import Incidents, guard_plot
from toolgym.report.plots.vega import Drawing

NUMBERS = st.none() | st.floats() | st.floats(-1, 2) | st.integers(-(10**9), 10**9).map(float)
TEXTS = st.text(st.characters(codec=None), max_size=12)
SOME = settings(max_examples=10)
"""Vega takes tens of milliseconds for each."""
HOSTILE = "'\"]\\ datum.k </script><b>\ud800\u2028"
MEANT = ("filter", "calculate", "labelExpr", "expr", "field", "on", "type", "name", "as", "param")
"""Under these keys Vega reads a meaning into a text."""


def drawn(drawing: Drawing) -> str:
    """The plot as Vega draws it."""
    vl_convert = pytest.importorskip("vl_convert")
    spec = json.loads(json.dumps(drawing.spec, allow_nan=False))
    svg: str = vl_convert.vegalite_to_svg({**spec, "width": 400})
    return svg


def places(svg: str) -> list[tuple[float, float]]:
    """Where the marks of lines and points lie in the picture; it must be XML for it."""
    found = []
    for node in ElementTree.fromstring(svg).iter():
        for x, y in re.findall(r"[ML](-?[\d.]+),(-?[\d.]+)", node.attrib.get("d", "")):
            found.append((float(x), float(y)))
    return found


def meant(spec: Any, key: str = "") -> Iterator[str]:
    """Every text of a specification that Vega reads a meaning into; what is data is left out."""
    if isinstance(spec, dict):
        for name, value in spec.items():
            yield from () if name in ("values", "datasets") else meant(value, name)
    elif isinstance(spec, list):
        for value in spec:
            yield from meant(value, key)
    elif isinstance(spec, str) and key in MEANT:
        yield spec


@pytest.mark.integration
@SOME
@given(
    values=st.lists(NUMBERS, min_size=1, max_size=12),
    text=TEXTS,
    unit=st.sampled_from(["share", "number"]),
)
def test_any_numbers_and_any_text_make_a_line_plot_inside_its_box(
    values: list[float | None], text: str, unit: Unit
) -> None:
    steps = range(1, len(values) + 1)
    low, high = charts.band(values, values)
    both = [
        lines.Line(text, 0, steps, values, values, low, high),
        lines.Line(text, 1, [3.0], [1.0]),
    ]
    levels = [lines.Level(text, 9, v, 2) for v in values if vega.number(v) is not None]

    drawing = lines.line_plot(both, text, text, unit, levels=levels, from_zero=False)

    assert all(-20 <= x <= 420 for x, _ in places(drawn(drawing)))
    assert len(drawing.rows) == len({*steps, 3})


@pytest.mark.integration
@SOME
@given(
    points=st.lists(st.none() | st.tuples(*[st.floats(0, 1)] * 3), min_size=2, max_size=2),
    heights=st.lists(st.none() | st.floats(-1e9, 1e9), min_size=2, max_size=2),
    text=TEXTS,
)
def test_any_intervals_and_bars_are_drawn(
    points: list[tuple[float, float, float] | None], heights: list[float | None], text: str
) -> None:
    shown = [None if point is None else categories.Point(*point) for point in points]

    for drawing in (
        categories.point_plot([categories.Points(text, 0, shown)] * 2, ["a", text], text, "share"),
        categories.bar_plot([categories.Bars(text, 7, heights)], [text, "b"], text),
    ):
        assert ElementTree.fromstring(drawn(drawing)).tag.endswith("svg")
        assert len(drawing.rows) == 2


@pytest.mark.integration
@pytest.mark.parametrize("value", [5e-324, 1e200])
def test_the_smallest_and_the_largest_numbers_are_drawn_too(value: float) -> None:
    bars = categories.bar_plot([categories.Bars("a", 0, [value, 0.0])], ["b", "c"], "words")
    line = lines.line_plot([lines.Line("a", 0, [1, 2], [value, 0.0])], "words", "step")

    assert ElementTree.fromstring(drawn(bars)).tag.endswith("svg")
    assert all(-20 <= y <= 220 for _, y in places(drawn(line)))


@pytest.mark.integration
def test_a_gap_cuts_a_line_and_a_lone_value_is_a_dot() -> None:
    drawing = lines.line_plot([lines.Line("kl", 0, [1, 2, 3, 4], [1, 2, None, 3])], "words", "step")

    svg = drawn(drawing)
    (path,) = re.findall(r'aria-roledescription="line mark"[^>]*d="([^"]*)"', svg)
    assert re.fullmatch(r"M[\d.,]+L[\d.,]+M[\d.,]+Z?(L[\d.,]+)?Z?", path)
    alone = [row["x"] for row in drawing.spec["datasets"]["lines"] if "alone" in row]
    assert alone == [4.0]
    assert svg.count('aria-roledescription="point"') == 1
    assert drawing.rows[2] == ("3", "–")


@pytest.mark.integration
@SOME
@given(
    severities=st.dictionaries(st.integers(1, 500), st.integers(1, 5), max_size=8),
    last=st.integers(1, 500),
    runs=st.integers(1, 4),
    text=TEXTS,
)
def test_any_incidents_are_drawn_and_stand_in_the_table(
    severities: dict[int, int], last: int, runs: int, text: str
) -> None:
    seen = [Incidents(text, style, last, severities, style) for style in range(runs)]

    drawing = guard_plot(seen, ACTIONS, text, last)

    seen_here = sum(1 for step in severities if (0 if last < 2 else 1) <= step <= last)
    assert drawn(drawing).count('aria-roledescription="point"') == runs * seen_here
    assert len(drawing.rows) == runs * len(severities)


def test_a_long_table_shows_first_and_last_and_some_between() -> None:
    steps = range(1, 1001)
    drawing = lines.line_plot([lines.Line("a", 0, steps, [float(s) for s in steps])], "w", "step")

    assert len(drawing.rows) == vega.ROWS
    assert (drawing.rows[0], drawing.rows[-1]) == (("1", "1"), ("1000", "1,000"))


KINDS = ("lines", "points", "bars", "guards")


def every_kind(text: str) -> dict[str, Drawing]:
    """One plot of each kind, with a text wherever one may come from outside."""
    point = categories.Point(0.5, 0.4, 0.6)
    line = lines.Line(text, 0, [1, 2], [0.1, 0.2], [0.1, 0.2], [0.0, 0.1], [0.2, 0.3], 0)
    level = lines.Level(text, 0, 0.1, 1, 0)
    return {
        "lines": lines.line_plot([line, line], text, text, "share", levels=[level], axis="grpo"),
        "points": categories.point_plot(
            [categories.Points(text, 0, [point, None], 0)], [text, "b"], text, "share"
        ),
        "bars": categories.bar_plot([categories.Bars(text, 0, [1, 2])], [text, "b"], text),
        "guards": guard_plot([Incidents(text, i, 9, {3: 2}, i) for i in (0, 1)], ACTIONS, text, 9),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_from_outside_is_data_and_never_read_for_a_meaning(kind: str) -> None:
    plain, hostile = every_kind("plain")[kind], every_kind(HOSTILE)[kind]

    assert list(meant(hostile.spec)) == list(meant(plain.spec))


@pytest.mark.integration
def test_a_text_from_outside_is_drawn_as_it_is() -> None:
    for kind, hostile in every_kind(HOSTILE).items():
        texts = "".join(ElementTree.fromstring(drawn(hostile)).itertext())
        assert "datum.k" in texts or kind == "guards"
