"""No text is run as something else than a plain reader takes it for.

The lines are in `odd_lines_signs` and `odd_lines_around` with their meanings. Generated workflows
are wrapped in tags, fences and quotes as well, with and without an odd sign in them.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aflowgym import parse
from aflowgym.dsl.nodes import Op
from aflowgym.dsl.tokens import tokenize
from tests.aflowgym.dsl import odd_lines_around, odd_lines_signs

LINES = {"signs": odd_lines_signs, "around": odd_lines_around}


def outcome(text):
    """Return the workflow that runs, and whether there is a diagnostic and an error."""
    parsed = parse(text)
    return str(parsed.workflow), bool(parsed.diagnostics), bool(parsed.errors)


@pytest.mark.parametrize("lines", LINES)
def test_a_line_with_one_plain_meaning_is_read_as_that_and_says_how(lines):
    meant = {
        text: (canonical, True, False)
        for canonical, texts in LINES[lines].READ.items()
        for text in texts
    }

    assert {text: outcome(text) for text in meant} == meant


@pytest.mark.parametrize("lines", LINES)
def test_a_line_without_one_plain_meaning_is_an_error_with_a_workflow_that_parses(lines):
    for text in LINES[lines].REFUSED:
        parsed = parse(text)

        assert parsed.workflow is None, text
        for error in parsed.errors:
            start, end = error.span
            assert 0 <= start <= end <= len(text), text
            assert str(parse(error.suggestion).workflow) == error.suggestion, text


def test_an_error_names_the_text_that_may_be_more_of_the_workflow():
    text = "```\nCustom -> Review\n```\n| Revise this"
    (error,) = parse(text).errors

    assert error.code == "E-REST"
    assert text[slice(*error.span)] == error.found == "| Revise this"
    assert error.suggestion == "Custom -> Review"


INSTRUCTIONS = st.sampled_from(
    ["", "", "", "be brief", "use **x** and `y`", 'say "no"', "a -> b # c", "DSL: <think>", "x 3"]
) | st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)


WORKFLOWS = st.builds(
    lambda text, said: text.replace("Revise", str(Op("Revise", said))),
    st.sampled_from([*odd_lines_signs.READ, "Custom -> (Review ? Revise : Format) * 3"]),
    INSTRUCTIONS,
)
WRAPPERS = [
    "Workflow: {}",
    "**DSL:** {}",
    "`{}`",
    "**{}**",
    '"{}"',
    "“{}”",
    "```\n{}\n```",
    "Here is my plan:\n```dsl\n{}\n```\nThat is all.",
    "<workflow>{}</workflow>",
    "Sure! I use <workflow>{}</workflow>",
    "<think>Custom or Review?</think>{}",
    "Sure!\nDSL: {}",
    "- {}",
    "1. {}",
    "> {}",
    "{}.",
]


def is_read_in(wrapper, text):
    assert str(parse(wrapper.replace("{}", text)).workflow) == text


def is_the_same_or_an_error(data, text, sign, wrapper):
    tokens, _ = tokenize(text)
    at = data.draw(st.sampled_from(sorted({place for each in tokens for place in each[2:]})))
    blank = data.draw(st.sampled_from(["", " "]))
    parsed = parse(wrapper.replace("{}", text[:at] + blank + sign + blank + text[at:]))

    assert parsed.workflow is None or str(parsed.workflow) == text
    if sign in "+|&\\^~@%":
        assert parsed.errors


def are_not_run_alone(one, two, form, between):
    parsed = parse(one + form.format(between) + two)

    assert parsed.workflow is None or one == two or str(parsed.workflow) not in {one, two}


ODD = [*"+|&/\\<>^~=@%$#!.;'\"`{}_…–—·•»▶∨⊕¬；。", "&&", "||", "//", "**", "<-", "..", "::", "--"]


AFTER_A_LINE_END = sorted({*ODD} - {"#", "//"})
BETWEEN = st.tuples(
    st.just(" {} "), st.sampled_from([*ODD, "or", "and", "then", "plus", "if wrong", "x", "3 x"])
) | st.tuples(st.sampled_from(["\n{} ", "{}\n", ". {} "]), st.sampled_from(AFTER_A_LINE_END))


@settings(max_examples=30)
@given(st.sampled_from(WRAPPERS), WORKFLOWS)
def test_a_workflow_wrapped_in_prose_or_marks_is_that_workflow(wrapper, text):
    is_read_in(wrapper, text)


@settings(max_examples=40)
@given(st.data(), WORKFLOWS, st.sampled_from(ODD), st.sampled_from(["{}", *WRAPPERS]))
def test_a_workflow_with_an_odd_sign_in_it_is_the_same_or_an_error(data, text, sign, wrapper):
    is_the_same_or_an_error(data, text, sign, wrapper)


@settings(max_examples=20)
@given(WORKFLOWS, WORKFLOWS, BETWEEN)
def test_of_two_workflows_with_something_between_them_none_is_run_alone(one, two, between):
    are_not_run_alone(one, two, *between)


@pytest.mark.nightly
@settings(max_examples=3_000)
@given(st.data(), WORKFLOWS, WORKFLOWS, st.sampled_from(ODD), st.sampled_from(WRAPPERS), BETWEEN)
def test_the_same_of_3000_workflows(data, text, other, sign, wrapper, between):
    is_read_in(wrapper, text)
    is_the_same_or_an_error(data, text, sign, wrapper)
    are_not_run_alone(text, other, *between)
