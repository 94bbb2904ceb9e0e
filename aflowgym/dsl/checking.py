"""Static checks of a workflow: whether its types fit, and how many calls of the model it can make.

The bounds of the calls hold for every run: each operator calls the model at least and at most as
often as its declaration says, a condition takes one branch or the other, and a loop ends no sooner
than at the first check of its first round. An ensemble has nothing to choose in a list of one.

The checker runs a workflow on slots that are either filled or empty, in place of their contents. A
list is a state of its own: only an operator that needs candidates takes it. A loop is checked twice
over, because its second round starts where its first one ends; both branches of a condition start
from the state of its check, and what neither is sure to leave behind is not there afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from aflowgym.dsl.diagnostics import Diagnostic, has_error
from aflowgym.dsl.nodes import Cond, Done, ListOf, Node, Op, Repeat, Seq, children, size, steps_of
from aflowgym.operators.operator import BIT, SLOTS, Operator, Operators


class Calls(NamedTuple):
    """Least and most calls of the model."""

    least: int
    most: int


def calls(node: Node | Done, operators: Operators) -> Calls:
    """The least and most calls of the model in one run of a workflow."""
    return Bounds(operators).calls(node)


class Bounds:
    """The bounds of the nodes of one tree, which must outlive this: it knows nodes by identity."""

    def __init__(self, operators: Operators) -> None:
        self.operators = operators
        self._calls: dict[int, Calls] = {}
        self._exits: dict[int, bool] = {}

    def calls(self, node: Node | Done) -> Calls:
        """The least and most calls of the model in one run of a node."""
        counted = self._calls.get(id(node))
        if counted is None:
            counted = self._calls[id(node)] = self._count(node)
        return counted

    def can_exit(self, node: Node | Done) -> bool:
        """Whether a loop around a node can end early; a branch of a list checks its copy only."""
        exits = self._exits.get(id(node))
        if exits is None:
            if isinstance(node, Op):
                exits = self.operators[node.name].is_check
            else:
                exits = not isinstance(node, ListOf) and any(map(self.can_exit, children(node)))
            self._exits[id(node)] = exits
        return exits

    def _count(self, node: Node | Done) -> Calls:
        match node:
            case Op():
                return Calls(*self.operators[node.name].calls)
            case Seq():
                return self._in_a_row(node)
            case ListOf():
                return _total([self.calls(branch) for branch in node.branches])
            case Repeat():
                most = node.times * self.calls(node.body).most
                return Calls(self._until_a_check(node.body, node.times), most)
            case Cond():
                check = self.calls(node.check)
                fail, passed = self.calls(node.fail), self.calls(node.passed)
                return Calls(
                    check.least + min(fail.least, passed.least),
                    check.most + max(fail.most, passed.most),
                )
            case Done():
                return Calls(0, 0)

    def _in_a_row(self, node: Seq) -> Calls:
        parts = []
        lone = False
        for step in node.steps:
            chosen = isinstance(step, Op) and self.operators[step.name].is_ensemble
            parts.append(Calls(0, 0) if lone and chosen else self.calls(step))
            lone = isinstance(step, ListOf) and len(step.branches) == 1
        return _total(parts)

    def _until_a_check(self, body: Node, times: int) -> int:
        """Fewest calls of a loop: every round without a check in it, else up to its first check."""
        if not self.can_exit(body):
            return times * self.calls(body).least
        least = 0
        for step in steps_of(body):
            if isinstance(step, Op | Cond | Repeat) and self.can_exit(step):
                return least + self._first_check(step)
            least += self.calls(step).least
        return least

    def _first_check(self, step: Op | Cond | Repeat) -> int:
        match step:
            case Op():
                return self.calls(step).least
            case Repeat():
                return self._until_a_check(step.body, step.times)
            case Cond():
                return self._until_a_check(step.check, 1)


def _total(parts: list[Calls]) -> Calls:
    return Calls(sum(part.least for part in parts), sum(part.most for part in parts))


# A state is a number: one bit per filled slot.
_SOLUTION, _CODE, _LIST = BIT["solution"], BIT["code"], BIT["candidates"]
_FEEDBACK = BIT["feedback"]
_LONE = 1 << len(SLOTS)  # the list has one branch
EMPTY = 0
_NOUNS = {
    "solution": "a solution",
    "code": "a program",
    "verdict": "a verdict",
    "feedback": "a review",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest workflow that is allowed.

    Args:
        calls: Most calls of the model that it may come to.
        depth: Most lists, loops and conditions inside one another.
        operators: Most operators, those of every branch counted.
    """

    calls: int = 32
    depth: int = 4
    operators: int = 12


DEFAULT_LIMITS = Limits()


def after(operator: Operator, state: int) -> int:
    """The slots that are filled once an operator has run on a state that suits it."""
    stays, fills = operator.effect
    return (state & stays) | fills


def gives_verdict(node: Node | Done, operators: Operators) -> bool:
    """Whether a condition can ask this node: its last step is a check."""
    match node:
        case Op():
            return operators[node.name].is_check
        case Seq():
            return gives_verdict(node.steps[-1], operators)
        case Repeat():
            return gives_verdict(node.body, operators)
        case _:
            return False


