"""Blocks, of which the long chains of the stated family are made.

| block                                       | weight | what there is                             |
| ------------------------------------------- | ------ | ----------------------------------------- |
| an operator, once or again and again        | 1      | `* n`, n of 2 to 5                        |
| a check, then an operator, until it passes  | 1      | of 2, 3, 4, 5, 6, 8, 9, 10, 12, 15 rounds |
| an operator, then a check, until it passes  | 1      | of 2 to 5 rounds                          |
| a condition, one side of which is `done`    | 1      | any check, any operator                   |
| a list closed by an ensemble                | 2      | 2 to 11 branches at the beginning, else 5 |

A branch of a list is one operator that needs nothing. More than five rounds are loops in a loop,
`((Review -> Revise) * 2) * 3`: a check that passes ends both. A chain of blocks is well typed for
its kind of task and within the limits of the language: twelve operators, 32 calls.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Final, NamedTuple

from aflowgym.dsl.bounds import calls
from aflowgym.dsl.checking import DEFAULT_LIMITS, EMPTY
from aflowgym.dsl.nodes import DONE, Cond, ListOf, Node, Repeat, Seq, size
from aflowgym.expectation.family import CHECKS, ENSEMBLES, PLAIN, STARTS, typed
from aflowgym.operators.catalogue import BIT, OPERATORS

TIMES: Final = (2, 3, 4, 5)
ROUNDS: Final = ((2,), (3,), (4,), (5,), (2, 3), (2, 4), (3, 3), (2, 5), (3, 4), (3, 5))
"""The rounds of a loop that begins with its check, as loops in one another."""
FIRST_LIST, LATER_LIST = 11, 5
"""Most branches of a list that a chain begins with, and of any other."""
HELD: Final = (BIT["solution"], BIT["solution"] | BIT["code"])
"""What a block behind others starts from: a solution, without a program or with one."""


Size = tuple[int, int, int]
Leaves = tuple[bool | None, bool | None]


class Block(NamedTuple):
    """A step of a chain, or a list and its ensemble.

    Attributes:
        nodes: The steps that it adds to a chain.
        size: Operators, most calls, and weight.
        first: Whether it leaves a program at the beginning; None if it cannot stand there.
        later: The same behind what left no program, and behind what left one.
        orders: In how many orders its branches can stand.
    """

    nodes: tuple[Node, ...]
    size: Size
    first: bool | None
    later: Leaves
    orders: int = 1

    @property
    def stands(self) -> tuple[bool, bool, bool]:
        """Whether it can stand at the beginning, and behind what leaves no program, or one."""
        return self.first is not None, self.later[0] is not None, self.later[1] is not None

    @property
    def node(self) -> Node:
        """Its steps as one node."""
        return self.nodes[0] if len(self.nodes) == 1 else Seq(self.nodes)


def blocks(kind: str) -> tuple[Block, ...]:
    """Every block that can stand somewhere in a chain for a kind of task."""
    found = [_block((node,), kind) for node in _single()]
    for count in range(2, FIRST_LIST + 1):
        for each in combinations_with_replacement(STARTS, count):
            found += [_block((ListOf(each), ensemble), kind) for ensemble in ENSEMBLES]
    return tuple(each for each in found if each.stands != (False, False, False))


def _single() -> Iterator[Node]:
    for plain in PLAIN:
        yield plain
        yield from (Repeat(plain, times) for times in TIMES)
    for check in CHECKS:
        for plain in PLAIN:
            if plain != check:
                yield from (_until(Seq((check, plain)), rounds) for rounds in ROUNDS)
                yield from (Repeat(Seq((plain, check)), times) for times in TIMES)
            yield from (Cond(check, plain, DONE), Cond(check, DONE, plain))


def _until(body: Node, rounds: tuple[int, ...]) -> Node:
    for times in rounds:
        body = Repeat(body, times)
    return body


def _block(nodes: tuple[Node, ...], kind: str) -> Block:
    whole = nodes[0] if len(nodes) == 1 else Seq(nodes)
    most = size(whole)[0], calls(whole, OPERATORS).most, len(nodes)
    within = _is_within(most)
    branches = nodes[0].branches if isinstance(nodes[0], ListOf) else ()
    first = _leaves(nodes, EMPTY, kind) if within else None
    short = within and len(branches) <= LATER_LIST
    no_program, program = (_leaves(nodes, held, kind) if short else None for held in HELD)
    alike = math.prod(map(math.factorial, Counter(branches).values()))
    orders = math.factorial(len(branches)) // alike
    return Block(nodes, most, first, (no_program, program), orders)


def _leaves(nodes: tuple[Node, ...], state: int, kind: str) -> bool | None:
    """Whether a program is there behind some steps; None if their types do not fit."""
    filled = typed(nodes, state, kind)
    return None if filled is None else bool(filled & BIT["code"])


def count_chains(known: tuple[Block, ...], most: int) -> int:
    """How many canonical texts the chains of blocks up to a weight have."""
    ends, alike = Counter[tuple[Size, bool]](), Counter[tuple[Size, Leaves]]()
    for block in known:
        alike[block.size, block.later] += block.orders
        if block.first is not None and block.size[2] <= most:
            ends[block.size, block.first] += block.orders
    total = 0
    while ends:
        total += ends.total()
        longer = Counter[tuple[Size, bool]]()
        for (had, code), count in ends.items():
            for (added, later), orders in alike.items():
                whole = had[0] + added[0], had[1] + added[1], had[2] + added[2]
                leaves = later[code]
                if leaves is not None and _is_within(whole) and whole[2] <= most:
                    longer[whole, leaves] += count * orders
        ends = longer
    return total


def _is_within(size: Size) -> bool:
    return size[0] <= DEFAULT_LIMITS.operators and size[1] <= DEFAULT_LIMITS.calls
