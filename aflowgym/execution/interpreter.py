"""`execute` runs a workflow on a task; an `Interpreter` runs several within one episode.

A run ends in a `Result`. An operator that fails ends its branch, which is then left out of the
list, or the run, which keeps the solution that it had before. A failure is a record with a code and
never the text of an answer. What the machine or a backend does wrong is an `EnvironmentFault`, and
there is no result. Only the tree of a text that parsed is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final

from aflowgym.dsl.checking import calls
from aflowgym.dsl.nodes import Cond, Done, ListOf, Node, Op, Repeat, Seq, size, steps_of
from aflowgym.operators.aflow import OPERATORS
from aflowgym.operators.context import Backend, Candidate, Context, Failed, Sandbox
from aflowgym.operators.operator import Operator, Operators
from aflowgym.operators.replies import last_block, program_in, read_verdict
from aflowgym.operators.trace import Failure, Step, Usage
from aflowgym.tasks.task import WorkflowTask
from toolgym.errors import ConfigurationError, EnvironmentFault


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of one episode.

    Args:
        calls: Most calls of the model.
        tokens: Most tokens, read and written. The call that exceeds it is the last.
        depth: Most lists, loops and conditions inside one another.
    """

    calls: int = 32
    tokens: int = 200_000
    depth: int = 4


DEFAULT_BUDGET: Final = Budget()


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run.

    Attributes:
        solution: The solution that it left; None if there is none.
        code: The program behind the solution, if there is one.
        verdict: The last check's verdict on this solution; None if it was not checked.
        failure: Why the run ended early; None if it did not. A run that fails keeps the solution
            that it had before.
        warnings: Branches that failed and were left out, and tests that were missing, in the order
            of the text.
        usage: Calls of the model and tokens, including those of failed branches.
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
        return self.solution is not None


def execute(
    workflow: Node,
    task: WorkflowTask,
    backend: Backend,
    *,
    seed: int = 0,
    budget: Budget = DEFAULT_BUDGET,
    sandbox: Sandbox | None = None,
    operators: Operators | Iterable[Operator | str] | None = None,
) -> Result:
    """Run a workflow.

    Args:
        workflow: The tree of a text that parsed.
        task: The task to solve.
        backend: The source of completions.
        seed: Seed of the run; the same seed gives the same draws.
        budget: What the run may use.
        sandbox: Where programs run; None takes the backend's own.
        operators: The operators of the workflow, as in `Operators.of`; None for AFlow's ten.

    Raises:
        EnvironmentFault: The backend, the sandbox or the machine failed.
        ConfigurationError: There is no workflow, no sandbox for one that runs programs, or an
            operator's `run` broke its contract.
    """
    return Interpreter(
        task, backend, seed=seed, budget=budget, sandbox=sandbox, operators=operators
    ).run(workflow)


