"""Runs of a workflow on a task.

A run ends in a `Result`. Either it has a solution, or it has a failure with a code, and never both:
no failure is told in the words of an answer. What the machine or a backend does wrong is an
`EnvironmentFault` and passes through; then there is no result at all. The trace has every step.
Nothing is run that was not written: `execute` takes the workflow of `aflowgym.parse`, and a text
that did not parse has none.

`Walk` says which operator runs when, on which state. A branch of a list works on a copy of the
state and an account of its own. A check that passes ends every loop around it in its branch; where
it is the check of a condition, the passed branch runs first. An operator that fails ends its
branch, which is then left out of the list, or the run.
"""

from __future__ import annotations

from dataclasses import dataclass

from aflowgym.dsl.checking import calls
from aflowgym.dsl.nodes import Cond, Done, ListOf, Node, Op, Repeat, Seq, size, steps_of
from aflowgym.execution.behaviours import BEHAVIOURS, Bench, Run, plain
from aflowgym.execution.protocols import Backend, Sandbox
from aflowgym.execution.state import Account, Budget, Candidate, Failed, Lane, State
from aflowgym.execution.trace import Failure, Step, Usage
from aflowgym.operators.catalogue import OPERATORS
from aflowgym.operators.declaration import Operator, Registry
from aflowgym.tasks.task import WorkflowTask
from toolgym.errors import ConfigurationError


class Walk(Run):
    """The walk over the workflow of one run."""

    def node(self, node: Node | Done, lane: Lane, path: str, looped: bool) -> bool:
        """Run one node; whether the loops around it end here."""
        kind = type(node)
        if kind is Op:
            self._op(node, lane, path)  # type: ignore[arg-type]
            return (
                looped
                and self.operators[node.name].is_check  # type: ignore[union-attr]
                and lane.state.verdict is True
            )
        if kind is Seq:
            for place, step in enumerate(node.steps):  # type: ignore[union-attr]
                if self.node(step, lane, f"{path}.{place}" if path else str(place), looped):
                    return True
            return False
        if kind is Cond:
            return self._cond(node, lane, path, looped)  # type: ignore[arg-type]
        if kind is Repeat:
            return self._repeat(node, lane, path, looped)  # type: ignore[arg-type]
        if isinstance(node, ListOf):
            self._list(node, lane, path)
        return False

    def _cond(self, node: Cond, lane: Lane, path: str, looped: bool) -> bool:
        group = _open_step(lane, "condition", path)
        inside = Lane(lane.state, lane.account, group.children)
        self.node(node.check, inside, f"{path}.c", False)
        passed = lane.state.verdict
        if passed is None:
            raise Failed("E-STATE", f"{node.check} gave no verdict.", path)
        side, mark = (node.passed, "y") if passed else (node.fail, "n")
        chosen = _open_step(inside, "it passes" if passed else "it fails", f"{path}.{mark}")
        inside = Lane(lane.state, lane.account, chosen.children)
        return self.node(side, inside, chosen.path, looped) or (looped and passed)

    def _repeat(self, node: Repeat, lane: Lane, path: str, looped: bool) -> bool:
        group = _open_step(lane, "loop", path)
        for number in range(1, node.times + 1):
            round_ = Step(f"round {number}", f"{path}.r")
            group.children.append(round_)
            inside = Lane(lane.state, lane.account, round_.children)
            if self.node(node.body, inside, f"{path}.r", True):
                return looped
        return False

    def _list(self, node: ListOf, lane: Lane, path: str) -> None:
        group = _open_step(lane, "list", path)
        shares = lane.account.share([calls(each, self.operators).most for each in node.branches])
        ends = []
        for place, (each, share) in enumerate(zip(node.branches, shares, strict=True)):
            branch = Step(f"branch {place + 1}", f"{path}.b{place}")
            group.children.append(branch)
            inside = Lane(lane.state.copy(), share, branch.children)
            ends.append(self._branch(each, inside, branch.path))
        lane.account.back(shares)
        candidates = tuple(end for end in ends if isinstance(end, Candidate))
        for end, branch in zip(ends, group.children, strict=True):
            if isinstance(end, Failure):
                branch.failure = Failure("W-BRANCH-FAIL", f"left out: {end}", branch.path)
                self.warned = True
        if not candidates:
            raise Failed("E-ALL-BRANCHES", f"all {len(ends)} branches failed.", path)
        lane.state.gather(candidates)

    def _branch(self, node: Node, lane: Lane, path: str) -> Candidate | Failure:
        """What a branch ends in, or why it failed."""
        try:
            self.node(node, lane, path, False)
            return end_of(lane.state)
        except Failed as failed:
            return failed.record(path)

    def _op(self, node: Op, lane: Lane, path: str) -> None:
        operator, state = self.operators[node.name], lane.state
        step = Step(str(node) if node.instruction else node.name, path)
        lane.steps.append(step)
        bench = Bench(self, operator, node.instruction, lane, step)
        try:
            admit(operator, state)
            step.inputs = {s: v for s in operator.inputs if (v := getattr(state, s)) is not None}
            outputs = BEHAVIOURS.get(node.name, plain)(bench)
        except Failed as failed:
            step.failure = failed.record(path)
            raise
        step.outputs = outputs
        state.settle(operator, outputs)


