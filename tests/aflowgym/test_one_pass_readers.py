"""Readers that go through a text once say what the patterns said that they stand for.

Each pattern here is one that took the square of a text's length, kept as an oracle on small texts.
"""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aflowgym.answers.latex import group_end
from aflowgym.dsl.extraction import Region, remove_marks
from aflowgym.dsl.tokens import _TOKEN, tokenize
from aflowgym.operators.aflow import OPERATORS

pytestmark = pytest.mark.nightly


def texts(*pieces):
    return st.lists(st.sampled_from(pieces), max_size=14).map("".join)


@given(texts("->", '"', '\\"', "\\", "\n", "a", " ", "#", "//", "3", "*", "Custom("))
@example('"\\"\\"#"a\\\n"b"')
def test_tokens_are_those_of_the_one_pattern(text):
    whole = [found[0].strip() for found in _TOKEN.finditer(text, 0, len(text.rstrip()))]

    tokens, comments = tokenize(text)

    told = sorted([*tokens[:-1], *comments], key=lambda token: token.start)
    assert [token.text for token in told] == whole


@given(texts(".", ";", ",", " ", "\n", "a", "Custom", "\u2028"))
def test_trailing_punctuation_is_the_run_of_it_at_the_end(text):
    found = re.search(r"[.;,][.;,\s]*\Z", text)
    expected = text
    if found is not None and not found[0].startswith(".."):  # an ellipsis leaves something out
        expected = text[: found.start()] + " " * len(found[0])

    assert remove_marks(Region(text, text), OPERATORS).text == expected


@pytest.mark.parametrize("start", [0, 2])
def test_a_brace_is_closed_by_the_one_that_balances_it(start):
    assert group_end("{}"[:start] + "{a{b}c}}", start) == start + 6
    assert group_end("{{}", 0) == -1
