"""The typed state that a workflow works on, instead of one string passed along.

Every operator sees the task; beyond that it reads slots and fills slots, as its declaration says.
An empty slot is None. A branch of a list starts from a copy, so that branches cannot meet. What an
operator leaves is settled in one place: a new solution makes everything said about the old one
stale, and a program that is kept is read anew from the solution where the solution is a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from aflowgym.answers.code import extract_code
from aflowgym.operators.declaration import Operator
from aflowgym.remembering import remembered
from aflowgym.tasks.task import WorkflowTask


class Candidate(NamedTuple):
    """What one branch of a list ended in."""

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
        return State(
            self.task, self.solution, self.code, self.candidates, self.verdict, self.feedback
        )

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