def admit(operator: Operator, state: State) -> None:
    """Let an operator work on a state that has what it needs, and on no other.

    Raises:
        Failed: A slot is empty, a list is open, or the task is of another kind.
    """
    if operator.kinds and state.task.kind not in operator.kinds:
        raise Failed("E-KIND", f"{operator.name} does not run on {state.task.kind} tasks.")
    if state.candidates is not None and not operator.is_ensemble:
        raise Failed("E-STATE", f"{operator.name} takes one solution, not a list.")
    for slot in operator.needs:
        if getattr(state, slot) is None:
            raise Failed("E-STATE", f"{operator.name} needs {slot}, and there is none.")


def end_of(state: State) -> Candidate:
    """The solution that a branch or a run ends in.

    Raises:
        Failed: There is none, or a list in its place.
    """
    if state.candidates is not None:
        raise Failed("E-STATE", "it ends in a list, not in one solution.")
    if state.solution is None:
        raise Failed("E-STATE", "it ends without a solution.")
    return Candidate(state.solution, state.code)


def _open_step(lane: Lane, label: str, path: str) -> Step:
    """A step for a construct, at the end of the lane's steps."""
    step = Step(label, path)
    lane.steps.append(step)
    return step


DEFAULT_BUDGET = Budget()


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run.

    Attributes:
        solution: What it left; None if it failed.
        code: The program behind the solution, where there is one.
        verdict: What the last check said of this solution; None if none was made of it.
        failure: Why it failed; None if it did not.
        warnings: Branches that failed and were left out, and tests that were missing, in the
            order of the text.
        usage: Calls of the model and tokens, those of failed branches too.
        trace: Every step, as a tree; `print(result.trace)` draws it.
    """

    solution: str | None
    code: str | None
    verdict: bool | None
    failure: Failure | None
    warnings: tuple[Failure, ...]
    usage: Usage
    trace: Step

    @property
    def ok(self) -> bool:
        """Whether there is a solution."""
        return self.failure is None


def execute(
    workflow: Node,
    task: WorkflowTask,
    backend: Backend,
    *,
    seed: int = 0,
    budget: Budget = DEFAULT_BUDGET,
    sandbox: Sandbox | None = None,
    operators: Registry = OPERATORS,
) -> Result:
    """Run a workflow; branches run one after the other.

    Args:
        workflow: The tree of a text that parsed.
        task: What is to be solved.
        backend: Who answers the prompts.
        seed: Seed of the run; the same one gives the same draws.
        budget: What it may use.
        sandbox: Where programs run; None takes the backend's own.
        operators: The declarations of the operators in the workflow.

    Raises:
        EnvironmentFault: The backend, the sandbox or the machine failed.
        ConfigurationError: There is no workflow, or no sandbox for one that runs programs.
    """
    if not isinstance(workflow, Op | Seq | ListOf | Repeat | Cond):
        raise ConfigurationError(
            f"there is no workflow to run, but {workflow!r}; give the workflow of a text that"
            " parsed, and look at its errors otherwise."
        )
    root = Step("workflow", "")
    walk = Walk(backend, sandbox or backend.sandbox, operators, seed)
    lane = Lane(State(task), Account(budget.calls, budget.tokens), root.children)
    try:
        if (deep := size(workflow)[1]) > budget.depth:
            raise Failed("E-DEPTH", f"{deep} levels, {budget.depth} allowed.")
        walk.node(Seq(steps_of(workflow)), lane, "", False)
        end = end_of(lane.state)
    except Failed as failed:
        root.failure = failed.record("")
        return Result(None, None, None, root.failure, _warnings(walk, root), walk.usage, root)
    verdict = lane.state.verdict
    warnings = _warnings(walk, root)
    return Result(end.solution, end.code, verdict, None, warnings, walk.usage, root)


def _warnings(walk: Walk, root: Step) -> tuple[Failure, ...]:
    """The warnings of branches that failed and of tests that are missing, in their order."""
    if not walk.warned:
        return ()
    failures = (step.failure for step in root.walk())
    return tuple(each for each in failures if each is not None and each.code[0] == "W")
