"""What a run may use: calls of the model, tokens, depth.

Branches share what is left in proportion to the calls that each can come to, and what a branch does
not use comes back after the list. So it never depends on the timing of branches which of them runs
out; and where all branches together fit, each has as much as it can need.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from aflowgym.execution.trace import Failure


@dataclass(frozen=True, slots=True)
class Budget:
    """What one run may use.

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
    """What a branch has left."""

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
        return [
            Account(calls[place + 1] - calls[place], tokens[place + 1] - tokens[place])
            for place in range(len(weights))
        ]

    def back(self, shares: list[Account]) -> None:
        """Take back what branches have left."""
        self.calls += sum(part.calls for part in shares)
        self.tokens += sum(part.tokens for part in shares)
