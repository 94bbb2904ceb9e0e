"""Answers of ten kinds, judged as a careful person would, and how the verifiers judge them.

Half of them are acceptable. A false accept is an answer that is judged right and is not.
"""

import json
from pathlib import Path

from aflowgym.answers import judge_math, judge_qa
from aflowgym.envs import recheck
from aflowgym.tasks.task import WorkflowTask, judge

CASES = [
    json.loads(line)
    for line in Path(__file__).with_name("answer_cases.jsonl").read_text("utf-8").splitlines()
]


def task_of(case) -> WorkflowTask:
    return WorkflowTask(
        id=case["id"],
        question=case["question"],
        item=case["kind"],
        kind=case["task"],
        gold=case["gold"],
        aliases=tuple(case.get("aliases", ())),
    )


def accepted(case) -> bool:
    return judge(task_of(case), case["reply"]).correct is True


def test_no_wrong_answer_is_accepted_and_at_most_five_right_ones_are_rejected():
    rejected = [case["id"] for case in CASES if case["acceptable"] and not accepted(case)]

    assert [case["id"] for case in CASES if accepted(case) and not case["acceptable"]] == []
    assert len(rejected) <= 5, rejected


def test_where_the_second_rule_decides_it_agrees():
    decided = [(case, recheck._right(task_of(case), case["reply"])) for case in CASES]
    decided = [(case, said) for case, said in decided if said is not None]

    assert len(decided) > 20
    assert [case["id"] for case, said in decided if said != accepted(case)] == []


def test_a_name_in_a_sentence_is_no_answer():
    for answer in ("Wellington did it.", "Anyone but Wellington.", "It may be Wellington."):
        assert judge_qa(["Wellington"], answer).correct is False, answer
    assert judge_qa(["Charles III"], "King Charles 3rd").correct is False
    assert judge_qa(["King Charles"], "Prince Charles").correct is False


def test_a_number_is_right_only_if_it_is_finished_and_of_the_question():
    for gold, answer, question, right in [
        ("3", "x ≈ 3", "", True),
        (r"\sqrt2", "√2 ≈ 1.41", "", True),
        ("5", "5 (or 6)", "", False),
        ("5", r"\boxed{\frac{10}{2}}", "", False),
        ("8", "2^3 = 8", "", True),
        ("8", "8 = 2^3", "", False),
        ("1500", "1.5 × 10^3", "", True),
        ("3 m^2", "30000 cm^2", "", True),
        ("3 cm", "30 mm", "How many cm is it?", False),
        ("1/3", "0.3...", "", False),
        ("2", "two dozen", "", False),
        (r"\sqrt[3]{16}", r"2\sqrt[3]{2}", "", True),
        (r"\sqrt[3]{2}", r"\sqrt[3]{4}", "", False),
    ]:
        assert judge_math(gold, answer, question).correct is right, (gold, answer)
