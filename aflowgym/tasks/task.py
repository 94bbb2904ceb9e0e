"""Workflow tasks: problems, with the data that their verifiers need to check an answer.

There are three kinds of tasks. The gold answer of a `math` task is a value. The gold answer of a
`qa` task is a few words, with aliases, and is contained in passages. A `code` task has tests, which
are calls with literal arguments. Some tests are public, for operators that may run tests; a program
must pass all tests. `solution` is a program that passes all tests. It is used by the expert, by
simulated operators and in tests, and is never shown to an agent.

`distractors` are plausible wrong answers for simulated mistakes: a slip in the last step, another
person in the same passages, a program that omits a case.
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
    """A problem for a workflow. All tasks with the same `item` are in one split.

    Attributes:
        kind: Kind of the answer: `math`, `code` or `qa`.
        gold: The correct answer of a `math` or `qa` task; empty for `code`.
        aliases: Other correct forms of the gold answer; `qa` only.
        context: The passages that contain a `qa` answer, in the order in which they are shown.
        hops: Number of facts that a `qa` answer combines; 0 if unknown.
        entry_point: The function that a `code` task asks for.
        tests: All tests of a `code` task.
        public_tests: Tests that an operator may run before it answers.
        solution: A program that passes the tests. For `math`, the worked solution if there is one.
        distractors: Wrong answers of the same form as correct ones.
        setup: Code that runs before each program of a `code` task: the imports and functions of its
            prompt, which a solution may use.
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
        """The text that operators receive: the passages, if any, and the question."""
        return "\n".join([*self.context, "", self.question]) if self.context else self.question


def judge(task: WorkflowTask, answer: str, outcomes: Sequence[Outcome] = ()) -> Verdict:
    """Check the solution of a workflow.

    Args:
        answer: The text of its solution. It is not used for `code`.
        outcomes: Outcomes of the calls of a `code` task's tests, as a sandbox recorded them.
            Without outcomes, all tests count as failed.

    Raises:
        ValueError: If there are more outcomes than the task has tests.
    """
    if task.kind == "code":
        return judge_code(task.tests, outcomes)
    return _judge_text(task.kind, task.gold, task.aliases, task.question, answer)


@remembered(8192)
def _judge_text(
    kind: Kind, gold: str, aliases: tuple[str, ...], question: str, answer: str
) -> Verdict:
    """Return the verdict on a string, with a cache, because solutions are often repeated."""
    if kind == "qa":
        return judge_qa((gold, *aliases), answer)
    return judge_math(gold, answer, question)
