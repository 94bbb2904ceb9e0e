"""Construct the corrected workflow that is shown with an error.

A corrected workflow is never run automatically. The replacements from the checker are applied until
no error remains. If a workflow is too large, rounds of loops, branches and steps are removed. The
result passes the same checks as any other workflow.
"""

from __future__ import annotations

from collections.abc import Mapping

from aflowgym.dsl.checking import Checker, Limits, check
from aflowgym.dsl.diagnostics import has_error
from aflowgym.dsl.nodes import Cond, Done, ListOf, Node, Op, Repeat, Seq, children, sequence
from aflowgym.operators.operator import Operators

#: Maximum number of rounds of corrections.
_ROUNDS = 40
#: Maximum number of operators and depth of a tree that is corrected, since each round traverses it.
_LARGEST = 100, 10


def _replaced(node: Node | Done, fixes: Mapping[int, Node]) -> Node | Done:
    """Return a tree in which nodes have been replaced."""
    if id(node) in fixes:
        return fixes[id(node)]
    parts = [_replaced(part, fixes) for part in children(node)]
    nodes = [part for part in parts if not isinstance(part, Done)]
    match node:
        case Seq():
            return sequence(nodes)
        case ListOf():
            return ListOf(tuple(nodes))
        case Repeat():
            return Repeat(nodes[0], node.times)
        case Cond():
            # the steps before the check go before the condition
            *early, check = nodes[0].steps if isinstance(nodes[0], Seq) else nodes[:1]
            return sequence([*early, Cond(check, parts[1], parts[2])])
    return node


def _smaller(node: Node, limits: Limits) -> Node | None:
    """Return a workflow with fewer rounds, branches or steps, or None for a single operator."""
    match node:
        case Repeat():
            return Repeat(node.body, node.times - 1) if node.times > 1 else node.body
        case ListOf():
            most = min(len(node.branches) - 1, limits.operators)
            return ListOf(node.branches[:most]) if most > 1 else node.branches[0]
        case Cond():
            return node.check
        case Seq():
            steps = list(node.steps[: limits.operators])
            places = [at for at, step in enumerate(steps) if not isinstance(step, Op)]
            if len(steps) < len(node.steps):
                return sequence(steps)
            step = _smaller(steps[places[-1]], limits) if places else None
            if step is None:
                return sequence(steps[:-1])
            return sequence([*steps[: places[-1]], step, *steps[places[-1] + 1 :]])
    return None


def mend(tree: Node | None, operators: Operators, kind: str | None, limits: Limits) -> str | None:
    """Return the canonical text of a valid workflow that is similar to the given tree.

    If the tree cannot be corrected, the result is a single operator, or None if no operator can run
    alone.
    """
    most, deepest = map(min, (limits.operators, limits.depth), _LARGEST)
    limits = Limits(limits.calls, deepest, most)
    for _ in range(_ROUNDS):
        if tree is None:
            break
        checker = Checker(operators, kind)
        checker.check(tree, limits)
        if not has_error(checker.found):
            return str(tree)
        fixed = _replaced(tree, checker.fixes) if checker.fixes else _smaller(tree, limits)
        tree = None if isinstance(fixed, Done) else fixed
    alone = (name for name in operators if not has_error(check(Op(name), operators, kind, limits)))
    return next(alone, None)
