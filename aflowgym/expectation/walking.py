"""The walk of the executor, on distributions over states instead of a state.

It mirrors `aflowgym.execution.executor` construct by construct: a check that passes ends the loops
around it, a condition splits by what its check said, the branches of a list start from the same
state. Mass that has failed stays where it is and calls no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from aflowgym.dsl.nodes import Cond, Done, ListOf, Node, Op, Repeat, Seq
from aflowgym.expectation.lists import ENTERING, NO_BRANCH, Counts, closed, counted
from aflowgym.expectation.model import FAILED, PASSES, SIZE, Array, Model
from aflowgym.operators.catalogue import OPERATORS, Registry


@dataclass(frozen=True)
class OpenList:
    """A list that no ensemble has closed yet: the states before it, and its branches."""

    before: Array
    branches: tuple[Node, ...]


class After(NamedTuple):
    """The states that go on, and those for which the loops around end here."""

    on: Array | OpenList
    out: Array | None = None


class Walker:
    """Walks of one model."""

    def __init__(self, model: Model, operators: Registry = OPERATORS) -> None:
        self.model = model
        self.operators = operators
        self.passes = PASSES

    def walk(self, node: Node | Done, states: Array | OpenList, looped: bool = False) -> After:
        """The states after a node.

        Raises:
            ValueError: A list meets what is no ensemble; the checks of `parse` prevent this.
        """
        if isinstance(node, Op):
            return self._op(node, states, looped)
        if isinstance(node, Seq):
            return self._seq(node, states, looped)
        if isinstance(node, Done):
            return After(states)
        if isinstance(node, Cond):
            return self._cond(node, states, looped)
        if isinstance(node, ListOf):
            return After(OpenList(closed_only(states), node.branches))
        return self._repeat(node, states, looped)

    def _op(self, node: Op, states: Array | OpenList, looped: bool) -> After:
        if isinstance(states, OpenList):
            return After(self.closing(states, node.name))
        after = np.matmul(states, self.matrix(node.name))
        if looped and self.operators[node.name].is_check:
            passed = after * self.passes
            return After(after - passed, passed)
        return After(after)

    def matrix(self, operator: str) -> Array:
        """The matrix of an operator that takes one solution."""
        return self.model.matrix(operator)

    def _seq(self, node: Seq, states: Array | OpenList, looped: bool) -> After:
        out: Array | None = None
        for step in node.steps:
            states, left = self.walk(step, states, looped)
            out = both(out, left)
        return After(states, out)

    def _repeat(self, node: Repeat, states: Array | OpenList, looped: bool) -> After:
        out: Array | None = None
        for _ in range(node.times):
            states, left = self.walk(node.body, states, True)
            out = both(out, left)
        if out is None or looped:
            return After(states, out)
        return After(closed_only(states) + out)

    def _cond(self, node: Cond, states: Array | OpenList, looped: bool) -> After:
        checked = closed_only(self.walk(node.check, states).on)
        passed = checked * self.passes
        on, out = self.walk(node.fail, checked - passed, looped)
        then = self.walk(node.passed, passed, looped)
        ended = both(closed_only(then.on), then.out)
        if looped:
            return After(on, both(out, ended))
        return After(closed_only(on) + ended)

    def closing(self, opened: OpenList, ensemble: str) -> Array:
        """The states after a list and the ensemble that closes it."""
        before = opened.before
        held = np.flatnonzero(np.abs(before).sum(axis=(0, 1, 2)))
        held = held[held != FAILED]
        counts = self.counts(opened.branches, held)
        points, weight = self.model.points, self.model.skills.weight
        after = np.matmul(before[..., held], closed(counts, ensemble, points, weight, held))
        after[..., FAILED] += before[..., FAILED]
        return np.asarray(after)

    def counts(self, branches: tuple[Node, ...], held: Array) -> dict[Counts, Array]:
        """The distribution of the counts of a list, for some states that it starts from."""
        model = self.model
        shape = (len(model.weights), len(model.points), len(held))
        counts = {NO_BRANCH: np.ones(shape, model.points.dtype)}
        start = np.broadcast_to(ENTERING[held].astype(model.points.dtype), (*shape, SIZE))
        ends: dict[Node, Array] = {}
        for branch in branches:
            if branch not in ends:
                ends[branch] = closed_only(self.walk(branch, start).on)
            counts = counted(counts, ends[branch])
        return counts


def closed_only(states: Array | OpenList) -> Array:
    """The states, of which none is an open list.

    Raises:
        ValueError: It is one.
    """
    if isinstance(states, OpenList):
        raise ValueError("a list goes on without an ensemble; parse the workflow before.")
    return states


def both(one: Array | None, other: Array | None) -> Array | None:
    """The sum of two, of which either may be missing."""
    if one is None or other is None:
        return other if one is None else one
    return one + other
