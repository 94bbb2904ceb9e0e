"""The text of a run that the agent reads: usage, public tests, the last check, and the solution.

The solution comes last, after a line `Solution:`. Neither the gold nor hidden tests are read here.
"""

from __future__ import annotations

from typing import Final

from aflowgym.answers.code import passes
from aflowgym.dsl import Parsed
from aflowgym.execution.interpreter import Result
from aflowgym.operators.context import Sandbox, job_of
from aflowgym.operators.replies import program_in
from aflowgym.operators.trace import Usage
from aflowgym.tasks.task import WorkflowTask
from toolgym.episode import without_notice

SOLUTION: Final = "Solution:"
_MOST_CHARS: Final = 4000


def usage_line(usage: Usage) -> str:
    """The usage of a run; the calls are of a language model, not those that the agent has.

    >>> usage_line(Usage(1, 100, 60))
    'Took 1 call of the model, 160 tokens.'
    """
    return f"Took {usage.calls} call{'s' * (usage.calls != 1)} of the model, {usage.tokens} tokens."


def solution_text(solution: str) -> str:
    """A solution as it is shown; one that is very long loses its middle."""
    if len(solution) > _MOST_CHARS:
        half = _MOST_CHARS // 2
        left_out = len(solution) - 2 * half
        solution = f"{solution[:half]}\n[... {left_out} characters ...]\n{solution[-half:]}"
    return f"{SOLUTION}\n{solution}"


def solution_in(observation: str) -> str | None:
    """The solution that an observation shows; None if it shows none.

    >>> solution_in("Took 1 call of the model, 9 tokens.\\nSolution:\\nAnswer: 12\\n(3 calls left)")
    'Answer: 12'
    """
    _, mark, text = f"\n{observation}".partition(f"\n{SOLUTION}\n")
    return without_notice(text) if mark else None


def public_tests(task: WorkflowTask, solution: str, sandbox: Sandbox) -> str:
    """One line on how many public tests pass, and on the first that fails; empty without any."""
    tests = task.public_tests
    if not tests:
        return ""
    program = program_in(solution, task.entry_point)
    if program is None:
        return f"Public tests: no program defines {task.entry_point}()."
    outcomes = sandbox.run(job_of(task, program, tests))
    failed = [(t, o) for t, o in zip(tests, outcomes, strict=True) if not passes(t, o)]
    count = f"Public tests: {len(tests) - len(failed)} of {len(tests)} pass."
    if not failed:
        return count
    test, outcome = failed[0]
    call = f"{test.function}{test.arguments}".replace(",)", ")")
    return f"{count} {call} {outcome}, not {test.expected}."


def run_text(task: WorkflowTask, parsed: Parsed, result: Result, sandbox: Sandbox) -> str:
    """The result of a workflow, for the agent."""
    warned = any(record.severity == "warning" for record in parsed.diagnostics)
    lines = [f"Read as: {parsed.workflow}"] if warned else []
    lines += [usage_line(result.usage), *map(str, result.warnings)]
    if result.failure is not None:
        kept = "No solution." if result.solution is None else "The run ended before its end."
        lines.append(f"{kept} {result.failure}")
    if result.solution is None:
        return "\n".join(lines)
    if tested := public_tests(task, result.solution, sandbox):
        lines.append(tested)
    if result.verdict is not None:
        lines.append(f"Last check: {'passes' if result.verdict else 'fails'}.")
    return "\n".join([*lines, solution_text(result.solution)])
