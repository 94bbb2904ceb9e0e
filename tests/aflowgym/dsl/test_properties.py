"""What holds for any tree and any text: print and parse, spelling, errors, suggestions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aflowgym import parse
from aflowgym.dsl import CODES
from aflowgym.dsl.nodes import DONE, Cond, ListOf, Op, Repeat, sequence
from aflowgym.dsl.parsing import read
from aflowgym.dsl.tokens import tokenize
from aflowgym.operators.aflow import OPERATORS

OPS = st.builds(
    Op,
    st.sampled_from(list(OPERATORS)),
    st.sampled_from(["", "", "", "think"]) | st.text(max_size=8),
)


def larger(inner):
    chains = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        chains.map(lambda steps: sequence(steps, (0, 0))),
        chains.map(lambda branches: ListOf(tuple(branches))),
        st.builds(Repeat, inner, st.integers(1, 5)),
        st.builds(Cond, inner, inner, inner | st.just(DONE)),
        st.builds(Cond, inner, st.just(DONE), st.just(DONE)),
    )


TREES = st.recursive(OPS, larger, max_leaves=8)
PIECES = st.sampled_from(
    [
        *[*OPERATORS, "done", "->", "→", "(", ")", "[", "]", ",", "?", ":", "*", "3", '"x"', '"'],
        *["\n", "#", "`", "**", "<workflow>", "</workflow>", "```", "DSL:", "<think>", "1. ", ";"],
    ]
)
TEXTS = st.text(max_size=60) | st.lists(PIECES, max_size=14).map(" ".join)


@settings(max_examples=40)
@given(TREES)
def test_the_parse_of_the_print_is_the_same_tree(tree):
    syntax = read(str(tree), OPERATORS)

    assert syntax.sound
    assert syntax.tree == tree
    assert str(syntax.tree) == str(tree)


OTHER_SIGNS = {
    "arrow": ["->", "→", "—>", " then ", "－＞"], "?": ["?", "？"], ":": [":", "：", " else "],
    "(": ["(", "（"], ")": [")", "）"], "[": ["[", "【"], "]": ["]", "］"], ",": [",", "，"],
}  # fmt: skip
OTHER_COUNTS = [
    "* {}", "× {}", " x {}", " x{}", "^{}", "{{{}}}", " times {}", " {} times", " {}x",
    "({} times)", " up to {} times", "* {} times",
]  # fmt: skip


def respelt(text, choose):
    """A workflow in other signs, and in words for them."""
    tokens, _ = tokenize(text)
    written, last = "", ""
    for token in tokens[:-1]:
        gap = text[token.start - 1 : token.start] if token.start else ""
        if token.kind == "int":
            written += choose(OTHER_COUNTS).format(token.text)
        elif token.kind != "times":
            other = choose(OTHER_SIGNS.get(token.kind, [token.text]))
            written += " " * (gap == " " or last == "int") + other
        last = token.kind
    return written


@settings(max_examples=30)
@given(TREES, st.data())
def test_a_workflow_in_other_signs_and_words_for_them_is_the_same_tree(tree, data):
    text = respelt(str(tree), lambda forms: data.draw(st.sampled_from(forms)))
    syntax = read(text, OPERATORS)

    assert syntax.sound, text
    assert syntax.tree == tree, text


def is_a_workflow_or_an_error(text):
    parsed = parse(text)

    assert (parsed.workflow is None) == bool(parsed.errors)
    for found in parsed.diagnostics:
        assert found.code in CODES
        assert 0 <= found.span[0] <= found.span[1] <= len(text)


def has_suggestions_that_work(text, kind):
    for found in parse(text, kind=kind).diagnostics:
        assert found.suggestion is not None
        again = parse(found.suggestion, kind=kind)
        assert str(again.workflow) == found.suggestion


TASK_KINDS = st.sampled_from([None, "math", "code", "qa"])


@settings(max_examples=80)
@given(TEXTS)
def test_any_text_gives_a_workflow_or_an_error(text):
    is_a_workflow_or_an_error(text)


@settings(max_examples=60)
@given(TEXTS | TREES.map(str), TASK_KINDS)
def test_what_is_suggested_works(text, kind):
    has_suggestions_that_work(text, kind)


@pytest.mark.nightly
@settings(max_examples=3_000)
@given(TEXTS | TREES.map(str), TASK_KINDS)
def test_the_same_of_3000_texts(text, kind):
    is_a_workflow_or_an_error(text)
    has_suggestions_that_work(text, kind)
