"""A workflow that would be accepted, made from one that was not.

What comes out is only ever shown, never run. It is the nearest workflow that a few rules reach:
what is missing before an operator is put there (a solution, a program, a list), a list is closed by
an ensemble, a condition gets a check, and what is too large loses rounds, then branches, then its
last steps. It is checked like any other workflow before it is shown.
"""

from __future__ import annotations

from aflowgym.dsl.checking import EMPTY, Bounds, Limits, accepted, after, calls, gives_verdict
from aflowgym.dsl.nodes import (
    DONE,
    Cond,
    Done,
    ListOf,
    Node,
    Op,
    Repeat,
    Seq,
    operators_of,
    sequence,
    size,
)
from aflowgym.operators.operator import BIT, Operators

_SOLUTION, _LIST = BIT["solution"], BIT["candidates"]
_FILLS = {"solution": "Custom", "code": "Programmer", "feedback": "Review", "verdict": "Review"}
_CLOSER = "ScEnsemble"
_CHECK = "Review"
#: Rounds of shrinking before giving up.
_PATIENCE = 40
#: Deepest tree that is mended as it is. Each loop is walked twice, so one inside others 2 ** depth
#: times; a deeper tree, which only wide limits allow, is made smaller first.
_DEEPEST = 8


class Mender:
    """One walk that inserts what is missing; the mirror of the checker."""

    def __init__(self, operators: Operators, kind: str | None) -> None:
        self.operators = operators
        self.kind = kind

    def walk(self, node: Node | Done, state: int) -> tuple[list[Node], int]:
        """The steps to put in a node's place, and the state after them."""
        match node:
            case Op():
                return self._op(node, state)
            case Seq():
                return self._seq(node, state)
            case ListOf():
                return self._list(node, state)
            case Repeat():
                return self._repeat(node, state)
            case Cond():
                return self._cond(node, state)
            case Done():
                return [], state

    def single(self, node: Node | Done, state: int) -> tuple[Node | Done, int]:
        """One node that ends in one solution."""
        steps, state = self.walk(node, state)
        if state & _LIST:
            steps.append(Op(_CLOSER))
            state = _SOLUTION
        return (sequence(steps) if steps else DONE), state

    def _op(self, node: Op, state: int) -> tuple[list[Node], int]:
        operator = self.operators[node.name]
        if operator.kinds and self.kind is not None and self.kind not in operator.kinds:
            node = Op(_CHECK)
            operator = self.operators[_CHECK]
        steps: list[Node] = []
        if state & _LIST and not operator.is_ensemble:
            steps.append(Op(_CLOSER))
            state = _SOLUTION
        for slot in ("code", "solution", "feedback", "verdict"):
            if slot in operator.inputs and not state & BIT[slot]:
                steps.append(Op(_FILLS[slot]))
                state = after(self.operators[_FILLS[slot]], state)
        if operator.is_ensemble and not state & _LIST:
            steps.append(ListOf((Op("Custom"),) * 3))
        steps.append(node)
        return steps, after(operator, state)

    def _chooses(self, node: Node) -> bool:
        return isinstance(node, Op) and self.operators[node.name].is_ensemble

    def _seq(self, node: Seq, state: int) -> tuple[list[Node], int]:
        done: list[Node] = []
        for place, step in enumerate(node.steps):
            coming = node.steps[place + 1] if place + 1 < len(node.steps) else None
            chosen = coming is not None and self._chooses(coming)
            if chosen and not isinstance(step, ListOf) and not self._chooses(step):
                # `Custom -> ScEnsemble` meant several of what stands before the ensemble.
                body, count = (step.body, step.times) if isinstance(step, Repeat) else (step, 3)
                step = ListOf((body,) * max(count, 2))
            steps, state = self.walk(step, state)
            done += steps
        return done, state

    def _list(self, node: ListOf, state: int) -> tuple[list[Node], int]:
        before: list[Node] = []
        if state & _LIST:
            before.append(Op(_CLOSER))
            state = _SOLUTION
        branches = [self.single(branch, state)[0] for branch in node.branches]
        full = tuple(branch for branch in branches if not isinstance(branch, Done))
        return [*before, ListOf(full)], _LIST

    def _repeat(self, node: Repeat, state: int) -> tuple[list[Node], int]:
        before: list[Node] = []
        first = next(operators_of(node.body))
        if not state & _SOLUTION and "solution" in self.operators[first.name].inputs:
            before.append(Op("Custom"))
            state = after(self.operators["Custom"], state)
        body, end = self.single(node.body, state)
        body, end = self.single(body, end)
        return [*before, Repeat(body, node.times)] if not isinstance(body, Done) else before, end

    def _cond(self, node: Cond, state: int) -> tuple[list[Node], int]:
        check, state = self.single(node.check, state)
        before: list[Node] = []
        if isinstance(check, Done) or not gives_verdict(check, self.operators):
            before = [] if isinstance(check, Done) else [check]
            check, state = self.single(Op(_CHECK), state)
        if isinstance(check, Seq):  # what had to come before the check comes before the condition
            *early, last = check.steps
            before += early
            check = last
        (fail, one), (passed, two) = self.single(node.fail, state), self.single(node.passed, state)
        if isinstance(check, Done):
            return before, state
        return [*before, Cond(check, fail, passed)], one & two


def _smaller(node: Node, bounds: Bounds) -> Node | None:
    """A little less of a workflow: fewer rounds, fewer branches, or without its last step."""
    match node:
        case Repeat() if node.times > 1:
            return Repeat(node.body, node.times - 1)
        case Repeat():
            return node.body
        case ListOf() if len(node.branches) > 2:
            return ListOf(node.branches[:-1])
        case ListOf():
            return node.branches[0]
        case Cond():
            return node.check
        case Seq():
            place = max(
                range(len(node.steps)),
                key=lambda index: (
                    not isinstance(node.steps[index], Op),
                    bounds.calls(node.steps[index]).most,
                    index,
                ),
            )
            step = _smaller(node.steps[place], bounds)
            if step is None:
                return sequence(node.steps[:-1])
            return sequence([*node.steps[:place], step, *node.steps[place + 1 :]])
        case _:
            return None


def _too_large(tree: Node, operators: Operators, limits: Limits) -> bool:
    count, deep = size(tree)
    return (
        count > limits.operators
        or deep > min(limits.depth, _DEEPEST)
        or calls(tree, operators).most > limits.calls
    )


def mend(tree: Node | None, operators: Operators, kind: str | None, limits: Limits) -> str | None:
    """The canonical text of an accepted workflow near to a tree.

    Returns:
        A text; where no rule helps, a single operator; None if no operator can stand alone.
    """
    fillers = {*_FILLS.values(), _CLOSER} <= operators.keys()
    current = tree if fillers else None
    if isinstance(current, Seq) and len(current.steps) > limits.operators:
        current = sequence(current.steps[: limits.operators])
    for _ in range(_PATIENCE):
        if current is None:
            break
        if not _too_large(current, operators, limits):
            fixed, _ = Mender(operators, kind).single(current, EMPTY)
            if not isinstance(fixed, Done) and accepted(fixed, operators, kind, limits):
                return str(fixed)
        current = _smaller(current, Bounds(operators))
    alone = (name for name in operators if accepted(Op(name), operators, kind, limits))
    return next(alone, None)
