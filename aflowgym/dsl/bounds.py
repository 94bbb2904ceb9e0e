"""How many calls of the model a workflow can come to.

The bounds hold for every run: each operator calls the model at least and at most as often as its
declaration says, a condition takes one branch or the other, and a loop ends no sooner than at the
first check of its first round. An ensemble has nothing to choose in a list of one.
"""

from __future__ import annotations

from typing import NamedTuple

from aflowgym.dsl.nodes import Cond, Done, ListOf, Node, Op, Repeat, Seq, children
from aflowgym.operators import Registry


class Calls(NamedTuple):
    """Least and most calls of the model."""

    least: int
    most: int


def calls(node: Node | Done, operators: Registry) -> Calls:
    """The least and most calls of the model in one run of a workflow."""
    match node:
        case Op():
            return Calls(*operators[node.name].calls)
        case Seq():
            return _in_a_row(node, operators)
        case ListOf():
            return _total([calls(branch, operators) for branch in node.branches])
        case Repeat():
            body = calls(node.body, operators)
            return Calls(_until_a_check(node, operators), node.times * body.most)
        case Cond():
            check = calls(node.check, operators)
            fail, passed = calls(node.fail, operators), calls(node.passed, operators)
            return Calls(
                check.least + min(fail.least, passed.least),
                check.most + max(fail.most, passed.most),
            )
        case Done():
            return Calls(0, 0)


def _total(parts: list[Calls]) -> Calls:
    return Calls(sum(part.least for part in parts), sum(part.most for part in parts))


def _in_a_row(node: Seq, operators: Registry) -> Calls:
    parts = []
    lone = False
    for step in node.steps:
        chosen = isinstance(step, Op) and operators[step.name].is_ensemble
        parts.append(Calls(0, 0) if lone and chosen else calls(step, operators))
        lone = isinstance(step, ListOf) and len(step.branches) == 1
    return _total(parts)


def can_exit(node: Node | Done, operators: Registry) -> bool:
    """Whether a loop around this node can end early; a branch of a list checks its copy only."""
    if isinstance(node, Op):
        return operators[node.name].is_check
    if isinstance(node, ListOf):
        return False
    return any(can_exit(child, operators) for child in children(node))


def _until_a_check(node: Repeat, operators: Registry) -> int:
    """Fewest calls of a loop: every round without a check in it, else up to its first check."""
    if not can_exit(node.body, operators):
        return node.times * calls(node.body, operators).least
    steps = node.body.steps if isinstance(node.body, Seq) else (node.body,)
    least = 0
    for step in steps:
        if isinstance(step, Op | Cond | Repeat) and can_exit(step, operators):
            return least + _first_check(step, operators)
        least += calls(step, operators).least
    return least


def _first_check(step: Op | Cond | Repeat, operators: Registry) -> int:
    match step:
        case Op():
            return calls(step, operators).least
        case Repeat():
            return _until_a_check(step, operators)
        case Cond():
            body = Repeat(step.check, 1, step.span)
            return _until_a_check(body, operators)
