"""The best chain of blocks, found from both ends.

Beginnings of up to three blocks meet tails of up to two. Each pair that fits is looked at or ruled
out by a bound that no pair of its lot passes: the tails that begin with the same block are worth,
from each state, no more than the best of them from that state. So all chains are covered, though
there are billions, and nothing is sampled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from aflowgym.backends.presets import Preset
from aflowgym.dsl.nodes import Node, Seq
from aflowgym.expectation.appraisal import Appraiser
from aflowgym.expectation.blocks import blocks
from aflowgym.expectation.halves import LIMITS, Chain, Half, Halves, joined, useful
from aflowgym.expectation.space import Array
from aflowgym.tasks.task import Kind
from toolgym.rewards import RewardConfig

ALIKE = 1e-10
"""Rewards that differ by less are those of equals, of which the simplest chain is taken."""
_AT_ONCE = 50
"""How many equals of one lot are looked at."""


class Lot(NamedTuple):
    """Tails that begin with the same block, and no more than which each state is worth by them."""

    places: Array
    bound: Array


class Meeting:
    """A search for the best chain of blocks up to a weight.

    Args:
        kind: The kind of the tasks.
        preset: The skills of the operators.
        rewards: The weights of the score.
        most: The weight.
        least: A reward that is known to be reached; chains below it are not looked for.
    """

    def __init__(
        self, kind: Kind, preset: Preset, rewards: RewardConfig, most: int, least: float
    ) -> None:
        self.appraiser = Appraiser(kind, preset, rewards)
        self.halves = Halves(self.appraiser)
        self.known = blocks(kind)
        self.most, self.reward = most, least
        self._found: list[tuple[float, Chain]] = []

    def best(self) -> Node | None:
        """The simplest of the best chains; None if all are below what was known."""
        short, long = self._tails()
        for beginnings in self._beginnings():
            self._meet(beginnings, short)
            self._meet(beginnings, long)
        trees = [
            Seq(steps) if len(steps) > 1 else steps[0]
            for reward, chain in self._found
            if reward > self.reward - ALIKE
            for steps in [tuple(node for block in chain for node in block.nodes)]
        ]
        return min(trees, key=_simplicity, default=None)

    def _beginnings(self) -> Iterator[Half]:
        """All beginnings, those of one weight together; the heaviest ones block by block."""
        starts = self.halves.starts(self.known)
        by_weight = {w: starts.at(np.flatnonzero(starts.sizes[:, 2] == w)) for w in (1, 2)}
        yield from by_weight.values()
        last = max(self.most - 2, 2)
        for weight in range(2, last + 1):
            made = [by_weight[2]] if weight == 2 else []
            for block in self.known:
                shorter = by_weight.get(weight - block.size[2])
                if shorter is not None and any(block.stands[1:]):
                    longer = self.halves.behind(shorter, block)
                    yield longer
                    made += [longer] * (weight < last)
            if weight < last:
                by_weight[weight] = joined(made)

    def _tails(self) -> tuple[Tails, Tails]:
        """The tails up to weight 2, and those of a list and a block."""
        halves, nothing = self.halves, self.halves.nothing()
        later = [block for block in self.known if any(block.stands[1:])]
        light = [block for block in later if block.size[2] == 1]
        lists = [block for block in later if block.size[2] == 2]
        single = useful(joined([nothing, *(halves.before(block, nothing) for block in light)]))
        one = single.at(np.flatnonzero(single.sizes[:, 2] == 1))
        two = [halves.before(block, one) for block in light]
        two += [halves.before(block, nothing) for block in lists]
        long = joined([one.at(np.array([], int)), *(halves.before(block, one) for block in lists)])
        return Tails(useful(joined([single, *two]))), Tails(long)

    def _meet(self, beginnings: Half, tails: Tails) -> None:
        """Look at the pairs of some beginnings and tails that can be better than what is known."""
        keys = np.column_stack([beginnings.sizes, beginnings.code])
        for key in np.unique(keys, axis=0):
            places = np.flatnonzero((keys == key).all(axis=1))
            lots = tails.behind((*LIMITS - key[:2], self.most - key[2]), int(key[3]))
            if not lots:
                continue
            top = np.max([lot.bound for lot in lots], axis=0)
            places = places[self._can(beginnings.vectors[places] @ top)]
            bounds = beginnings.vectors[places] @ np.stack([lot.bound for lot in lots]).T
            for place in np.argsort(-bounds.max(axis=0, initial=0.0)):
                some = places[self._can(bounds[:, place])]
                if len(some):
                    self._look(beginnings, some, tails.all, lots[place].places)

    def _can(self, bound: Array) -> Array:
        return np.asarray(bound - self.appraiser.cap > self.reward - ALIKE)

    def _look(self, beginnings: Half, some: Array, tails: Half, others: Array) -> None:
        worth = beginnings.vectors[some] @ tails.vectors[others].T - self.appraiser.cap
        if worth.max() <= self.reward - ALIKE:
            return
        self.reward = max(self.reward, float(worth.max()))
        pairs = np.argwhere(worth > self.reward - ALIKE)
        operators = beginnings.sizes[some[pairs[:, 0]], 0] + tails.sizes[others[pairs[:, 1]], 0]
        for one, other in pairs[operators == operators.min()][:_AT_ONCE]:
            chain = (*beginnings.chains[some[one]], *tails.chains[others[other]])
            self._found.append((float(worth[one, other]), chain))


class Tails:
    """Tails in lots, as far as they fit behind a beginning.

    Args:
        tails: All of them.
    """

    def __init__(self, tails: Half) -> None:
        by_block: dict[object, list[int]] = defaultdict(list)
        for place, chain in enumerate(tails.chains):
            by_block[chain[:1]].append(place)
        self.all = tails
        self._lots = [np.array(places) for places in by_block.values()]
        self._fitting: dict[tuple[int, ...], list[Lot]] = {}

    def behind(self, left: Sequence[int], code: int) -> list[Lot]:
        """The tails that fit.

        Args:
            left: Operators, calls and weight that are left.
            code: Whether there is a program.
        """
        key = (*map(int, left), code)
        known = self._fitting.get(key)
        if known is None:
            fits = (self.all.sizes <= left).all(axis=1) & self.all.code[:, code]
            some = [places[fits[places]] for places in self._lots]
            known = self._fitting[key] = [
                Lot(places, self.all.vectors[places].max(axis=0)) for places in some if len(places)
            ]
        return known


def _simplicity(tree: Node) -> tuple[int, str]:
    text = str(tree)
    return len(text), text
