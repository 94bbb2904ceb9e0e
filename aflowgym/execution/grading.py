"""Verdicts on the solution of a run: the verifier of the task, with a sandbox for programs.

The hidden tests of a program run here and nowhere else.
"""

from __future__ import annotations

import functools

from aflowgym.answers.code import CodeTest, Outcome, judge_code
from aflowgym.answers.verdict import Verdict, wrong
from aflowgym.operators.context import Sandbox, job_of, needed
from aflowgym.operators.replies import program_in
from aflowgym.remembering import LONGEST
from aflowgym.tasks.task import WorkflowTask, judge


def grade(task: WorkflowTask, solution: str | None, sandbox: Sandbox | None = None) -> Verdict:
    """Judge the solution of a run.

    Args:
        task: The task of the run.
        solution: The solution; None if there is none.
        sandbox: Where the tests of a `code` task run.

    Raises:
        EnvironmentFault: The sandbox failed.
        ConfigurationError: The task is `code`, and there is no sandbox.
    """
    if solution is None:
        return wrong("the workflow left no solution")
    if task.kind != "code":
        return judge(task, solution)
    program = program_in(solution, task.entry_point)
    if program is None:
        return wrong("there is no program that defines the function")
    return judge_outcomes(task.tests, tuple(needed(sandbox).run(job_of(task, program, task.tests))))


def judge_outcomes(tests: tuple[CodeTest, ...], outcomes: tuple[Outcome, ...]) -> Verdict:
    """`judge_code` with a cache for short values."""
    size = sum([len(each.value) + len(each.error) for each in outcomes])
    return (_judged if size <= LONGEST else judge_code)(tests, outcomes)


_judged = functools.lru_cache(maxsize=4096)(judge_code)
