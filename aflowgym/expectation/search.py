"""The best workflow of the stated family, per kind of task: what regret is measured against.

It is not proved to be the best of the whole language. The family has three parts: small chains with
all constructs (`aflowgym.expectation.family`), long chains of blocks, which are searched in
`aflowgym.expectation.meeting`, and workflows that are named. Every member of the first part is
evaluated exactly. What makes it fast: members with a common beginning share its distribution; all
lists of a sort are evaluated at once, along the batch axis; states that cannot occur are left out;
and since the cost saturates as `cap - a * b ** calls`, two values of the generating function of the
calls (at 1 and at b) stand for its whole distribution.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from aflowgym import score
from aflowgym.backends.presets import Preset, preset_of
from aflowgym.dsl import parse
from aflowgym.dsl.checking import EMPTY
from aflowgym.dsl.nodes import ListOf, Node, Seq
from aflowgym.expectation import DEFAULT_REWARDS, Expectation, expected
from aflowgym.expectation.blocks import blocks, count_chains
from aflowgym.expectation.family import (
    FAMILY,
    NAMED,
    Family,
    Left,
    Sort,
    allowed,
    replaced,
    sorts,
    steps,
    typed,
)
from aflowgym.expectation.lists import closed
from aflowgym.expectation.meeting import Meeting
from aflowgym.expectation.nearness import nearness
from aflowgym.expectation.operators import Model
from aflowgym.expectation.space import (
    FAILED,
    PASSES,
    SIZE,
    Array,
    occurring,
    start,
    worth_at_end,
)
from aflowgym.expectation.walking import OpenList, Walker, closed_only
from aflowgym.tasks.task import Kind
from toolgym.rewards import RewardConfig


class Optimum(NamedTuple):
    """The best member of the family.

    Attributes:
        workflow: Its tree.
        expectation: What it is worth.
        forms: How many canonical texts the first part of the family has.
        evaluated: How many of them were evaluated: of lists that differ in the order of their
            branches, one.
        chains: How many canonical texts the second part has; some are in both.
    """

    workflow: Node
    expectation: Expectation
    forms: int
    evaluated: int
    chains: int


def optimum(
    kind: Kind,
    preset: str | Preset = "teaching",
    *,
    family: Family = FAMILY,
    rewards: RewardConfig = DEFAULT_REWARDS,
) -> Optimum:
    """The workflow of the stated family that has the highest expected reward; remembered.

    Args:
        kind: The kind of the tasks.
        preset: The skills of the operators.
        family: How far the family goes; the default takes up to a minute.
        rewards: The weights of the score.

    >>> from aflowgym.expectation.family import Family
    >>> str(optimum("math", "paper", family=Family(operators=1, blocks=0)).workflow)
    'Programmer'
    """
    return _optimum(kind, preset_of(preset), family, rewards)


@functools.lru_cache(maxsize=64)
def _optimum(kind: Kind, preset: Preset, family: Family, rewards: RewardConfig) -> Optimum:
    search = Search(kind, preset, rewards)
    search.grow((), EMPTY, search.begin, Left(family.operators), None)
    best, chains = search.best, 0
    if family.blocks:
        chains = count_chains(blocks(kind), family.blocks)
        meeting = Meeting(kind, preset, rewards, family.blocks, search.reward)
        best = meeting.best() or best
    worth = expected(best, kind, preset, rewards=rewards)
    for text in NAMED.get(kind, ()) if family.blocks else ():
        named = expected(text, kind, preset, rewards=rewards)
        tree = parse(text, kind=kind).workflow
        if tree is not None and named.reward > worth.reward:
            best, worth = tree, named
    return Optimum(best, worth, search.forms, search.evaluated, chains)


class Search(Walker):
    """A walk over all members; distributions hold the states that can occur only."""

    def __init__(self, kind: Kind, preset: Preset, rewards: RewardConfig) -> None:
        self.cap = rewards.cost_cap
        self.share, factor = score.saturation(rewards)
        super().__init__(Model(preset, kind, np.array([1.0, factor])))
        self.kind = kind
        self.states = occurring(kind, self.model.skills.loose, in_branches=False)
        self.passes = PASSES[self.states]
        self._small: dict[str, Array] = {}
        self._lists: dict[tuple[ListOf, str], Array] = {}
        begin = start(len(self.model.weights), self.model.points)
        self.begin: Array = begin[..., self.states]
        worth = worth_at_end(nearness(kind, self.model.skills, rewards))
        self.values: Array = self.model.weights[:, None] * worth[:, self.states]
        self.best: Node = Seq(())
        self.reward, self.forms, self.evaluated = -np.inf, 0, 0

    def matrix(self, operator: str) -> Array:
        """The matrix of an operator, over the states that can occur."""
        known = self._small.get(operator)
        if known is None:
            whole = super().matrix(operator)
            known = self._small[operator] = whole[..., self.states[:, None], self.states]
        return known

    def closing(self, opened: OpenList, ensemble: str) -> Array:
        """The states after every list of a sort and the ensemble, along the batch axis."""
        matrices = self._matrices_of(sorts()[ListOf(opened.branches)], ensemble)
        before = np.moveaxis(opened.before, 2, 0)[..., None, :]  # [batch, class, point, 1, state]
        return np.moveaxis(np.matmul(before, matrices)[..., 0, :], 0, 2)

    def _matrices_of(self, sort: Sort, ensemble: str) -> Array:
        """[list, class, point, state, state]"""
        known = self._lists.get((sort.stands, ensemble))
        if known is None:
            held = self.states[self.states != FAILED]
            made = []
            whole = Walker(self.model)
            for each in sort.members:
                matrix = np.zeros((*self.begin.shape[:2], SIZE, SIZE))
                counts = whole.counts(each.branches, held)
                points, weight = self.model.points, self.model.skills.weight
                matrix[..., held, :] = closed(counts, ensemble, points, weight, held)
                matrix[..., FAILED, FAILED] = 1.0
                made.append(matrix[..., self.states[:, None], self.states])
            known = self._lists[sort.stands, ensemble] = np.stack(made)
        return known

    def grow(
        self, chain: tuple[Node, ...], slots: int, states: Array, left: Left, sort: Sort | None
    ) -> None:
        """Evaluate every member that begins with a chain."""
        for nodes, rest in steps(left):
            filled = typed(nodes, slots, self.kind)
            if filled is None:
                continue
            whole = (*chain, *nodes)
            step = nodes[0] if len(nodes) == 1 else Seq(nodes)
            after = closed_only(self.walk(step, states).on)
            kind_of_list = sort
            if rest.lists < left.lists:
                kind_of_list = next(each for each in sorts().values() if _has(step, each.stands))
            self.note(whole, after, kind_of_list)
            if rest.operators:
                self.grow(whole, filled, after, rest, kind_of_list)

    def rewards(self, states: Array) -> Array:
        """What the members of a batch are worth that end in these states."""
        worth = np.einsum("kbs,ks->b", states[:, 0], self.values)
        saved = np.einsum("kbs,k->b", states[:, 1], self.model.weights)
        return np.asarray(worth - self.cap + self.share * saved)

    def note(self, chain: tuple[Node, ...], states: Array, sort: Sort | None) -> None:
        """Count a member, or the members whose lists a sort has, and keep the best."""
        within = allowed(chain, sort)
        rewards = self.rewards(states)
        orders = np.array(sort.orders if sort else (1,))
        self.forms += int(orders[within].sum())
        self.evaluated += sum(within)
        rewards = np.where(within, rewards, -np.inf)
        place = int(rewards.argmax())
        if rewards[place] > self.reward + 1e-12:
            self.reward = float(rewards[place])
            tree = chain[0] if len(chain) == 1 else Seq(chain)
            self.best = replaced(tree, sort.stands, sort.members[place]) if sort else tree  # type: ignore[assignment]


def _has(node: Node, stands: ListOf) -> bool:
    return replaced(node, stands, ListOf(())) != node
