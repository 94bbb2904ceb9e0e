"""Workflow tasks: problems with the data that verifiers need to check an answer.

There are three kinds of tasks. The gold answer of a `math` task is a value. The gold answer of a
`qa` task consists of a few words, with aliases, and occurs in the passages. A `code` task has
tests, which are function calls with literal arguments. Some tests are public and can be run by
operators; a correct program must pass all tests. `solution` is a program that passes all tests. The
solution is used by the expert, by simulated operators and in tests, and is never shown to an agent.

`distractors` are plausible wrong answers for simulated mistakes: an error in the last step, another
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
    """A problem for a workflow. All tasks with the same `item` are in the same split.

    Attributes:
        kind: Kind of the task: `math`, `code` or `qa`.
        gold: The correct answer of a `math` or `qa` task; empty for `code`.
        aliases: Other correct names for the gold answer; only for `qa`.
        context: The passages that contain the answer of a `qa` task, in the order in which they are
            shown.
        hops: Number of facts that must be combined for the answer of a `qa` task; 0 if unknown.
        entry_point: Name of the function that a `code` task requires.
        tests: All tests of a `code` task.
        public_tests: Tests that an operator can run before it answers.
        solution: A program that passes all tests. For `math`, this is the worked solution if there
            is one.
        distractors: Wrong answers in the same form as correct ones.
        setup: Code that runs before each program of a `code` task: the imports and functions of the
            prompt, which a solution can use.
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
        answer: The solution of the workflow, as text. This argument is not used for `code`.
        outcomes: Outcomes of the calls of a `code` task's tests, recorded by a sandbox. Without
            outcomes, all tests count as failed.

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
