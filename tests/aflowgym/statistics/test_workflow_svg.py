"""A workflow as a picture: what is drawn, that nothing lies on anything else, what is escaped."""

import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aflowgym.dsl import parse
from aflowgym.dsl.nodes import operators_of
from aflowgym.envs.family import WorkflowTaskFamily
from aflowgym.envs.players import TYPICAL
from aflowgym.statistics.workflow_svg import workflow_picture

DEEP = (
    "[Custom -> Review ? Revise : done, (Custom -> Revise) * 2] -> MdEnsemble"
    " -> (Review ? Revise : done) * 3"
)
WORKFLOWS = [*TYPICAL, DEEP, 'Custom("be brief") -> Format', "Custom -> Review ? Revise : Format"]
NUMBER = r'="(-?[\d.]+)"'


def boxes(picture):
    """Left, top, right and bottom of each operator's box."""
    found = re.findall(rf"<rect[^>]* x{NUMBER} y{NUMBER} width{NUMBER} height{NUMBER}", picture)
    return [(x, y, x + w, y + h) for x, y, w, h in (map(float, each) for each in found)]


def texts(picture):
    return re.findall(r'<text class="mid[^>]*>([^<]*)<', picture)


def test_every_operator_has_a_box_and_no_box_lies_on_another():
    for text in WORKFLOWS:
        picture = workflow_picture(text)
        drawn = boxes(picture)

        names = [op.name for op in operators_of(parse(text).workflow)]
        assert [shown for shown in texts(picture) if shown in names] == names, text
        assert len(drawn) == len(names), text
        for a, b in combinations(drawn, 2):
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], text


@pytest.mark.nightly
def test_everything_lies_inside_of_the_picture():
    for text in WORKFLOWS:
        picture = workflow_picture(text)
        width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture).groups())

        for left, top, right, bottom in boxes(picture):
            assert left >= 0, text
            assert top >= 0, text
            assert right <= width + 0.1, text
            assert bottom <= height + 0.1, text
        for start_x, start_y in re.findall(r'd="M(-?[\d.]+) (-?[\d.]+)', picture):
            assert 0 <= float(start_x) <= width + 0.1, text
            assert 0 <= float(start_y) <= height + 0.1, text


def test_an_instruction_stands_in_its_box_escaped_and_cut():
    picture = workflow_picture('Custom("<script>alert(1)</script> and much more of this")')

    assert "<script" not in picture
    assert "&lt;script&gt;alert(1)&lt;/scri" in picture
    assert picture.count("…") == 1


def test_what_is_no_workflow_has_no_picture():
    assert [workflow_picture(text) for text in ("", "Let me think.")] == ["", ""]


ARGUMENTS = st.dictionaries(st.sampled_from(["dsl", "x"]), st.text(max_size=40) | st.integers())


@pytest.mark.nightly
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from(["run_workflow", "answer", None]),
            "arguments": ARGUMENTS | st.none() | st.text(max_size=5),
        },
    )
)
def test_no_call_that_a_model_writes_stops_the_drawing(call):
    assert isinstance(WorkflowTaskFamily().picture(call), str)
