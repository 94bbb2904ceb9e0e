"""Short workflows that stand for enormous ones, or would be walked over and over.

A hundred characters can nest lists of copies, which multiply, and loops, which are walked twice.
Each of these took time without end; that they end is what is tested.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aflowgym import parse
from aflowgym.dsl import Limits, calls
from aflowgym.dsl.nodes import Cond, ListOf, Op, Repeat, Seq, size
from aflowgym.dsl.parsing import MOST_COPIED, read
from aflowgym.operators.aflow import OPERATORS

WIDE = Limits(calls=10**9, depth=100, operators=1_000_000)


@pytest.mark.parametrize("deep", [8, 39])
@pytest.mark.parametrize("limits", [Limits(), WIDE])
def test_copies_of_lists_in_lists_are_refused_before_they_fill_the_memory(deep, limits):
    text = "[" * deep + "Custom" + " * 5]" * deep + " -> ScEnsemble"

    parsed = parse(text, limits=limits)

    assert "E-SIZE" in [error.code for error in parsed.errors]
    assert parsed.workflow is None


def test_copies_count_together_over_a_whole_text():
    lists = ", ".join(["[[[[Custom * 5] * 5] * 5] * 5]"] * 40)

    syntax = read(f"[{lists}]", OPERATORS)

    assert not syntax.sound
    assert size(syntax.tree)[0] < 2 * MOST_COPIED


def test_a_list_of_copies_within_bounds_is_as_long_as_it_says():
    tree = read("[[[Custom * 5] * 5] * 5]", OPERATORS).tree

    assert size(tree)[0] == 125


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


OPS = st.sampled_from(["Custom", "Review", "Programmer", "Test", "ScEnsemble"]).map(Op)
TREES = st.recursive(
    OPS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda steps: Seq(tuple(steps))),
        st.lists(inner, min_size=1, max_size=3).map(lambda steps: ListOf(tuple(steps))),
        st.builds(Repeat, inner, st.integers(1, 5)),
        st.builds(Cond, inner, inner, inner),
    ),
    max_leaves=8,
)


def most_calls(node):
    match node:
        case Op():
            return OPERATORS[node.name].calls[1]
        case ListOf():
            return sum(map(most_calls, node.branches))
        case Repeat():
            return node.times * most_calls(node.body)
        case Cond():
            return most_calls(node.check) + max(most_calls(node.fail), most_calls(node.passed))
        case Seq():
            return sum(map(most_calls, node.steps))


@settings(max_examples=30)
@given(TREES)
def test_a_tree_is_counted_as_its_parts_are(tree):
    assert calls(tree, OPERATORS) == most_calls(tree)
    # A node that is in a tree many times counts each time.
    assert calls(ListOf((tree, tree)), OPERATORS) == 2 * most_calls(tree)
