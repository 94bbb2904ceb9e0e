"""The stated family of workflows, and its first part, listed without repetition.

`Family` says how far it goes. A member of its first part is a chain of operators with at most one
list of two to five branches, closed by an ensemble, at most one `? :` and at most one `* n` (n of 2
or 3). The operators of the chain, of the condition and of the loop are counted, and the list as
one; each branch of it is one operator that needs nothing. A member is well typed for its kind of
task and within the limits of the language.

Lists are not told apart here: a list stands for all lists of its sort, of which there are two,
since a program can be tested after a list only if all its branches write programs.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Final, NamedTuple

from aflowgym.dsl.bounds import calls
from aflowgym.dsl.checking import DEFAULT_LIMITS, Checker
from aflowgym.dsl.nodes import DONE, Cond, Done, ListOf, Node, Op, Repeat, Seq
from aflowgym.operators.catalogue import OPERATORS

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
            (`aflowgym.expectation.blocks`), a list counted as two; with them go the workflows of
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
    """What a chain may still take up."""

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


def _sort(members: list[ListOf]) -> Sort:
    orders = []
    for each in members:
        repeated = Counter(each.branches).values()
        orders.append(
            math.factorial(len(each.branches)) // math.prod(map(math.factorial, repeated))
        )
    most = [calls(each, OPERATORS).most for each in members]
    return Sort(members[0], tuple(members), tuple(orders), tuple(most))


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
            whole = body[0] if len(body) == 1 else Seq(body)
            for times in ROUNDS:
                yield (Repeat(whole, times),), rest


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


def typed(nodes: tuple[Node, ...], state: int, kind: str) -> int | None:
    """The slots that are filled after some nodes of a chain; None if their types do not fit."""
    checker = Checker(OPERATORS, kind)
    for node in nodes:
        state = checker.walk(node, state)
    return None if any(found.code[0] == "E" for found in checker.found) else state


def allowed(chain: tuple[Node, ...], sort: Sort | None) -> list[bool]:
    """Whether a chain stays within the calls that are allowed.

    Returns:
        One for each list of its sort; without a sort, one for the chain itself.
    """
    most = sum(calls(node, OPERATORS).most for node in chain)
    if sort is None:
        return [most <= DEFAULT_LIMITS.calls]
    runs = next((n.times for n in chain if isinstance(n, Repeat) and sort.stands in _parts(n)), 1)
    base = most - runs * sort.calls[0]
    return [base + runs * each <= DEFAULT_LIMITS.calls for each in sort.calls]


def _parts(node: Repeat) -> tuple[Node, ...]:
    return node.body.steps if isinstance(node.body, Seq) else (node.body,)


def replaced(node: Node | Done, stands: ListOf, by: ListOf) -> Node | Done:
    """A tree with a list in place of the one that stands for it."""
    match node:
        case ListOf():
            return by if node == stands else node
        case Seq():
            return Seq(tuple(replaced(each, stands, by) for each in node.steps))  # type: ignore[misc]
        case Repeat():
            return Repeat(replaced(node.body, stands, by), node.times)  # type: ignore[arg-type]
        case _:
            return node
