"""A scripted model that answers the prompts of the operators from the tasks themselves.

It knows the task by its question and the operator by how the prompt begins. Its first answers are
wrong, its reviews are right, and what it writes anew is right, so that a workflow has something to
mend. Its first programs do not run.
"""

from collections.abc import Sequence
from typing import Any

from aflowgym import grade
from aflowgym.answers import Outcome
from aflowgym.operators import OPERATORS
from aflowgym.operators.context import Job
from aflowgym.tasks.task import WorkflowTask

BROKEN = "def solve():\n    return 1 // 0\n"


def operator_of(prompt: str) -> str:
    """The operator that asks."""
    return next(
        name for name, each in OPERATORS.items() if prompt.startswith(each.prompt.split("\n\n")[0])
    )


class TrustedSandbox:
    """Runs programs in this process: only for those that a test wrote itself."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def run(self, job: Job) -> Sequence[Outcome]:
        self.jobs.append(job)
        return [self._outcome(job, *call) for call in job.calls]

    def _outcome(self, job: Job, arguments: str, keywords: str) -> Outcome:
        names: dict[str, Any] = {}
        try:
            exec(job.program, names)
            return Outcome(repr(names[job.function](*eval(arguments), **eval(keywords))))
        except Exception as problem:  # noqa: BLE001  # that of a program
            return Outcome(error=type(problem).__name__)


class OperatorModel:
    """Args: the tasks that it knows."""

    def __init__(self, tasks: Sequence[WorkflowTask]) -> None:
        self.tasks = {task.question: task for task in tasks}
        self.sandbox = TrustedSandbox()

    def __call__(self, asked: dict[str, Any]) -> str:
        """The reply to one prompt."""
        prompt = asked["messages"][-1]["content"]
        task = next(task for question, task in self.tasks.items() if question in prompt)
        operator = operator_of(prompt)
        if operator == "Programmer" and task.kind != "code":
            answer = task.gold if "The last program" in prompt else None
            program = BROKEN if answer is None else f"def solve():\n    return {answer!r}\n"
            return f"<think>Which one?</think>I compute it:\n```python\n{program}```"
        if operator == "Review":
            solution = prompt.partition("Solution:\n")[2].partition("\n\nBegin with")[0]
            right = grade(task, solution, self.sandbox).correct
            return (
                "**Verdict: right**" if right else "**Verdict:** wrong\nOne step does not follow."
            )
        if operator in ("ScEnsemble", "MdEnsemble"):
            return "Answer: **A**"
        first = operator in ("Custom", "AnswerGenerate", "CustomCodeGenerate", "Programmer")
        return said(task, right=not first)


def said(task: WorkflowTask, right: bool) -> str:
    """A right or a wrong answer to a task, in words."""
    if task.kind == "code":
        program = task.solution if right else task.distractors[0]
        return f"This does it:\n```python\n{program}```"
    return f"So it follows.\nAnswer: {task.gold if right else task.distractors[0]}"
