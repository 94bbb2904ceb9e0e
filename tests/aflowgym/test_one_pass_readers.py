"""Readers that go through a text once say what the patterns said that they stand for.

Each pattern here is one that took the square of a text's length, kept as an oracle on small texts.
"""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aflowgym.answers.extraction import bare
from aflowgym.answers.latex import group_end, plain
from aflowgym.dsl.extraction import Region, remove_marks
from aflowgym.dsl.tokens import _TOKEN, tokenize
from aflowgym.operators.aflow import OPERATORS
from aflowgym.operators.replies import Tags, verdict_lines

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


def bare_in_copies(text):
    """`bare` as it is said, a new text for each mark that is taken off."""
    text = text.strip()
    while not text.isalnum():
        before = text
        text = text.strip().removesuffix(".").strip()
        for mark in ("**", "__", "$$", "`", '"', "“", "”"):
            if text.startswith(mark) and text.endswith(mark) and len(text) > 2 * len(mark):
                text = text[len(mark) : -len(mark)]
        text = text.removeprefix("**").removesuffix("**") if text.count("**") == 1 else text
        if text.startswith("$") and text.endswith("$") and len(text) > 2:
            text = text[1:-1]
        for opening, closing in (("\\(", "\\)"), ("\\[", "\\]"), ("“", "”")):
            if text.startswith(opening) and text.endswith(closing):
                text = text[len(opening) : -len(closing)]
        if text == before:
            return text
    return text


MARKS = ("**", "*", "__", "$", "$$", "`", '"', "“", "”", "\\(", "\\)", "\\[", "\\]", " ", ".", "a")


@given(texts(*MARKS), texts(*MARKS))
def test_an_answer_loses_the_marks_around_it(before, after):
    for text in (before, f"{before}12{after}", f"{before}12{before[::-1]}"):
        bared = bare_in_copies(text)
        assert bare(text) == bared or text.strip().isalnum()


def plain_in_copies(text):
    """The commands for text taken out one by one, each time from a new text."""
    command = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox|operatorname|rm)\s*")
    while found := command.search(text):
        end = group_end(text, found.end()) if text[found.end() : found.end() + 1] == "{" else -1
        inside = text[found.end() + 1 : end] if end >= 0 else text[found.end() :]
        rest = text[end + 1 :] if end >= 0 else ""
        text = f"{text[: found.start()]} {inside} {rest}"
    return " ".join(text.split())


@given(texts("\\text", "\\textbf", "\\rm", "{", "}", "\\text{", " ", "a", "xt{"))
@example("\\text{\\rm}{x}")
def test_commands_for_text_leave_what_they_hold(text):
    assert plain(text) == plain_in_copies(text)


@given(texts("<a>", "</a>", "<B>", "</b>", "<A>", "x", "\n", "<ab>", "</ab>"))
def test_tags_pair_with_the_next_closing_one_of_their_name(text):
    whole = re.compile(r"<(a|b|ab)>(?P<rest>.*?)</\1>", re.S | re.I)

    tags = Tags("a", "b", "ab")

    assert tags.without(text) == whole.sub("", text)
    assert list(tags.pairs(text)) == [
        (*found.span()[:1], *found.span("rest"), *found.span()[1:])
        for found in whole.finditer(text)
    ]


@given(texts("verdict", "Verdict: ", "final ", "the\n", "my", " is", "\n", "**", ":", "x", "right"))
def test_lines_of_verdicts_are_those_of_one_pattern(text):
    line = re.compile(
        r"^\W*(?:(?:final|my|the|overall)\s+)*verdict\b(?!\w)(?:\s+is\b)?\W*(?P<rest>[^\n]*)",
        re.IGNORECASE | re.MULTILINE,
    )

    assert [(start, *inside) for start, *inside in verdict_lines(text)] == [
        (found.start(), *found.span("rest"), found.end()) for found in line.finditer(text)
    ]


@pytest.mark.parametrize("start", [0, 2])
def test_a_brace_is_closed_by_the_one_that_balances_it(start):
    assert group_end("{}"[:start] + "{a{b}c}}", start) == start + 6
    assert group_end("{{}", 0) == -1