class Checker:
    """One walk over a tree, collecting what does not fit."""

    def __init__(self, operators: Operators, kind: str | None) -> None:
        self.operators = operators
        self.kind = kind
        self.found: list[Diagnostic] = []
        self.bounds = Bounds(operators)
        self._looped: dict[tuple[int, int], int] = {}

    def say(self, code: str, message: str, node: Node, expected: tuple[str, ...] = ()) -> None:
        """Record something, once."""
        new = Diagnostic(code, message, node.span, str(node), expected)
        if new not in self.found:
            self.found.append(new)

    def walk(self, node: Node | Done, state: int) -> int:
        """The state after a node that starts from `state`."""
        kind = type(node)
        if kind is Op:
            return self._op(node, state)  # type: ignore[arg-type]
        if kind is Seq:
            for step in node.steps:  # type: ignore[union-attr]
                state = self.walk(step, state)
            return state
        if kind is Cond:
            return self._cond(node, state)  # type: ignore[arg-type]
        if kind is Repeat:
            # A loop is walked twice: without this memory, one inside others 2 ** depth times. A
            # second walk from the same state finds nothing new.
            place = (id(node), state)
            if place not in self._looped:
                self._looped[place] = self._repeat(node, state)  # type: ignore[arg-type]
            return self._looped[place]
        return self._list(node, state) if isinstance(node, ListOf) else state

    def _op(self, node: Op, state: int) -> int:
        operator = self.operators[node.name]
        if operator.kinds and self.kind is not None and self.kind not in operator.kinds:
            self._wrong_kind(node, operator)
        if state & _LIST and not operator.is_ensemble:
            message = f"{node.name} takes one solution, not a list."
            self.say("E-LIST", message, node, ("ScEnsemble", "MdEnsemble"))
            state = _SOLUTION
        for slot in operator.inputs:
            if not state & BIT[slot]:  # report it once, and go on as if it were filled
                self._lacks(node, slot)
                for each in operator.inputs:
                    state |= BIT[each]
        if state & _LONE:
            self.say("W-LIST-ONE", "A list of one leaves nothing to choose.", node)
        return after(operator, state)

    def _wrong_kind(self, node: Op, operator: Operator) -> None:
        code = "E-NEEDS-CODE" if "code" in operator.inputs else "E-KIND"
        message = f"{node.name} is for {' and '.join(operator.kinds)} tasks; this is {self.kind}."
        self.say(code, message, node, ("Review",))

    def _lacks(self, node: Op, slot: str) -> None:
        if slot == "candidates":
            message = f"{node.name} chooses among the branches of a list; put one before it."
            self.say("E-NEEDS-LIST", message, node, ("[a, b]",))
            return
        givers = tuple(
            name
            for name, operator in self.operators.items()
            if slot in operator.outputs and not operator.inputs
        )
        message = f"{node.name} needs {_NOUNS[slot]}, and nothing before it gives one."
        self.say(f"E-NEEDS-{slot.upper()}", message, node, givers)

    def _one_solution(self, node: Node, state: int) -> int:
        """A branch ends here: a list must have been closed by an ensemble."""
        if not state & _LIST:
            return state
        message = "A branch ends in one solution, not in a list."
        self.say("E-LIST", message, node, ("-> ScEnsemble", "-> MdEnsemble"))
        return _SOLUTION

    def _list(self, node: ListOf, state: int) -> int:
        if state & _LIST:
            self.say("E-LIST", "A list cannot take a list.", node, ("-> ScEnsemble",))
            state = _SOLUTION
        code = _CODE
        for branch in node.branches:
            code &= self._one_solution(branch, self.walk(branch, state))
        return _LIST | code | (_LONE if len(node.branches) == 1 else 0)

    def _repeat(self, node: Repeat, state: int) -> int:
        if not self.bounds.can_exit(node.body):
            message = f"No check inside, so this runs {node.times} times whatever happens."
            self.say("W-LOOP-NOEXIT", message, node, ("Review",))
        for _ in range(min(node.times, 2)):
            state = self.walk(node.body, state)
        return state

    def _cond(self, node: Cond, state: int) -> int:
        state = self.walk(node.check, state)
        if not gives_verdict(node.check, self.operators):
            checks = tuple(name for name, op in self.operators.items() if op.is_check)
            message = f"{node.check} gives no verdict, so `?` has nothing to ask."
            self.say("E-COND-TYPE", message, node.check, checks)
            state |= BIT["verdict"] | _FEEDBACK
        ends = [
            self._one_solution(side, self.walk(side, state))
            if not isinstance(side, Done)
            else state
            for side in (node.fail, node.passed)
        ]
        sure = ends[0] & ends[1]
        return sure | ((ends[0] | ends[1]) & _FEEDBACK)


def check(tree: Node, operators: Operators, kind: str | None, limits: Limits) -> list[Diagnostic]:
    """The records of what does not fit in a tree: none, for a workflow that runs without remarks.

    Args:
        tree: A tree as the parser leaves it.
        kind: The kind of task it is for; None checks what holds for all kinds.
    """
    checker = Checker(operators, kind)
    count, deep = size(tree)
    if count > limits.operators or deep > limits.depth:
        message = (
            f"Operators: {count}, at most {limits.operators}; lists, loops and conditions inside "
            f"one another: {deep}, at most {limits.depth}."
        )
        checker.say("E-SIZE", message, tree)
        return checker.found
    if checker.walk(tree, EMPTY) & _LIST:
        message = "The workflow ends in a list; close it by an ensemble."
        checker.say("E-LIST-END", message, tree, ("-> ScEnsemble", "-> MdEnsemble"))
    most = checker.bounds.calls(tree).most
    if most > limits.calls:
        message = f"Up to {most} calls of the model; {limits.calls} are allowed."
        checker.say("E-BUDGET", message, tree)
    return checker.found


def accepted(
    tree: Node, operators: Operators, kind: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> bool:
    """Whether a tree runs: `check` finds no error in it."""
    return not has_error(check(tree, operators, kind, limits))
