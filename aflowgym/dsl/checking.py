"""Static checks of a workflow: its types, its size, and its maximum number of model calls.

The checker traverses the tree and keeps track of the slots that are filled. Only an operator that
has candidates as input can follow a list. A loop is traversed twice, because the second round
starts from the state at the end of the first round. Both branches of a condition start from the
state after the check, and afterwards only slots that both branches fill count as filled. For each
error, the checker stores a replacement for the node, from which `aflowgym.dsl.mending` constructs
the corrected workflow.
"""

from __future__ import annotations

from dataclasses import dataclass

from aflowgym.dsl.diagnostics import Diagnostic
from aflowgym.dsl.nodes import Cond, Done, ListOf, Node, Op, Repeat, Seq, children, sequence, size
from aflowgym.operators.operator import BIT, SLOTS, Operators

# A state is a number with one bit per filled slot.
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
    """Size limits of a workflow.

    Args:
        calls: Maximum number of model calls.
        depth: Maximum nesting of lists, loops and conditions.
        operators: Maximum number of operators, including the operators in every branch.
    """

    calls: int = 32
    depth: int = 4
    operators: int = 12


DEFAULT_LIMITS = Limits()


def calls(node: Node | Done, operators: Operators) -> int:
    """Return the maximum number of model calls in one run of a workflow."""
    match node:
        case Op():
            return operators[node.name].calls[1]
        case Repeat():
            return node.times * calls(node.body, operators)
        case Cond():
            check, *sides = (calls(part, operators) for part in children(node))
            return check + max(sides)
        case _:
            return sum(calls(part, operators) for part in children(node))


def _can_exit(node: Node | Done, operators: Operators) -> bool:
    """Return whether a loop around a node can end early.

    A check in a branch of a list only ends loops within this branch.
    """
    if isinstance(node, Op):
        return operators[node.name].is_check
    inside = () if isinstance(node, ListOf) else children(node)
    return any(_can_exit(part, operators) for part in inside)


def _gives_verdict(node: Node, operators: Operators) -> bool:
    """Return whether the last step of a node is a check."""
    while isinstance(node, Seq | Repeat):
        node = node.steps[-1] if isinstance(node, Seq) else node.body
    return isinstance(node, Op) and operators[node.name].is_check