class Interpreter:
    """The runs of one episode, which share a budget.

    Args:
        task: The task to solve.
        backend: The source of completions. If its `waits` is True, the branches of a list run in
            threads.
        seed: Seed of the draws.
        budget: What all runs together may use.
        sandbox: Where programs run; None takes the backend's own.
        operators: As in `execute`.

    Attributes:
        context: The state that `step` works on.
    """

    def __init__(
        self,
        task: WorkflowTask,
        backend: Backend,
        *,
        seed: int = 0,
        budget: Budget = DEFAULT_BUDGET,
        sandbox: Sandbox | None = None,
        operators: Operators | Iterable[Operator | str] | None = None,
    ) -> None:
        self.operators = OPERATORS.of(operators)
        self.budget = budget
        self._waits = bool(getattr(backend, "waits", False))
        self._stepped = 0
        self.context = Context(
            task, backend, sandbox or backend.sandbox, seed, budget.calls, budget.tokens
        )

    def run(self, workflow: Node) -> Result:
        """Run a workflow from an empty state.

        Raises:
            ConfigurationError: There is no workflow.
        """
        if not isinstance(workflow, Op | Seq | ListOf | Repeat | Cond):
            raise ConfigurationError(
                f"there is no workflow to run, got {workflow!r}; pass the workflow of a text that"
                " parsed, and read its errors otherwise."
            )
        root, context = Step("workflow", ""), self._copy(self.context)
        _set_slots(context, None)
        try:
            if (deep := size(workflow)[1]) > self.budget.depth:
                raise Failed("E-DEPTH", f"{deep} levels, {self.budget.depth} allowed.")
            self._walk(Seq(steps_of(workflow)), context, root.children, "", False)
            _check_end(context)
        except Failed as failed:
            root.failure = failed.record("")
        self.context.calls, self.context.tokens = context.calls, context.tokens
        return _result(context, root)

    def step(self, node: Node) -> Result:
        """Run one operator, or a list of copies of it, on the state that the last step left.

        One that fails leaves the state unchanged.
        """
        path, context = str(self._stepped), self.context
        root = Step("workflow", path)
        self._stepped += 1
        try:
            self._walk(node, context, root.children, path, False)
        except Failed as failed:
            root.failure = failed.record(path)
        return _result(context, root)

    def _walk(
        self, node: Node | Done, context: Context, steps: list[Step], path: str, looped: bool
    ) -> bool:
        """Run one node; return whether the loops around it end here.

        A check that passes ends every loop around it in its branch. If it is the check of a
        condition, the passed branch runs first.
        """
        if isinstance(node, Op):
            operator = self.operators[node.name]
            self._operate(operator, node, context, steps, path)
            return looped and operator.is_check and context.verdict is True
        if isinstance(node, Seq):
            for place, each in enumerate(node.steps):
                if self._walk(
                    each, context, steps, f"{path}.{place}" if path else str(place), looped
                ):
                    return True
        elif isinstance(node, Repeat):
            group = Step("loop", path)
            steps.append(group)
            for place in range(1, node.times + 1):
                round_ = Step(f"round {place}", f"{path}.r")
                group.children.append(round_)
                if self._walk(node.body, context, round_.children, f"{path}.r", True):
                    return looped
        elif isinstance(node, Cond):
            group = Step("condition", path)
            steps.append(group)
            self._walk(node.check, context, group.children, f"{path}.c", False)
            passed = context.verdict
            if passed is None:
                raise Failed("E-STATE", f"{node.check} gave no verdict.", path)
            chosen = Step("it passes" if passed else "it fails", f"{path}.{'y' if passed else 'n'}")
            group.children.append(chosen)
            side = node.passed if passed else node.fail
            ended = self._walk(side, context, chosen.children, chosen.path, looped)
            return ended or (looped and passed)
        elif isinstance(node, ListOf):
            self._gather(node, context, steps, path)
        return False

    def _gather(self, node: ListOf, context: Context, steps: list[Step], path: str) -> None:
        """Run the branches of a list, each on a copy of the state, and collect their solutions.

        The branches share the budget that is left in proportion to the calls that each can make,
        so that what a branch may use does not depend on the others' timing.
        """
        group = Step("list", path)
        steps.append(group)
        most = [0, *accumulate(calls(each, self.operators).most for each in node.branches)]
        whole = most[-1] or 1
        branches = []
        for place, (start, end) in enumerate(pairwise(most)):
            branch = self._copy(context)
            branch.calls = context.calls * end // whole - context.calls * start // whole
            branch.tokens = context.tokens * end // whole - context.tokens * start // whole
            branch.branch = f"{context.branch}.{place}" if context.branch else str(place)
            group.children.append(Step(f"branch {place + 1}", f"{path}.b{place}"))
            branches.append(branch)

        def run(place: int) -> None:
            step = group.children[place]
            try:
                self._walk(node.branches[place], branches[place], step.children, step.path, False)
                _check_end(branches[place])
            except Failed as failed:
                left_out = f"left out: {failed.record(step.path)}"
                step.failure = Failure("W-BRANCH-FAIL", left_out, step.path)

        if self._waits and len(branches) > 1:
            with ThreadPoolExecutor(len(branches)) as pool:
                list(pool.map(run, range(len(branches))))
        else:
            for place in range(len(branches)):
                run(place)
        if most[-1]:
            context.calls = sum([branch.calls for branch in branches])
            context.tokens = sum([branch.tokens for branch in branches])
        candidates = tuple(
            Candidate(str(branch.solution), branch.code)
            for branch, step in zip(branches, group.children, strict=True)
            if step.failure is None
        )
        if not candidates:
            raise Failed("E-ALL-BRANCHES", f"all {len(branches)} branches failed.", path)
        _set_slots(context, candidates)

    def _operate(
        self, operator: Operator, node: Op, context: Context, steps: list[Step], path: str
    ) -> None:
        """Run one operator, and take over its outputs."""
        step = Step(str(node) if node.instruction else node.name, path)
        steps.append(step)
        context.operator, context.step, context.made = operator, step, 0
        context.instruction = node.instruction
        try:
            if operator.kinds and context.task.kind not in operator.kinds:
                raise Failed(
                    "E-KIND", f"{operator.name} does not run on {context.task.kind} tasks."
                )
            if context.candidates is not None and not operator.is_ensemble:
                raise Failed("E-STATE", f"{operator.name} takes one solution, not a list.")
            for slot in operator.inputs:
                if getattr(context, slot) is None:
                    raise Failed("E-STATE", f"{operator.name} needs {slot}, and there is none.")
            step.inputs = {
                slot: value
                for slot in operator.shown
                if (value := getattr(context, slot)) is not None
            }
            if operator.run is None:
                outputs: Mapping[str, Any] = _ask_once(context)
            else:
                outputs = _checked(operator, _run(operator, context))
        except Failed as failed:
            step.failure = failed.record(path)
            raise
        step.outputs = outputs
        for slot in operator.emptied:
            setattr(context, slot, None)
        for slot, value in outputs.items():
            setattr(context, slot, value)
        if "code" in operator.keeps and "code" not in outputs and context.task.kind == "code":
            context.code = program_in(context.solution or "", context.task.entry_point)

    @staticmethod
    def _copy(context: Context) -> Context:
        """A context with the same slots and budget, which can be changed on its own."""
        copy = Context(
            context.task, context.backend, context.sandbox, context.seed,
            context.calls, context.tokens, context.branch,
        )  # fmt: skip
        copy.solution, copy.code, copy.candidates = (
            context.solution, context.code, context.candidates,
        )  # fmt: skip
        copy.verdict, copy.feedback = context.verdict, context.feedback
        return copy


