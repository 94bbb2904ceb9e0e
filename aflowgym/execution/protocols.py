"""The protocols of a run's surroundings, and its random draws.

Neither a backend nor a sandbox answers with an error in place of a text: an outage raises
`EnvironmentFault`, and a program's own error is an `Outcome`. A request carries all that a draw may
depend on (seed, task, place in the workflow, number of the call there), so that a backend needs no
state of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from aflowgym.answers.code import Outcome
from aflowgym.tasks.task import WorkflowTask
from toolgym.errors import ConfigurationError

# --- draws ----------------------------------------------------------------------------------------
#
# Random numbers without a generator: each is a hash of what it is for, the seed of the run, the
# task, the place in the workflow, the number of the call there, and a label; on nothing that
# happened before, in whatever order. Two workflows that share a beginning share its draws (common
# random numbers), so a difference between their results comes from where they differ. No global
# state, no order of dictionaries, the same on every machine.

_SCALE: Final = 2.0**-53
SEPARATOR: Final = "\x1f"


def number(*key: object) -> int:
    """A number from 0 to 2**64 - 1, fixed by the key."""
    return hash_of(SEPARATOR.join(map(str, key)))


def hash_of(text: str) -> int:
    """The number of a key whose parts are joined already, by `SEPARATOR`."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def unit(number_: int) -> float:
    """A number of 64 bits as one from 0 up to, and without, 1."""
    return (number_ >> 11) * _SCALE


def shuffled(count: int, *key: object) -> list[int]:
    """The numbers from 0 to count - 1 in an order fixed by the key."""
    start = SEPARATOR.join(map(str, (*key, "")))
    return sorted(range(count), key=lambda place: hash_of(f"{start}{place}"))


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
    """The text that a model wrote, the tokens it read and wrote, and whether it was cut off."""

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
    """A place where programs run.

    Raises:
        EnvironmentFault: The machine failed, not the program.
    """

    def run(self, job: Job) -> Sequence[Outcome]:
        """Run a job, and wait for it; one outcome per call, in order."""


class Backend(Protocol):
    """The source of operators' texts; if it brings a sandbox, it runs their programs.

    Raises:
        EnvironmentFault: No completion could be had.
    """

    sandbox: Sandbox | None

    def generate(self, request: Request) -> Completion:
        """Complete one request, and wait for it."""


def needed(sandbox: Sandbox | None) -> Sandbox:
    """The sandbox.

    Raises:
        ConfigurationError: There is none.
    """
    if sandbox is None:
        raise ConfigurationError(
            "programs have to run, and there is no sandbox: pass one as sandbox=, take a backend"
            " that brings one (the simulated one does), or use no operator that runs programs."
        )
    return sandbox
