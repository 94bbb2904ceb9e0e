"""The stated family of workflows: small chains, and long chains of blocks, without repetition.

`Family` says how far it goes. A member of its first part is a chain of operators with at most one
list of two to five branches, closed by an ensemble, at most one `? :` and at most one `* n` (n of 2
or 3). The operators of the chain, of the condition and of the loop are counted, and the list as
one; each branch of it is one operator that needs nothing. A member is well typed for its kind of
task and within the limits of the language.

Lists are not told apart in the first part: a list stands for all lists of its sort, of which there
are two, since a program can be tested after a list only if all its branches write programs. The
second part is made of `Block`s.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Final, NamedTuple

from aflowgym.dsl.checking import DEFAULT_LIMITS, EMPTY, Checker, calls
from aflowgym.dsl.diagnostics import has_error
from aflowgym.dsl.nodes import (
    DONE,
    Cond,
    Done,
    ListOf,
    Node,
    Op,
    Repeat,
    Seq,
    sequence,
    size,
    steps_of,
)
from aflowgym.operators.catalogue import BIT, OPERATORS

BRANCHES: Final = range(2, 6)
ROUNDS: Final = (2, 3)
PLAIN: Final = tuple(Op(name) for name, each in OPERATORS.items() if not each.is_ensemble)
ENSEMBLES: Final = tuple(Op(name) for name, each in OPERATORS.items() if each.is_ensemble)
CHECKS: Final = tuple(each for each in PLAIN if OPERATORS[each.name].is_check)
STARTS: Final = tuple(each for each in PLAIN if not OPERATORS[each.name].needs)


class Family(NamedTuple):
    """The workflows that the best is looked for among; not the whole language.

    >>> print(Family(operators=2, blocks=0))
    all chains of up to 2 operators with a list, a condition and a loop

    Attributes:
        operators: Most operators in a member of the first part, its list counted as one.
        blocks: Most weight of a member of the second part, which are chains of blocks
            (`aflowgym.expectation.family`), a list counted as two; with them go the workflows of
            `NAMED`. 0 if there is neither.
    """

    operators: int = 4
    blocks: int = 5

    def __str__(self) -> str:
        first = (
            f"all chains of up to {self.operators} operators with a list, a condition and a loop"
        )
        if not self.blocks:
            return first
        return (
            f"{first}, and all chains of up to {self.blocks} blocks: operators, once or up to five"
            " times; checks with an operator, in up to 15 rounds; conditions; lists of up to 11"
            " branches, which count as two; and the workflows that are named"
        )


FAMILY: Final = Family()
NAMED: Final[Mapping[str, tuple[str, ...]]] = {
    "qa": (
        "AnswerGenerate -> (Review -> Revise) * 4 -> (Review -> Revise) * 4"
        " -> Review ? (Revise -> (Review -> Revise) * 2 -> (Review -> Revise) * 3) : done"
        " -> Format * 2",
    )
}
"""By kind of task, members of the family for themselves: what a search of the whole language came
upon that is better than all of the two parts."""


class Left(NamedTuple):
    """The room that a chain has left."""

    operators: int
    lists: int = 1
    conditions: int = 1
    loops: int = 1


@dataclass(frozen=True)
class Sort:
    """The lists that one stands for.

    Attributes:
        stands: The one that stands in the trees.
        members: All of them, one per set of branches.
        orders: For each, in how many orders its branches can stand.
        calls: For each, its most calls.
    """

    stands: ListOf
    members: tuple[ListOf, ...]
    orders: tuple[int, ...]
    calls: tuple[int, ...]


def _orders(branches: tuple[Node, ...]) -> int:
    """In how many orders the branches of a list can stand."""
    alike = math.prod(map(math.factorial, Counter(branches).values()))
    return math.factorial(len(branches)) // alike


def _sort(members: list[ListOf]) -> Sort:
    orders = tuple(_orders(each.branches) for each in members)
    most = tuple(calls(each, OPERATORS).most for each in members)
    return Sort(members[0], tuple(members), orders, most)


@functools.cache
def sorts() -> dict[ListOf, Sort]:
    """The two sorts of lists, by the one that stands for each."""
    every = [ListOf(each) for n in BRANCHES for each in combinations_with_replacement(STARTS, n)]
    programs = {each for each in STARTS if "code" in OPERATORS[each.name].writes}
    tested = [each for each in every if programs.issuperset(each.branches)]
    others = [each for each in every if not programs.issuperset(each.branches)]
    return {sort.stands: sort for sort in (_sort(tested), _sort(others))}


def steps(left: Left) -> Iterator[tuple[tuple[Node, ...], Left]]:
    """Every way to lengthen a chain: the nodes to append, and what is left then."""
    count = left.operators
    for plain in PLAIN if count >= 1 else ():
        yield (plain,), left._replace(operators=count - 1)
    if left.lists and count >= 2:
        after = left._replace(operators=count - 2, lists=0)
        for each in sorts():
            for ensemble in ENSEMBLES:
                yield (each, ensemble), after
    if left.conditions and count >= 2:
        for node, size in _conditions():
            if size <= count:
                yield (node,), left._replace(operators=count - size, conditions=0)
    if left.loops and count >= 1:
        for body, rest in chains(left._replace(loops=0)):
            for times in ROUNDS:
                yield (Repeat(sequence(body), times),), rest


@functools.cache
def _conditions() -> tuple[tuple[Cond, int], ...]:
    sides: tuple[Node | Done, ...] = (*PLAIN, DONE)
    return tuple(
        (Cond(check, fail, passed), 3 - isinstance(passed, Done))
        for check in CHECKS
        for fail in PLAIN
        for passed in sides
    )


def chains(left: Left) -> Iterator[tuple[tuple[Node, ...], Left]]:
    """Every chain that fits, and what is left then."""
    for nodes, rest in steps(left):
        yield nodes, rest
        for more, last in chains(rest) if rest.operators else ():
            yield (*nodes, *more), last


def slots_after(nodes: tuple[Node, ...], state: int, kind: str) -> int | None:
    """The slots that are filled after some nodes of a chain; None if their types do not fit."""
    checker = Checker(OPERATORS, kind)
    for node in nodes:
        state = checker.walk(node, state)
    return None if has_error(checker.found) else state


def within_calls(chain: tuple[Node, ...], sort: Sort | None) -> list[bool]:
    """Whether a chain stays within the calls that are allowed.

    Returns:
        One for each list of its sort; without a sort, one for the chain itself.
    """
    most = sum(calls(node, OPERATORS).most for node in chain)
    if sort is None:
        return [most <= DEFAULT_LIMITS.calls]
    loops = (node for node in chain if isinstance(node, Repeat))
    runs = next((loop.times for loop in loops if sort.stands in steps_of(loop.body)), 1)
    base = most - runs * sort.calls[0]
    return [base + runs * each <= DEFAULT_LIMITS.calls for each in sort.calls]


def replace_list(node: Node | Done, stands: ListOf, by: ListOf) -> Node | Done:
    """A tree with a list in place of the one that stands for it."""
    match node:
        case ListOf():
            return by if node == stands else node
        case Seq():
            return Seq(tuple(replace_list(each, stands, by) for each in node.steps))  # type: ignore[misc]
        case Repeat():
            return Repeat(replace_list(node.body, stands, by), node.times)  # type: ignore[arg-type]
        case _:
            return node


TIMES: Final = (2, 3, 4, 5)
NESTED_ROUNDS: Final = ((2,), (3,), (4,), (5,), (2, 3), (2, 4), (3, 3), (2, 5), (3, 4), (3, 5))
"""The rounds of a loop that begins with its check, as loops in one another."""
FIRST_LIST, LATER_LIST = 11, 5
"""Most branches of a list that a chain begins with, and of any other."""
HELD: Final = (BIT["solution"], BIT["solution"] | BIT["code"])
"""What a block behind others starts from: a solution, without a program or with one."""


Size = tuple[int, int, int]
Leaves = tuple[bool | None, bool | None]


class Block(NamedTuple):
    """A step of a long chain, or a list and its ensemble.

    | block                                       | weight | what there is                         |
    | ------------------------------------------- | ------ | ------------------------------------- |
    | an operator, once or again and again        | 1      | `* n`, n of 2 to 5                    |
    | a check, then an operator, until it passes  | 1      | of 2 to 6, 8, 9, 10, 12, 15 rounds    |
    | an operator, then a check, until it passes  | 1      | of 2 to 5 rounds                      |
    | a condition, one side of which is `done`    | 1      | any check, any operator               |
    | a list closed by an ensemble                | 2      | 2 to 11 branches at the beginning, or |
    |                                             |        | 2 to 5 behind it                      |

    A branch of a list is one operator that needs nothing. More than five rounds are loops in a
    loop, `((Review -> Revise) * 2) * 3`: a check that passes ends both. A chain of blocks is well
    typed for its kind of task and within the limits of the language.

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
        return sequence(self.nodes)


