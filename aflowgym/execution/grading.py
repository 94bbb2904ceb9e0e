"""Verdicts on the solution that a run left: the task's verifier, with a sandbox for programs.

A run that failed has no solution, and is wrong without looking: there is no text that could be
taken for an answer. The hidden tests of a program run here and nowhere else.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from aflowgym.answers.code import CodeTest, Outcome, judge_code
from aflowgym.answers.verdict import Verdict, wrong
from aflowgym.execution.protocols import Job, Sandbox, needed
from aflowgym.execution.state import program_in
from aflowgym.remembering import LONGEST
from aflowgym.tasks.task import WorkflowTask, judge


def grade(task: WorkflowTask, solution: str | None, sandbox: Sandbox | None = None) -> Verdict:
    """Judge the solution that a run left.

    Args:
        solution: What the run left; None if it failed.
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


def job_of(task: WorkflowTask, program: str, tests: Sequence[CodeTest]) -> Job:
    """The calls that some tests make. What they expect stays here."""
    calls = tuple((test.arguments, test.keywords) for test in tests)
    return Job(task, program, task.entry_point, calls, task.setup)


def judge_outcomes(tests: tuple[CodeTest, ...], outcomes: tuple[Outcome, ...]) -> Verdict:
    """`judge_code`, remembered for short values: equal outcomes are judged once."""
    size = sum([len(each.value) + len(each.error) for each in outcomes])
    return (_judged if size <= LONGEST else judge_code)(tests, outcomes)


_judged = functools.lru_cache(maxsize=4096)(judge_code)