class Checker:
    """One traversal of a tree.

    Attributes:
        found: The diagnostics.
        fixes: Replacements for nodes with an error, by the `id` of the node.
    """

    def __init__(self, operators: Operators, kind: str | None) -> None:
        self.operators = operators
        self.kind = kind
        self.found: list[Diagnostic] = []
        self.fixes: dict[int, Node] = {}
        self._looped: dict[tuple[int, int], int] = {}
        self._before: Node | None = None

    def check(self, tree: Node, limits: Limits) -> None:
        """Check a complete workflow."""
        count, deep = size(tree)
        if count > limits.operators or deep > limits.depth:
            message = (
                f"{count} operators, at most {limits.operators} are allowed; lists, loops and "
                f"conditions are nested {deep} deep, at most {limits.depth} are allowed."
            )
            self.say("E-SIZE", message, tree)
            return
        if self.walk(tree, EMPTY) & _LIST:
            self._open_list("E-LIST-END", "The workflow", tree)
        most = calls(tree, self.operators)
        if most > limits.calls:
            message = f"Up to {most} calls of the model; at most {limits.calls} are allowed."
            self.say("E-BUDGET", message, tree)

    def say(self, code: str, message: str, node: Node, expected: tuple[str, ...] = ()) -> None:
        """Report a diagnostic once."""
        new = Diagnostic(code, message, node.span, str(node), expected)
        if new not in self.found:
            self.found.append(new)

    def walk(self, node: Node | Done, state: int) -> int:
        """Return the state after a node, given the state before it."""
        kind = type(node)
        if kind is Op:
            return self._op(node, state)  # type: ignore[arg-type]
        if kind is Seq:
            for step in node.steps:  # type: ignore[union-attr]
                state = self.walk(step, state)
                self._before = step
            return state
        if kind is Cond:
            return self._cond(node, state)  # type: ignore[arg-type]
        if kind is Repeat:
            # A second traversal of a loop from the same state finds nothing new. Without this cache
            # nested loops would take 2 ** depth traversals.
            place = (id(node), state)
            if place not in self._looped:
                self._looped[place] = self._repeat(node, state)  # type: ignore[arg-type]
            return self._looped[place]
        return self._list(node, state) if isinstance(node, ListOf) else state

    # --- corrections ------------------------------------------------------------------------

    def _fix(self, node: Node, *steps: Node | None) -> None:
        """Store the replacement for a node, unless an operator for it is missing."""
        if None not in steps:
            self.fixes.setdefault(id(node), sequence([step for step in steps if step]))

    def _giver(self, *slots: str) -> Op | None:
        """Return the operator that fills the most of these slots and needs the fewest inputs."""
        givers = [op for op in self.operators.values() if {*slots} & {*op.outputs} and not op.kinds]
        best = max(
            givers, key=lambda op: (len({*slots} & {*op.outputs}), -len(op.inputs)), default=None
        )
        return Op(best.name) if best else None

    def _ensembles(self) -> list[str]:
        return [name for name, operator in self.operators.items() if operator.is_ensemble]

    def _closer(self) -> Op | None:
        return next(map(Op, self._ensembles()), None)

    # --- nodes ------------------------------------------------------------------------------

    def _op(self, node: Op, state: int) -> int:
        operator = self.operators[node.name]
        if operator.kinds and self.kind is not None and self.kind not in operator.kinds:
            kinds = " and ".join(operator.kinds)
            self._fix(node, self._giver(operator.outputs[-1]))
            self.say("E-KIND", f"{node.name} is for {kinds} tasks; this is {self.kind}.", node)
            return _SOLUTION | BIT["verdict"] | _FEEDBACK
        if state & _LIST and not operator.is_ensemble:
            message = f"{node.name} takes one solution, not a list."
            self.say("E-LIST", message, node, tuple(self._ensembles()))
            self._fix(node, self._closer(), node)
            state = _SOLUTION
        missing = [slot for slot in operator.inputs if not state & BIT[slot]]
        if missing:
            self._lacks(node, missing)
        for slot in missing:  # continue as if they were filled
            state |= BIT[slot]
        if state & _LONE:
            self.say("W-LIST-ONE", "A list of one leaves nothing to choose.", node)
        stays, fills = operator.effect
        return (state & stays) | fills

    def _lacks(self, node: Op, missing: list[str]) -> None:
        slot = missing[0]
        if slot != "candidates":
            givers = tuple(
                name for name, op in self.operators.items() if slot in op.outputs and not op.inputs
            )
            message = f"{node.name} needs {_NOUNS[slot]}, and nothing before it gives one."
            self.say(f"E-NEEDS-{slot.upper()}", message, node, givers)
            self._fix(node, self._giver(*missing), node)
            return
        message = f"{node.name} chooses among the branches of a list; put one before it."
        self.say("E-NEEDS-LIST", message, node, ("[a, b]",))
        before, body, times = self._before, self._before, 3
        if isinstance(before, Repeat):
            body, times = before.body, max(before.times, 2)
        if before and isinstance(body, Op) and body.name not in self._ensembles():
            self._fix(before, ListOf((body,) * times))
            return
        giver = self._giver("solution")
        self._fix(node, giver and ListOf((giver,) * 3), node)

    def _open_list(self, code: str, what: str, node: Node) -> None:
        closers = tuple(f"-> {name}" for name in self._ensembles())
        self.say(code, f"{what} ends in a list; close it with an ensemble.", node, closers)
        self._fix(node, node, self._closer())

    def _one_solution(self, node: Node | Done, state: int) -> int:
        """Return the state after a branch, which must not end in a list."""
        state = self.walk(node, state)
        if state & _LIST and not isinstance(node, Done):
            self._open_list("E-LIST", "A branch", node)
            return _SOLUTION
        return state

    def _list(self, node: ListOf, state: int) -> int:
        if state & _LIST:
            self.say("E-LIST", "A list cannot follow a list.", node, tuple(self._ensembles()))
            self._fix(node, self._closer(), node)
            state = _SOLUTION
        code = _CODE
        for branch in node.branches:
            self._before = None
            code &= self._one_solution(branch, state)
        return _LIST | code | (_LONE if len(node.branches) == 1 else 0)

    def _repeat(self, node: Repeat, state: int) -> int:
        if not _can_exit(node.body, self.operators):
            message = f"No check inside, so this always runs {node.times} times."
            self.say("W-LOOP-NOEXIT", message, node)
        known, start = len(self.found), state
        for _ in range(min(node.times, 2)):
            state = self.walk(node.body, state)
        lacking = any(new.code == "E-NEEDS-SOLUTION" for new in self.found[known:])
        if lacking and not start & _SOLUTION:
            self._fix(node, self._giver("solution"), node)
        return state

    def _cond(self, node: Cond, state: int) -> int:
        state = self.walk(node.check, state)
        if not _gives_verdict(node.check, self.operators):
            checks = tuple(name for name, op in self.operators.items() if op.is_check)
            message = f"{node.check} gives no verdict for `?`."
            self.say("E-COND-TYPE", message, node.check, checks)
            check = self._giver("verdict")
            self._fix(node, node.check, check and Cond(check, node.fail, node.passed))
            state |= BIT["verdict"] | _FEEDBACK
        fail = self._one_solution(node.fail, state)
        passed = self._one_solution(node.passed, state)
        return (fail & passed) | ((fail | passed) & _FEEDBACK)


def check(
    tree: Node, operators: Operators, kind: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> list[Diagnostic]:
    """Return the errors and warnings about a tree; the list is empty if there are none.

    Args:
        tree: A tree from the parser.
        operators: The operators that can be used in the workflow.
        kind: The kind of task. If it is None, only the rules that apply to all kinds are checked.
        limits: Size limits of a workflow.
    """
    checker = Checker(operators, kind)
    checker.check(tree, limits)
    return checker.found
