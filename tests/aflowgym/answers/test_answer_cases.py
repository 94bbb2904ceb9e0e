"""400 answers, judged as a careful person would, and how the verifiers judge them.

`answer_cases.jsonl` was written before the readers that are measured by it: 40 answers of each of
ten kinds, half of them acceptable. A false accept is an answer that is judged right and is not.
"""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from aflowgym.answers import final_answer, judge_math, judge_qa
from aflowgym.answers.math.outside import Outside
from aflowgym.envs import recheck
from aflowgym.tasks.task import WorkflowTask, judge

CASES = [
    json.loads(line)
    for line in Path(__file__).with_name("answer_cases.jsonl").read_text("utf-8").splitlines()
]
PAGE = Path(__file__).parents[3] / "docs" / "workflow-answers.md"
MATH = [case for case in CASES if case["task"] == "math"]


def task_of(case) -> WorkflowTask:
    return WorkflowTask(
        id=case["id"],
        question=case["question"],
        item=case["kind"],
        kind=case["task"],
        gold=case["gold"],
        aliases=tuple(case.get("aliases", ())),
    )


def faults(cases, accepts) -> tuple[list[str], list[str]]:
    """The false accepts and the false rejects of a verifier."""
    said = [(case, accepts(case)) for case in cases]
    false = [case["id"] for case, accepted in said if accepted and not case["acceptable"]]
    missed = [case["id"] for case, accepted in said if not accepted and case["acceptable"]]
    return false, missed


def ours(case) -> bool:
    return judge(task_of(case), case["reply"]).correct is True


def test_there_are_forty_answers_of_each_of_ten_kinds_and_half_are_acceptable():
    counted = Counter((case["kind"], case["acceptable"]) for case in CASES)

    assert len(CASES) == 400
    assert len(counted) == 20
    assert set(counted.values()) == {20}


def test_at_most_two_wrong_answers_are_accepted_and_six_right_ones_rejected():
    false, missed = faults(CASES, ours)

    assert len(false) <= 2, false
    assert len(missed) <= 6, missed


def test_the_page_gives_the_counts_of_each_kind():
    false, missed = (Counter(each[:-3] for each in found) for found in faults(CASES, ours))
    rows = re.findall(r"^\| (\w+) \|.*\| (\d+) \| (\d+) \|$", PAGE.read_text("utf-8"), re.M)

    kinds = list(dict.fromkeys(case["kind"] for case in CASES))
    assert rows == [(kind, str(false[kind]), str(missed[kind])) for kind in kinds]


def test_where_the_second_rule_decides_it_agrees():
    decided = {
        case["id"]: said
        for case in CASES
        if (said := recheck._right(task_of(case), case["reply"])) is not None
    }

    assert len(decided) > 20
    assert {name for name, said in decided.items() if said} <= {
        case["id"] for case in CASES if ours(case)
    }
    assert [case["id"] for case in CASES if decided.get(case["id"]) is False and ours(case)] == []


@pytest.mark.slow
def test_the_page_gives_the_counts_of_math_verify():
    library = pytest.importorskip("math_verify")
    outside = Outside(seconds=60)
    try:
        bare = faults(
            MATH,
            lambda case: outside.same(case["gold"], final_answer(case["reply"]).text) is True,
        )
    finally:
        outside.close()
    whole = faults(MATH, lambda case: verified(library, case))

    rows = re.findall(r"^\| `math-verify`.*\| (\d+) \| (\d+) \|$", PAGE.read_text("utf-8"), re.M)
    assert rows == [tuple(str(len(each)) for each in found) for found in (bare, whole)]


def verified(library, case) -> bool:
    """What the library says if it is given the whole reply."""
    try:
        gold, given = (
            library.parse(text, parsing_timeout=None)
            for text in (f"${case['gold']}$", case["reply"])
        )
        return bool(gold and given and library.verify(gold, given, timeout_seconds=None))
    except Exception:  # noqa: BLE001 - sympy raises whatever it likes
        return False


OVERTHROWN = "Who defeated Napoleon at Waterloo?"
CHOSEN = "Which city is larger, Paris or London?"


@pytest.mark.parametrize(
    ("gold", "answer", "question", "right"),
    [
        ("Wellington", "Wellington defeated Napoleon.", OVERTHROWN, True),
        ("Wellington", "Napoleon was defeated by Wellington at Waterloo.", OVERTHROWN, True),
        ("Wellington", "Napoleon defeated Wellington at Waterloo.", OVERTHROWN, False),
        ("Wellington", "Wellington was defeated by Napoleon.", OVERTHROWN, False),
        ("Wellington", "Anyone but Wellington.", OVERTHROWN, False),
        ("Wellington", "It may be Wellington.", OVERTHROWN, False),
        ("Wellington", "Was it Wellington?", OVERTHROWN, False),
        ("London", "London is larger.", CHOSEN, True),
        ("London", "London and Paris", CHOSEN, False),
        ("London", "London, Paris", CHOSEN, False),
        ("Charles III", "King Charles 3rd", "Who is king?", False),
        ("King Charles", "Prince Charles", "Who reigns?", False),
    ],
)
def test_a_sentence_is_right_only_if_it_says_so(gold, answer, question, right):
    assert judge_qa([gold], answer, question).correct is right


APPLES = "Tom has 5 apples and Ann has 7. How many {} does {} have{}?"


@pytest.mark.parametrize(
    ("gold", "answer", "question", "right"),
    [
        ("5", "Tom has 5 apples.", APPLES.format("apples", "Tom", ""), True),
        ("5", "Ann has 5 apples.", APPLES.format("apples", "Tom", ""), False),
        ("2", "Tom has 2 more apples than Ann.", APPLES.format("more", "Ann", " than Tom"), False),
        ("3", "x ≈ 3", "", True),
        (r"\sqrt2", "√2 ≈ 1.41", "", True),
        (r"\sqrt2", "√3 ≈ 1.41", "", False),
        ("5", "5 (or 6)", "", False),
        ("5", r"\boxed{\frac{10}{2}}", "", False),
        ("8", "8 = 2^3", "", True),
        ("8", "4 = 2^3", "", False),
        ("8", "x = 2^3", "", False),
        ("1500", "1.5 × 10^3", "", True),
        ("3 m^2", "30000 cm^2", "", True),
        ("3 m^2", "300 cm^2", "", False),
        ("3 cm", "30 mm", "How many cm is it?", False),
        ("1/3", "0.3...", "", False),
        ("0.3", "0.333...", "", False),
        ("2", "two dozen", "", False),
        (r"\sqrt[3]{16}", r"2\sqrt[3]{2}", "", True),
        (r"\sqrt[4]{4}", r"\sqrt{2}", "", True),
        (r"\sqrt[3]{2}", r"\sqrt[3]{4}", "", False),
    ],
)
def test_a_number_is_right_only_if_it_is_finished_and_of_the_question(
    gold, answer, question, right
):
    assert judge_math(gold, answer, question).correct is right
