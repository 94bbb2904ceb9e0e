"""The state of one branch of a run, and the account of what it may still use.

Every operator sees the task; beyond that it reads slots and fills slots, as its declaration says.
An empty slot is None. A branch of a list starts from a copy, so that branches cannot meet. What an
operator leaves is settled in one place: a new solution makes everything said about the old one
stale, and a program that is kept is read anew from the solution where the solution is a program.

Branches share what is left of calls and tokens in proportion to the calls that each can come to,
and what a branch does not use comes back after the list. So it never depends on the timing of
branches which of them runs out; and where all branches together fit, each has as much as it can
need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from aflowgym.answers.code import extract_code
from aflowgym.execution.trace import Failure, Step
from aflowgym.operators.declaration import Operator
from aflowgym.remembering import remembered
from aflowgym.tasks.task import WorkflowTask


class Candidate(NamedTuple):
    """The end of one branch of a list."""

    solution: str
    code: str | None = None


@dataclass(slots=True)
class State:
    """The slots of one branch.

    Attributes:
        task: What is to be solved; the same object in every branch.
        solution: The answer as it stands, as text or as a program.
        code: The program behind the solution.
        candidates: What the branches of a list ended in, in the order they stand in.
        verdict: Whether the last check passed.
        feedback: What the last check said.
    """

    task: WorkflowTask
    solution: str | None = None
    code: str | None = None
    candidates: tuple[Candidate, ...] | None = None
    verdict: bool | None = None
    feedback: str | None = None

    def copy(self) -> State:
        """The same slots; filling one leaves the other's as they are."""
        judgement = self.verdict, self.feedback
        return State(self.task, self.solution, self.code, self.candidates, *judgement)

    def settle(self, operator: Operator, outputs: Mapping[str, Any]) -> None:
        """Take over what an operator wrote, and empty what that makes stale."""
        for slot in operator.stale:
            setattr(self, slot, None)
        if operator.is_ensemble:
            self.candidates = None
        for slot, value in outputs.items():
            setattr(self, slot, value)
        if "code" in operator.keeps and "code" not in outputs and self.task.kind == "code":
            self.code = program_in(self.solution or "", self.task.entry_point)

    def gather(self, candidates: tuple[Candidate, ...]) -> None:
        """Become the state after a list: its candidates and nothing else."""
        self.candidates = candidates
        self.solution = self.code = self.verdict = self.feedback = None


@remembered(8192)
def program_in(text: str, function: str) -> str | None:
    """The program in a text that defines a function; None if there is none."""
    return extract_code(text, function)


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of one run.

    Args:
        calls: Most calls of the model.
        tokens: Most tokens, read and written. The call that goes over it is the last.
        depth: Most lists, loops and conditions inside one another.
    """

    calls: int = 32
    tokens: int = 200_000
    depth: int = 4


class Failed(Exception):
    """An operator cannot go on: its branch, or the run, ends here. Caught by the executor only."""

    def __init__(self, code: str, message: str, path: str = "") -> None:
        super().__init__(code, message, path)
        self.code, self.message, self.path = code, message, path

    def record(self, path: str) -> Failure:
        """The record of it, and where: at the step that noticed it first."""
        self.path = self.path or path
        return Failure(self.code, self.message, self.path)


@dataclass(slots=True)
class Account:
    """The calls and tokens that a branch has left."""

    calls: int
    tokens: int

    def take(self, calls: int = 1) -> None:
        """Take calls before they are made.

        Raises:
            Failed: They are not left.
        """
        if self.calls < calls:
            raise Failed("E-CALLS", f"{calls} needed, {self.calls} left.")
        if self.tokens <= 0:
            raise Failed("E-TOKENS", "none left.")
        self.calls -= calls

    def share(self, weights: list[int]) -> list[Account]:
        """Give everything to branches, in proportion to these weights; nothing stays here."""
        ends = [0, *accumulate(weights)]
        whole = ends[-1] or 1
        calls = [self.calls * end // whole for end in ends]
        tokens = [self.tokens * end // whole for end in ends]
        self.calls -= calls[-1]
        self.tokens -= tokens[-1]
        steps = zip(pairwise(calls), pairwise(tokens), strict=True)
        return [Account(end - start, last - first) for (start, end), (first, last) in steps]

    def back(self, shares: list[Account]) -> None:
        """Take back what branches have left."""
        self.calls += sum(part.calls for part in shares)
        self.tokens += sum(part.tokens for part in shares)


@dataclass(slots=True)
class Lane:
    """One branch: its state, what it may use, and where its steps are noted."""

    state: State
    account: Account
    steps: list[Step]
