"""A search for the best chain of blocks, whose beginnings and tails meet in the middle.

A beginning is a vector: the distribution over states that it leads to. A tail is one too: what each
state is worth if the tail is still to come. The reward of the chain is their product, so that all
chains of some beginnings and tails are one product of matrices.

Of two tails, one is of no use if it is worth no more from any state, needs as much, and may stand
wherever the other may. Most of such tails are left out, which changes no best chain.

Beginnings of up to three blocks meet tails of up to two. Each pair that fits is looked at or ruled
out by a bound that no pair of its lot passes: the tails that begin with the same block are worth,
from each state, no more than the best of them from that state. So all chains are covered, though
there are billions, and nothing is sampled.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from aflowgym.backends.presets import Preset
from aflowgym.dsl.checking import DEFAULT_LIMITS
from aflowgym.dsl.nodes import Node, sequence
from aflowgym.expectation.family import Block, blocks
from aflowgym.expectation.model import INHERITED, SAYS, Array
from aflowgym.expectation.walking import Appraiser, closed_only
from aflowgym.tasks.task import Kind
from toolgym.rewards import RewardConfig

LIMITS: Final = (DEFAULT_LIMITS.operators, DEFAULT_LIMITS.calls)
_COMPARED: Final = 400
"""With how many kept tails one is compared before it is kept too."""
_SLACK: Final = 1e-12

Chain = tuple[Block, ...]


class Half(NamedTuple):
    """Some beginnings, or some tails.

    Attributes:
        vectors: [chain, class and point and state]
        sizes: Operators, most calls, weight, [chain, 3].
        code: Of beginnings, whether they leave a program, [chain]; of tails, whether they can stand
            behind what leaves none and what leaves one, [chain, 2].
        chains: Their blocks.
    """

    vectors: Array
    sizes: Array
    code: Array
    chains: list[Chain]

    def at(self, places: Array) -> Half:
        """Some of them."""
        chains = [self.chains[place] for place in places]
        return Half(self.vectors[places], self.sizes[places], self.code[places], chains)


def join(halves: Sequence[Half]) -> Half:
    """All of several."""
    some = [half for half in halves if half.chains] or halves[:1]
    return Half(
        np.concatenate([half.vectors for half in some]),
        np.concatenate([half.sizes for half in some]),
        np.concatenate([half.code for half in some]),
        [chain for half in some for chain in half.chains],
    )


class Halves:
    """Makes beginnings longer behind, and tails before."""

    def __init__(self, appraiser: Appraiser) -> None:
        self.appraiser = appraiser
        #: The states outside of branches.
        self.outside: Array = np.flatnonzero(~np.isin(appraiser.states // len(SAYS), INHERITED))
        self._kernel = functools.cache(self._made)

    def starts(self, chosen: Sequence[Block]) -> Half:
        """The beginnings of one block."""
        some = [block for block in chosen if block.first is not None]
        ends = [closed_only(self.appraiser.after(block.nodes))[:, 0] for block in some]
        vectors = np.stack([end[:, self.outside].ravel() for end in ends])
        code = np.array([bool(block.first) for block in some])
        return Half(vectors, np.array([b.size for b in some]), code, [(b,) for b in some])

    def nothing(self) -> Half:
        """The empty tail."""
        values = self.appraiser.values[:, self.outside].reshape(1, -1)
        return Half(values, np.zeros((1, 3), int), np.ones((1, 2), bool), [()])

    def behind(self, beginnings: Half, block: Block) -> Half:
        """The beginnings that a block can stand behind, with it."""
        stands = np.array(block.stands[1:])
        sizes = beginnings.sizes + block.size
        places = np.flatnonzero(stands[beginnings.code.astype(int)] & _within(sizes))
        states = self._rows_first(beginnings.vectors[places])
        after = self._flat(np.matmul(states, self._kernel(block)))
        leaves = np.array([bool(each) for each in block.later])[beginnings.code[places].astype(int)]
        chains = [(*beginnings.chains[place], block) for place in places]
        return Half(after, sizes[places], leaves, chains)

    def before(self, block: Block, tails: Half) -> Half:
        """The tails that a block can stand before, with it."""
        code = np.zeros_like(tails.code)
        for place, leaves in enumerate(block.later):
            if leaves is not None:
                code[:, place] = tails.code[:, int(leaves)]
        sizes = tails.sizes + block.size
        places = np.flatnonzero(code.any(axis=1) & _within(sizes))
        worth = self._rows_first(tails.vectors[places])
        whole = self._flat(np.matmul(worth, self._kernel(block).swapaxes(1, 2)))
        chains = [(block, *tails.chains[place]) for place in places]
        return Half(whole, sizes[places], code[places], chains)

    def _rows_first(self, vectors: Array) -> Array:
        """Vectors as arrays of an appraiser, [class and point, chain, state]."""
        return vectors.reshape(-1, self.appraiser.rows, len(self.outside)).swapaxes(0, 1)

    def _flat(self, arrays: Array) -> Array:
        return arrays.swapaxes(0, 1).reshape(arrays.shape[1], arrays.shape[0] * arrays.shape[2])

    def _made(self, block: Block) -> Array:
        whole = self.appraiser.kernel(block.node, self.outside)
        return np.ascontiguousarray(whole[..., self.outside])


def useful(tails: Half) -> Half:
    """Tails without most of those that another one is at least as good as, wherever it stands."""
    worth = np.round(tails.vectors.sum(axis=1), 9)
    order = np.lexsort((*tails.sizes.T, -worth))
    few = np.random.default_rng(0).permutation(tails.vectors.shape[1])[:16]
    places: list[int] = []
    for place in order:
        rivals = np.array(places[:_COMPARED], int)
        rivals = rivals[(tails.sizes[rivals] <= tails.sizes[place]).all(axis=1)]
        rivals = rivals[(tails.code[rivals] >= tails.code[place]).all(axis=1)]
        least = tails.vectors[place] - _SLACK
        rivals = rivals[(tails.vectors[np.ix_(rivals, few)] >= least[few]).all(axis=1)]
        if not (tails.vectors[rivals] >= least).all(axis=1).any():
            places.append(int(place))
    return tails.at(np.array(places))


def _within(sizes: Array) -> Array:
    return np.asarray((sizes[:, :2] <= LIMITS).all(axis=1))


ALIKE = 1e-10
"""Rewards that differ by less are those of equals, of which the simplest chain is taken."""
_AT_ONCE = 50
"""How many equals of one lot are looked at."""


class Lot(NamedTuple):
    """Tails that begin with the same block, and no more than which each state is worth by them."""

    places: Array
    bound: Array


class Meeting:
    """A search for the best chain of blocks up to a weight, `most`, above a reward, `least`."""

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
            sequence([node for block in chain for node in block.nodes])
            for reward, chain in self._found
            if reward > self.reward - ALIKE
        ]
        return min(trees, key=lambda tree: (len(str(tree)), str(tree)), default=None)

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
                by_weight[weight] = join(made)

    def _tails(self) -> tuple[Tails, Tails]:
        """The tails up to weight 2, and those of a list and a block."""
        halves, nothing = self.halves, self.halves.nothing()
        later = [block for block in self.known if any(block.stands[1:])]
        light = [block for block in later if block.size[2] == 1]
        lists = [block for block in later if block.size[2] == 2]
        single = useful(join([nothing, *(halves.before(block, nothing) for block in light)]))
        one = single.at(np.flatnonzero(single.sizes[:, 2] == 1))
        two = [halves.before(block, one) for block in light]
        two += [halves.before(block, nothing) for block in lists]
        long = join([one.at(np.array([], int)), *(halves.before(block, one) for block in lists)])
        return Tails(useful(join([single, *two]))), Tails(long)

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
    """Tails in lots, as far as they fit behind a beginning."""

    def __init__(self, tails: Half) -> None:
        by_block: dict[object, list[int]] = defaultdict(list)
        for place, chain in enumerate(tails.chains):
            by_block[chain[:1]].append(place)
        self.all = tails
        self._lots = [np.array(places) for places in by_block.values()]
        self._fitting: dict[tuple[int, ...], list[Lot]] = {}

    def behind(self, left: Sequence[int], code: int) -> list[Lot]:
        """The tails that fit."""
        key = (*map(int, left), code)
        lots = self._fitting.get(key)
        if lots is None:
            fits = (self.all.sizes <= left).all(axis=1) & self.all.code[:, code]
            some = [places[fits[places]] for places in self._lots]
            lots = self._fitting[key] = [
                Lot(places, self.all.vectors[places].max(axis=0)) for places in some if len(places)
            ]
        return lots
