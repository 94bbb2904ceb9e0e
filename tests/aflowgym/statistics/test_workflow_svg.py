"""A workflow as a picture: what is drawn, that nothing lies on anything else, what is escaped."""

import doctest
import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aflowgym.statistics.workflow_svg
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


@pytest.mark.parametrize("text", WORKFLOWS)
def test_every_operator_has_a_box_and_no_box_lies_on_another(text):
    picture = workflow_picture(text)
    drawn = boxes(picture)

    names = [op.name for op in operators_of(parse(text).workflow)]
    assert [shown for shown in texts(picture) if shown in names] == names
    assert len(drawn) == len(names)
    for a, b in combinations(drawn, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


@pytest.mark.parametrize("text", WORKFLOWS)
def test_everything_lies_inside_of_the_picture(text):
    picture = workflow_picture(text)
    width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture).groups())

    for left, top, right, bottom in boxes(picture):
        assert left >= 0
        assert top >= 0
        assert right <= width + 0.1
        assert bottom <= height + 0.1
    for start_x, start_y in re.findall(r'd="M(-?[\d.]+) (-?[\d.]+)', picture):
        assert 0 <= float(start_x) <= width + 0.1
        assert 0 <= float(start_y) <= height + 0.1


def test_the_branches_of_a_list_stand_above_each_other():
    first, second, ensemble = boxes(workflow_picture("[Custom, Programmer] -> ScEnsemble"))

    assert first[0] == second[0]
    assert first[3] < second[1]
    assert ensemble[0] > max(first[2], second[2])


def test_a_loop_has_its_count_on_an_arc_over_its_body():
    picture = workflow_picture("CustomCodeGenerate -> Test * 3")

    assert "×3" in texts(picture)
    arc = re.search(r"M([\d.]+) ([\d.]+) V([\d.]+) q0 -8 -8 -8 H([\d.]+)", picture)
    right, level, top, left = map(float, arc.groups())
    _, test = boxes(picture)
    assert left < test[0] < test[2] < right
    assert top < test[1] < level


def test_a_condition_has_an_arm_that_fails_and_one_that_passes():
    picture = workflow_picture("Custom -> Review ? Revise : Format")
    _, review, revise, form = boxes(picture)

    assert [shown for shown in texts(picture) if shown in ("fails", "passes")] == [
        "fails",
        "passes",
    ]
    assert revise[1] < review[1] < form[1]


def test_a_check_is_tinted_and_another_operator_is_not():
    picture = workflow_picture("Custom -> Review -> Revise")

    assert picture.count('<rect class="box check"') == 1
    assert picture.count('<rect class="box"') == 2


def test_an_instruction_stands_in_its_box_escaped_and_cut():
    picture = workflow_picture('Custom("<script>alert(1)</script> and much more of this")')

    assert "<script" not in picture
    assert "&lt;script&gt;alert(1)&lt;/scri" in picture
    assert picture.count("…") == 1


def test_what_is_no_workflow_has_no_picture():
    assert [workflow_picture(text) for text in ("", "Let me think.")] == ["", ""]


def test_a_spelling_is_drawn_as_its_canonical_form():
    assert workflow_picture("custom → review ? revise") == workflow_picture(
        "Custom -> Review ? Revise : done"
    )


ARGUMENTS = st.dictionaries(st.sampled_from(["dsl", "x"]), st.text(max_size=40) | st.integers())


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


def test_only_a_submitted_workflow_is_drawn():
    draw = WorkflowTaskFamily().picture

    assert draw({"name": "run_workflow", "arguments": {"dsl": "Custom"}}) == workflow_picture(
        "Custom"
    )
    assert draw({"name": "custom", "arguments": {"dsl": "Custom"}}) == ""


def test_the_examples_in_the_docstrings_are_true():
    assert doctest.testmod(aflowgym.statistics.workflow_svg).failed == 0
