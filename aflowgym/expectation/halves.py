"""The two halves of chains of blocks: beginnings, and tails that are put behind them.

A beginning is a vector: the distribution over states that it leads to. A tail is one too: what each
state is worth if the tail is still to come. The reward of the chain is their product, so that all
chains of some beginnings and tails are one product of matrices.

Of two tails, one is of no use if it is worth no more from any state, needs as much, and may stand
wherever the other may. Most of such tails are left out, which changes no best chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from aflowgym.dsl.checking import DEFAULT_LIMITS
from aflowgym.expectation.appraisal import Appraiser
from aflowgym.expectation.blocks import Block
from aflowgym.expectation.space import INHERITED, SAYS, Array
from aflowgym.expectation.walking import closed_only

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


def joined(halves: Sequence[Half]) -> Half:
    """All of several."""
    some = [half for half in halves if half.chains] or halves[:1]
    return Half(
        np.concatenate([half.vectors for half in some]),
        np.concatenate([half.sizes for half in some]),
        np.concatenate([half.code for half in some]),
        [chain for half in some for chain in half.chains],
    )


class Halves:
    """Makes beginnings longer behind, and tails before.

    Args:
        appraiser: Of the kind of task.
    """

    def __init__(self, appraiser: Appraiser) -> None:
        self.appraiser = appraiser
        #: The states outside of branches.
        self.outside: Array = np.flatnonzero(~np.isin(appraiser.states // len(SAYS), INHERITED))
        self._kernels: dict[Block, Array] = {}

    def starts(self, known: Sequence[Block]) -> Half:
        """The beginnings of one block."""
        some = [block for block in known if block.first is not None]
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

    def _kernel(self, block: Block) -> Array:
        known = self._kernels.get(block)
        if known is None:
            whole = self.appraiser.kernel(block.node, self.outside)
            known = self._kernels[block] = np.ascontiguousarray(whole[..., self.outside])
        return known


def useful(tails: Half) -> Half:
    """Tails without most of those that another one is at least as good as, wherever it stands."""
    worth = np.round(tails.vectors.sum(axis=1), 9)
    order = np.lexsort((*tails.sizes.T, -worth))
    few = np.random.default_rng(0).permutation(tails.vectors.shape[1])[:16]
    kept: list[int] = []
    for place in order:
        known = np.array(kept[:_COMPARED], int)
        known = known[(tails.sizes[known] <= tails.sizes[place]).all(axis=1)]
        known = known[(tails.code[known] >= tails.code[place]).all(axis=1)]
        least = tails.vectors[place] - _SLACK
        known = known[(tails.vectors[np.ix_(known, few)] >= least[few]).all(axis=1)]
        if not (tails.vectors[known] >= least).all(axis=1).any():
            kept.append(int(place))
    return tails.at(np.array(kept))


def _within(sizes: Array) -> Array:
    return np.asarray((sizes[:, :2] <= LIMITS).all(axis=1))
