"""What an executor asks of the world: texts of a language model, and what programs return.

A backend has two faces, `generate` for code that waits and `agenerate` for code that does not; both
give the same completion for the same request. A sandbox has two likewise. Neither answers with an
error in place of a text: an outage raises `EnvironmentFault`, and a program's own error is an
`Outcome`. A request carries all that a draw may depend on (seed, task, place in the workflow,
number of the call there), so that a backend needs no state of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from aflowgym.answers.code import Outcome
from aflowgym.execution.draws import number
from aflowgym.tasks.task import WorkflowTask


class Request(NamedTuple):
    """One call of a language model.

    Attributes:
        task: The task of the run.
        operator: Canonical name of the operator that asks.
        prompt: What the model is asked.
        inputs: The slots that the prompt shows.
        path: Where in the workflow the operator stands.
        number: How many calls were made there before, in this run.
        seed: The seed of the run.
        tokens: How many tokens such an operator writes on average.
        max_tokens: How many tokens are left.
    """

    task: WorkflowTask
    operator: str
    prompt: str
    inputs: Mapping[str, Any]
    path: str
    number: int
    seed: int
    tokens: int
    max_tokens: int

    @property
    def draw(self) -> int:
        """A number from 0 to 2**31 - 1, fixed by all that a draw may depend on."""
        return number(self.seed, self.task.id, self.path, self.number) >> 33

    @property
    def messages(self) -> list[dict[str, str]]:
        """The prompt as chat messages."""
        return [{"role": "user", "content": self.prompt}]


class Completion(NamedTuple):
    """What a model wrote, how many tokens it read and wrote, and whether it was cut off."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    cut: bool = False


class Job(NamedTuple):
    """A program to run, and the calls of one of its functions, each in a fresh start.

    Attributes:
        task: The task of the run; a real sandbox does not look at it.
        program: The source.
        function: The function that is called.
        calls: The positional and the named arguments of each call, as texts of literals.
        setup: Source that runs before the program, in the same module; the lines that errors tell
            are those of the program.
    """

    task: WorkflowTask
    program: str
    function: str
    calls: tuple[tuple[str, str], ...] = (("()", "{}"),)
    setup: str = ""


class Sandbox(Protocol):
    """Where programs run.

    Both methods give one outcome per call, in order.

    Raises:
        EnvironmentFault: The machine failed, not the program.
    """

    def run(self, job: Job) -> Sequence[Outcome]:
        """Run a job, and wait for it."""
        ...

    async def arun(self, job: Job) -> Sequence[Outcome]:
        """Run a job without blocking the event loop."""
        ...


class Backend(Protocol):
    """Where operators get their texts, and, if it brings a sandbox, run their programs.

    Raises:
        EnvironmentFault: No completion could be had.
    """

    sandbox: Sandbox | None

    def generate(self, request: Request) -> Completion:
        """Complete one request, and wait for it."""
        ...

    async def agenerate(self, request: Request) -> Completion:
        """Complete one request without blocking the event loop."""
        ...