def blocks(kind: str) -> tuple[Block, ...]:
    """Every block that can stand somewhere in a chain for a kind of task."""
    made = [_block((node,), kind) for node in _single()]
    for count in range(2, FIRST_LIST + 1):
        for each in combinations_with_replacement(STARTS, count):
            made += [_block((ListOf(each), ensemble), kind) for ensemble in ENSEMBLES]
    return tuple(each for each in made if each.stands != (False, False, False))


def _single() -> Iterator[Node]:
    for plain in PLAIN:
        yield plain
        yield from (Repeat(plain, times) for times in TIMES)
    for check in CHECKS:
        for plain in PLAIN:
            if plain != check:
                yield from (_until(Seq((check, plain)), rounds) for rounds in NESTED_ROUNDS)
                yield from (Repeat(Seq((plain, check)), times) for times in TIMES)
            yield from (Cond(check, plain, DONE), Cond(check, DONE, plain))


def _until(body: Node, rounds: tuple[int, ...]) -> Node:
    for times in rounds:
        body = Repeat(body, times)
    return body


def _block(nodes: tuple[Node, ...], kind: str) -> Block:
    whole = sequence(nodes)
    most = size(whole)[0], calls(whole, OPERATORS).most, len(nodes)
    within = _is_within(most)
    branches = nodes[0].branches if isinstance(nodes[0], ListOf) else ()
    first = _leaves(nodes, EMPTY, kind) if within else None
    short = within and len(branches) <= LATER_LIST
    no_program, program = (_leaves(nodes, held, kind) if short else None for held in HELD)
    return Block(nodes, most, first, (no_program, program), _orders(branches))


def _leaves(nodes: tuple[Node, ...], state: int, kind: str) -> bool | None:
    """Whether a program is there behind some steps; None if their types do not fit."""
    filled = slots_after(nodes, state, kind)
    return None if filled is None else bool(filled & BIT["code"])


def count_chains(family: tuple[Block, ...], most: int) -> int:
    """The number of canonical texts of the chains of blocks up to a weight."""
    ends, alike = Counter[tuple[Size, bool]](), Counter[tuple[Size, Leaves]]()
    for block in family:
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
