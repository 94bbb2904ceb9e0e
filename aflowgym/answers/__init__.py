"""Answer verifiers, one for each kind of task.

* `judge_math`: the values must be equal in exact arithmetic (`aflowgym.answers.math.mathematics`).
* `judge_code`: every test must pass for the values that a sandbox recorded
  (`aflowgym.answers.code`).
* `judge_qa`: the answers must match exactly after SQuAD's normalization (`aflowgym.answers.squad`).

Each verifier finds the final answer in the output of an operator (`aflowgym.answers.answer`) and
returns a `Verdict`. An answer that merely contains the gold answer, or is close to it, is not
correct. The fraction of passed tests and the F1 score affect only the `progress` of the verdict.
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
