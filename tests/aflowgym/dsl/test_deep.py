"""Short workflows that stand for enormous ones, or would be walked over and over.

A hundred characters can nest lists of copies, which multiply, and loops, which are walked twice.
Each of these took time without end; that they end is what is tested.
"""

import pytest

from aflowgym import parse
from aflowgym.dsl import Limits

WIDE = Limits(calls=10**9, depth=100, operators=1_000_000)


@pytest.mark.parametrize("deep", [8, 39])
@pytest.mark.parametrize("limits", [Limits(), WIDE])
def test_copies_of_lists_in_lists_are_refused_before_they_fill_the_memory(deep, limits):
    text = "[" * deep + "Custom" + " * 5]" * deep + " -> ScEnsemble"

    parsed = parse(text, limits=limits)

    assert "E-SIZE" in [error.code for error in parsed.errors]
    assert parsed.workflow is None


@pytest.mark.parametrize("limits", [Limits(), WIDE])
@pytest.mark.parametrize("step", ["Custom -> Review", "Review ? Revise : done"])
def test_a_loop_in_loops_is_counted_and_checked_once(step, limits):
    text = "(" * 39 + step + ") * 2" * 39 + " -> Custom"

    parsed = parse(text, limits=limits)

    assert parsed.workflow is None
    assert parsed.errors[0].code in ("E-SIZE", "E-BUDGET", "E-NEEDS-SOLUTION")


@pytest.mark.parametrize("text", ["[Custom, " * 1_900, "(Custom -> " * 1_800])
def test_brackets_of_any_depth_are_an_ordinary_error(text):
    assert "E-SIZE" in [error.code for error in parse(text).errors]
