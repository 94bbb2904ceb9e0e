"""The sandbox of the simulated backend: it tells what its programs return, and runs none.

A program of `Programmer` returns a literal or raises, and is read, not executed. A program of a
`code` task is known by its text: the right one passes every test, the others fail as many as their
state says. They are no real programs' results: a distractor fails here whichever tests the draw has
it fail, not those that it would fail in Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from aflowgym.answers.code import CodeTest, Outcome, passes
from aflowgym.backends.simulated_world import MOST_REMEMBERED, World, revealed
from aflowgym.protocols import Job
from aflowgym.tasks import WorkflowTask
from toolgym.errors import ConfigurationError

_RETURNS: Final = re.compile(r"\A\s*def solve\(\):\n    (return|raise) (.+)\n\s*\Z")
BROKEN: Final = "def solve():\n    raise ValueError\n"


def solver(answer: str) -> str:
    """A program whose `solve()` returns an answer."""
    return f"def solve():\n    return {answer if answer.isdecimal() else repr(answer)}\n"


class SimulatedSandbox:
    """Outcomes by the rules of the simulated backend.

    Args:
        world: What is known of a task.
    """

    def __init__(self, world: Callable[[WorkflowTask], World]) -> None:
        self._world = world

    def run(self, job: Job) -> Sequence[Outcome]:
        """The outcomes of a job.

        Raises:
            ConfigurationError: The simulated backend did not write this program.
        """
        if job.task.kind != "code":
            return (_read(job.program),)
        world = self._world(job.task)
        key = (job.program, job.calls)
        known = world.outcomes.get(key)
        if known is None:
            if len(world.outcomes) >= MOST_REMEMBERED:
                world.outcomes.clear()
            known = world.outcomes[key] = _tested(world, job)
        return known

    async def arun(self, job: Job) -> Sequence[Outcome]:
        """The outcomes of a job."""
        return self.run(job)


def _tested(world: World, job: Job) -> tuple[Outcome, ...]:
    wrong = world.state(job.program) != "R"
    failing = failing_tests(world.task, wrong, revealed(job.program))
    known = (*world.task.tests, *world.task.public_tests)
    tests = {(test.arguments, test.keywords): test for test in reversed(known)}
    called = [tests[call] for call in job.calls]
    return tuple(_missed(t) if t in failing else Outcome(t.expected) for t in called)


def failing_tests(task: WorkflowTask, wrong: bool, public: bool) -> tuple[CodeTest, ...]:
    """The tests that a program fails: half of the hidden ones, and the last public one if so."""
    if not wrong:
        return ()
    hidden = [test for test in task.tests if test not in task.public_tests]
    some = tuple(hidden[len(hidden) // 2 :])
    return (*task.public_tests[-1:], *some) if public or not some else some


def _missed(test: CodeTest) -> Outcome:
    """A value that the test does not expect."""
    values = (Outcome(value) for value in ("None", "0", "-1"))
    return next((o for o in values if not passes(test, o)), Outcome(error="ValueError"))


def _read(program: str) -> Outcome:
    found = _RETURNS.match(program)
    if found is None:
        raise ConfigurationError(
            "the simulated sandbox runs only what the simulated backend wrote: pass a real one as"
            " sandbox=, or take the simulated backend."
        )
    return Outcome(found[2]) if found[1] == "return" else Outcome(error=found[2])
