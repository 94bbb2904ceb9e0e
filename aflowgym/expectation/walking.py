"""Walks on distributions over states instead of a state: of any workflow, and fast ones of many.

`Walker` mirrors the walk of `aflowgym.execution.executor` construct by construct: a check that
passes ends the loops around it, a condition splits by what its check said, the branches of a list
start from the same state. Mass that has failed stays where it is and calls no model.

`Appraiser` gives the reward of `expected`, from memory where parts are alike. The cost saturates as
`cap - a * b ** calls`, so two values of the generating function of the calls, at 1 and at b, stand
for its whole distribution. States that cannot occur on a kind of task are left out. And what parts
of a workflow do is remembered: the states after a beginning, what a branch ends in, and what comes
out of a list. So a search through workflows that differ in a few places pays for these only. Its
distributions are arrays [class and point, row, state]: the points 1 and b of each class lie beside
each other.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from aflowgym import score
from aflowgym.backends.presets import Preset
from aflowgym.dsl.nodes import Cond, Done, ListOf, Node, Op, Repeat, Seq, steps_of
from aflowgym.expectation.lists import (
    ANSWER_OF,
    ENTERING,
    GROUPS,
    NO_BRANCH,
    Counts,
    add_branch,
    choices,
    group_masses,
    list_matrix,
    tallies,
)
from aflowgym.expectation.model import (
    ANSWERS,
    FAILED,
    NONE,
    PASSES,
    SAYS,
    SIZE,
    Array,
    Model,
    at,
    nearness,
    occurring,
    worth_at_end,
)
from aflowgym.operators.catalogue import OPERATORS, Registry
from aflowgym.tasks.task import Kind
from toolgym.rewards import RewardConfig


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
        after = np.matmul(before[..., held], list_matrix(counts, ensemble, points, weight, held))
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
            counts = add_branch(counts, ends[branch])
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


MOST_REMEMBERED: Final = 20_000


class Appraiser(Walker):
    """Rewards of workflows on one kind of task.

    Attributes:
        states: The numbers of the states that can occur; the last axis of every array is over them.
        values: What a state is worth at the end, the costs saved with it, [class and point, state].
    """

    def __init__(self, kind: Kind, preset: Preset, rewards: RewardConfig) -> None:
        share, factor = score.saturation(rewards)
        super().__init__(Model(preset, kind, np.array([1.0, factor])))
        self.cap = rewards.cost_cap
        self.states = occurring(kind, self.model.skills.loose, in_branches=True)
        self.passes = PASSES[self.states]
        self.rows = 2 * len(self.model.weights)
        held = worth_at_end(nearness(kind, self.model.skills, rewards))
        values = np.stack([held, np.full_like(held, share)], axis=1)
        values = (self.model.weights[:, None, None] * values)[..., self.states]
        self.values: Array = values.reshape(self.rows, -1)
        self.begin: Array = np.zeros((self.rows, 1, len(self.states)))
        self.begin[..., self.states == NONE] = 1.0
        remember = functools.lru_cache(MOST_REMEMBERED)
        self._matrix, self._after = remember(self._restricted), remember(self._walked)
        self._end, self._closed = remember(self._end_of), remember(self._chosen)

    def reward(self, workflow: Node) -> float:
        """The reward of `expected`, of a tree that is well typed and within the limits."""
        return self.worth(closed_only(self.after(steps_of(workflow))))

    def worth(self, states: Array) -> float:
        """The reward of a workflow that ends in these states."""
        return float((states[:, 0] * self.values).sum() - self.cap)

    def after(self, steps: tuple[Node, ...]) -> Array | OpenList:
        """The states after the first steps of a workflow."""
        return self._after(steps) if steps else self.begin

    def _walked(self, steps: tuple[Node, ...]) -> Array | OpenList:
        return self.walk(steps[-1], self.after(steps[:-1])).on

    def matrix(self, operator: str) -> Array:
        """The matrix of an operator, over the states that can occur."""
        return self._matrix(operator)

    def _restricted(self, operator: str) -> Array:
        whole = self.model.matrix(operator)[..., self.states[:, None], self.states]
        return np.ascontiguousarray(whole.reshape(self.rows, *whole.shape[2:]))

    def kernel(self, node: Node, held: Array) -> Array:
        """The matrix of a closed step on some states, [class and point, one of these, state]."""
        each = np.broadcast_to(
            np.eye(len(self.states))[held], (self.rows, len(held), len(self.states))
        )
        return closed_only(self.walk(node, each).on)

    def closing(self, opened: OpenList, ensemble: str) -> Array:
        """The states after a list and the ensemble that closes it."""
        before, branches = opened.before, tuple(sorted(opened.branches, key=str))
        after = np.zeros_like(before)
        for place in np.flatnonzero(before.any(axis=(0, 1))):
            state = int(self.states[place])
            if state == FAILED:
                after[..., place] += before[..., place]
                continue
            chosen = self._closed(branches, ensemble, state)
            after += before[..., place, None] * chosen[:, None]
        return after

    def _chosen(self, branches: tuple[Node, ...], ensemble: str, held: int) -> Array:
        """The states that a list and its ensemble lead to from one, [class and point, state]."""
        ends = [self._end(branch, held) for branch in branches]
        active = tuple(np.flatnonzero(sum(ends)[:, :GROUPS].any(axis=0)).tolist())  # type: ignore[index]
        counts = tallies(ends, active)
        points, weight = self.model.points, self.model.skills.weight
        groups = np.empty((self.rows, GROUPS + 1))
        for place, point in enumerate(points):
            table = choices(len(ends), active, ensemble, float(point), weight)
            groups[place :: len(points)] = counts[place :: len(points)] @ table
        after = np.zeros((self.rows, SIZE))
        for group, answer in enumerate(ANSWER_OF):
            where = held // len(SAYS) if answer is None else answer
            if where < len(ANSWERS):
                after[:, at(where)] += groups[:, group]
        after[:, FAILED] = groups[:, GROUPS]
        return np.asarray(after[:, self.states])

    def _end_of(self, branch: Node, held: int) -> Array:
        """The groups that a branch ends in, and failure, from a state; [class and point, 7]."""
        begin = np.broadcast_to(ENTERING[held][self.states], self.begin.shape)
        whole = np.zeros((self.rows, SIZE))
        whole[:, self.states] = closed_only(self.walk(branch, begin).on)[:, 0]
        return group_masses(whole)
