"""Verifiers of answers, one per kind of task, none of which ever guesses.

* `judge_math`: equal value, by exact numbers (`aflowgym.answers.math.mathematics`).
* `judge_code`: every test passes, judged from the values a sandbox recorded
  (`aflowgym.answers.code`).
* `judge_qa`: exact match after SQuAD's normalisation (`aflowgym.answers.squad`).

Each takes the text that an operator left, finds its final answer (`aflowgym.answers.answer`)
and returns a `Verdict`. Nothing is matched by containing or by being near; the fraction of tests
and the F1 are progress, never correctness. An error is no text and never comes here.
"""

from aflowgym.answers.answer import Verdict, final_answer
from aflowgym.answers.assertions import read_tests
from aflowgym.answers.code import CodeTest, Outcome, extract_code, judge_code
from aflowgym.answers.math.mathematics import judge_math
from aflowgym.answers.squad import f1, judge_qa, normalise

__all__ = [
    "CodeTest",
    "Outcome",
    "Verdict",
    "extract_code",
    "f1",
    "final_answer",
    "judge_code",
    "judge_math",
    "judge_qa",
    "normalise",
    "read_tests",
]
