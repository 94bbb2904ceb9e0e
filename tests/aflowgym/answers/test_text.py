"""Finding the final answer, and judging answers in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aflowgym.answers import f1, final_answer, judge_math, judge_qa, normalise


def test_the_last_answer_of_the_strongest_kind_is_taken():
    for text, answer, place in [
        (r"First \boxed{3}, no: \boxed{\frac{1}{2}}.", r"\frac{1}{2}", "boxed"),
        ("<answer> Paris </answer>", "Paris", "tag"),
        ("She has 3 + 4 = 7.\n#### 7", "7", "mark"),
        ("I think so. The final answer is: **12**. Done!", "12", "said"),
        ("Answer: the Morn", "the Morn", "said"),
        ("a line\n\n3.5\n", "3.5", "last_line"),
        ("  \n", "", "nothing"),
        ("The answer is 3.25 exactly", "3.25 exactly", "said"),
    ]:
        found = final_answer(text)

        assert (found.text, found.place) == (answer, place), text


def test_words_are_right_only_if_they_name_the_gold_and_nothing_else():
    for gold, answer, right in [
        ("Paris 1995", "London 1995", False),
        ("Beatles", "not the Beatles", False),
        ("Paris", "I don't know", False),
        ("The Beatles", "beatles.", True),
        ("the Morn", "The answer is the River, no: the answer is Morn.", True),
        ("Lake Aspen", "The river flows into the lake. It is Lake Aspen.", False),
        ("Lake Aspen", "Lake Aspen or Lake Dove", False),
        ("Lake Aspen", "The lake is Lake Aspen.", False),
        ("yes", "Yes, they do", True),
        ("yes", "Yes, but only one of them", False),
    ]:
        verdict = judge_qa([gold], answer)

        assert verdict.correct is right, gold
        assert (verdict.progress == 1.0) is right, gold


def test_another_name_of_the_gold_is_as_right():
    assert judge_qa(["the Morn", "River Morn"], "river morn").correct is True


def test_f1_is_progress_and_yes_shares_nothing_with_no():
    assert judge_qa(["united states"], "united kingdom").progress == pytest.approx(0.5)
    assert f1("yes", "yes and no") == 0.0


def test_a_gold_without_words_leaves_the_answer_unscored():
    assert judge_qa(["?"], "anything").correct is None


@given(st.text(max_size=60))
def test_normalising_twice_changes_no_more_than_once(text):
    assert normalise(normalise(text)) == normalise(text)


@given(st.text(max_size=60), st.text(max_size=60))
def test_f1_is_a_share_and_symmetric_and_no_text_raises(one, other):
    assert 0.0 <= f1(one, other) <= 1.0
    assert f1(one, other) == f1(other, one)
    assert judge_qa([one], other).progress <= 1.0


@pytest.mark.parametrize(
    "text",
    ["\\boxed{" * 14_000, "<answer>" * 6_000 + "</answer>" * 6_000],
)
def test_a_flood_of_openings_is_read_once_not_once_for_each(text):
    """Quadratic reading of these took a minute; the count of characters looked at is bounded."""
    assert judge_qa(["Paris"], text).correct is False
    assert judge_math("5", text).correct is False
