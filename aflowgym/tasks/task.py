"""Workflow tasks: a problem, and what its verifier needs to tell whether an answer is right.

There are three kinds. A `math` task has a value as its gold, a `qa` task a few words (with other
names they may go by) and passages to find them in, a `code` task tests: calls over literals, of
which a few are public, for the operators that may run tests, and all decide. `solution` is a
program that passes them; it is for the expert, for simulated operators and for tests, and no agent
sees it.

`distractors` are wrong answers that a hurried solver gives. They make simulated mistakes look
like mistakes: a slip in the last step, another person of the same passages, a program that forgets
a case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from aflowgym.answers.answer import Verdict
from aflowgym.answers.code import CodeTest, Outcome, judge_code
from aflowgym.answers.math.mathematics import judge_math
from aflowgym.answers.squad import judge_qa
from aflowgym.remembering import remembered
from toolgym.tasks import Task

Kind = Literal["math", "code", "qa"]
KINDS: Final[tuple[Kind, ...]] = ("math", "code", "qa")


@dataclass(frozen=True)
class WorkflowTask(Task):
    """A problem for a workflow; `item` is the family that splits keep together.

    Attributes:
        kind: What sort of answer it has: `math`, `code` or `qa`.
        gold: The right answer of a `math` or `qa` task; empty for `code`.
        aliases: Other names of the gold, as right as itself; `qa` only.
        context: The passages in which a `qa` answer is found, in the order they are shown.
        hops: How many facts a `qa` answer joins; 0 if unknown.
        entry_point: The function that a `code` task asks for.
        tests: All the tests of a `code` task.
        public_tests: Those that an operator may run before it answers.
        solution: A program that passes the tests; for `math`, the worked solution where there is
            one.
        distractors: Wrong answers of the same form as right ones.
        setup: Code that runs before each program of a `code` task: the imports and functions that
            its prompt gives, and a solution may use.
    """

    kind: Kind = "math"
    gold: str = ""
    aliases: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    hops: int = 0
    entry_point: str = ""
    tests: tuple[CodeTest, ...] = ()
    public_tests: tuple[CodeTest, ...] = ()
    solution: str = ""
    distractors: tuple[str, ...] = ()
    setup: str = ""

    @property
    def prompt(self) -> str:
        """The text that operators get: the passages, if any, and the question."""
        return "\n".join([*self.context, "", self.question]) if self.context else self.question


def judge(task: WorkflowTask, answer: str, outcomes: Sequence[Outcome] = ()) -> Verdict:
    """Judge the solution of a workflow.

    Args:
        answer: The text of its solution; not looked at for `code`.
        outcomes: Outcomes of the calls of a `code` task's tests, as a sandbox recorded them.
            Without them no test has passed.

    Raises:
        ValueError: There are more outcomes than the task has tests.
    """
    if task.kind == "code":
        return judge_code(task.tests, outcomes)
    return _judge_text(task.kind, task.gold, task.aliases, task.question, answer)


@remembered(8192)
def _judge_text(
    kind: Kind, gold: str, aliases: tuple[str, ...], question: str, answer: str
) -> Verdict:
    """The verdict on a text, cached: the runs of one task end in few different texts."""
    if kind == "qa":
        return judge_qa((gold, *aliases), answer)
    return judge_math(gold, answer, question)