def _set_slots(context: Context, candidates: tuple[Candidate, ...] | None) -> None:
    """Leave these candidates in a state, and nothing else."""
    context.candidates = candidates
    context.solution = context.code = context.verdict = context.feedback = None


def _check_end(context: Context) -> None:
    """Refuse the end of a branch or a run that has no solution."""
    if context.candidates is not None:
        raise Failed("E-STATE", "it ends in a list, not in one solution.")
    if context.solution is None:
        raise Failed("E-STATE", "it ends without a solution.")


def _result(context: Context, root: Step) -> Result:
    warnings = tuple(
        each.failure
        for each in root.walk()
        if each.failure is not None and each.failure.code[0] == "W"
    )
    return Result(
        context.solution, context.code, context.verdict, root.failure, warnings, root.total(), root
    )


def _ask_once(context: Context) -> Mapping[str, Any]:
    """Ask the model once, and read from its reply what the operator outputs."""
    reply, outputs = context.ask(), dict[str, Any]()
    for slot in context.operator.outputs:
        if slot == "verdict":
            read = read_verdict(reply)
            if read is None:
                context.fail("no line `Verdict: right` or `Verdict: wrong`.", "E-REPLY")
            outputs["verdict"], reply = read
        elif slot == "code":
            function = context.task.entry_point
            program = program_in(reply, function) if function else last_block(reply)
            if program is None:
                context.fail(f"no program that defines {function or 'a function'}.", "E-PROGRAM")
            outputs["code"] = program
    for slot in ("feedback", "solution"):
        if slot in context.operator.outputs:
            outputs[slot] = reply
    return outputs


def _run(operator: Operator, context: Context) -> Any:
    """Call the function of an operator."""
    try:
        return operator.run(context)  # type: ignore[misc]  # the caller has looked
    except (Failed, EnvironmentFault, ConfigurationError):
        raise
    except Exception as problem:
        raise ConfigurationError(
            f"the function of the operator {operator.name} raised {type(problem).__name__}:"
            f" {problem}. Mend it, or call context.fail(...) where it cannot go on."
        ) from problem


def _checked(operator: Operator, outputs: Any) -> Mapping[str, Any]:
    """The outputs of an operator's function, which must be slots of the right type.

    Raises:
        ConfigurationError: They are not.
    """
    allowed = {*operator.outputs, *operator.keeps}
    if not isinstance(outputs, Mapping) or not outputs.keys() <= allowed:
        raise ConfigurationError(
            f"the function of the operator {operator.name} must return a dict with some of"
            f" {', '.join(sorted(allowed))}, got {outputs!r:.200}."
        )
    for slot, value in outputs.items():
        right = bool if slot == "verdict" else str
        if not isinstance(value, right):
            raise ConfigurationError(
                f"the function of the operator {operator.name} must return a {right.__name__} as"
                f" {slot}, got {value!r:.200}."
            )
    return outputs
