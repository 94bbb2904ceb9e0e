"""How many calls of the model a workflow can come to.

The bounds hold for every run: each operator calls the model at least and at most as often as its
declaration says, a condition takes one branch or the other, and a loop ends no sooner than at the
first check of its first round. An ensemble has nothing to choose in a list of one.

Each node is counted once, however often a loop around it or a list of copies asks for it: without
that, every loop inside another one would double the work.
"""

from __future__ import annotations

from typing import NamedTuple

from aflowgym.dsl.nodes import Cond, Done, ListOf, Node, Op, Repeat, Seq, children
from aflowgym.operators.catalogue import Registry


class Calls(NamedTuple):
    """Least and most calls of the model."""

    least: int
    most: int


def calls(node: Node | Done, operators: Registry) -> Calls:
    """The least and most calls of the model in one run of a workflow."""
    return Bounds(operators).calls(node)


class Bounds:
    """The bounds of the nodes of one tree, which must outlive this: it knows nodes by identity.

    Args:
        operators: Declarations of every operator in the tree.
    """

    def __init__(self, operators: Registry) -> None:
        self.operators = operators
        self._calls: dict[int, Calls] = {}
        self._exits: dict[int, bool] = {}

    def calls(self, node: Node | Done) -> Calls:
        """The least and most calls of the model in one run of a node."""
        known = self._calls.get(id(node))
        if known is None:
            known = self._calls[id(node)] = self._counted(node)
        return known

    def can_exit(self, node: Node | Done) -> bool:
        """Whether a loop around a node can end early; a branch of a list checks its copy only."""
        known = self._exits.get(id(node))
        if known is None:
            if isinstance(node, Op):
                known = self.operators[node.name].is_check
            else:
                known = not isinstance(node, ListOf) and any(map(self.can_exit, children(node)))
            self._exits[id(node)] = known
        return known

    def _counted(self, node: Node | Done) -> Calls:
        match node:
            case Op():
                return Calls(*self.operators[node.name].calls)
            case Seq():
                return self._in_a_row(node)
            case ListOf():
                return _total([self.calls(branch) for branch in node.branches])
            case Repeat():
                most = node.times * self.calls(node.body).most
                return Calls(self._until_a_check(node.body, node.times), most)
            case Cond():
                check = self.calls(node.check)
                fail, passed = self.calls(node.fail), self.calls(node.passed)
                return Calls(
                    check.least + min(fail.least, passed.least),
                    check.most + max(fail.most, passed.most),
                )
            case Done():
                return Calls(0, 0)

    def _in_a_row(self, node: Seq) -> Calls:
        parts = []
        lone = False
        for step in node.steps:
            chosen = isinstance(step, Op) and self.operators[step.name].is_ensemble
            parts.append(Calls(0, 0) if lone and chosen else self.calls(step))
            lone = isinstance(step, ListOf) and len(step.branches) == 1
        return _total(parts)

    def _until_a_check(self, body: Node, times: int) -> int:
        """Fewest calls of a loop: every round without a check in it, else up to its first check."""
        if not self.can_exit(body):
            return times * self.calls(body).least
        steps = body.steps if isinstance(body, Seq) else (body,)
        least = 0
        for step in steps:
            if isinstance(step, Op | Cond | Repeat) and self.can_exit(step):
                return least + self._first_check(step)
            least += self.calls(step).least
        return least

    def _first_check(self, step: Op | Cond | Repeat) -> int:
        match step:
            case Op():
                return self.calls(step).least
            case Repeat():
                return self._until_a_check(step.body, step.times)
            case Cond():
                return self._until_a_check(step.check, 1)


def _total(parts: list[Calls]) -> Calls:
    return Calls(sum(part.least for part in parts), sum(part.most for part in parts))
