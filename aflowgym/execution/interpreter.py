"""`execute` runs a single workflow, and an `Interpreter` runs all workflows of an episode.

A run returns a `Result`. If an operator fails, its branch ends, or the run ends if the operator is
not in a branch. A failed branch of a list is dropped; a failed run keeps its previous solution. A
failure is a record with a code, and its message never becomes an answer. Infrastructure errors and
failures of a backend raise `EnvironmentFault`, and no result is returned. Only workflows that were
parsed without errors are run.

`grade` checks the solution of a run. The hidden tests of a `code` task are run only by `grade`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from aflowgym.answers.answer import Verdict, wrong
from aflowgym.answers.code import CodeTest, Outcome, judge_code
from aflowgym.dsl.checking import calls
from aflowgym.dsl.nodes import Cond, Done, ListOf, Node, Op, Repeat, Seq
from aflowgym.operators.aflow import OPERATORS
from aflowgym.operators.context import Backend, Candidate, Context, Failed, Sandbox, job_of, needed
from aflowgym.operators.operator import Operator, Operators
from aflowgym.operators.replies import program_in
from aflowgym.operators.trace import Failure, Step, Usage
from aflowgym.remembering import LONGEST
from aflowgym.tasks.task import WorkflowTask, judge
from toolgym.errors import ConfigurationError


def grade(task: WorkflowTask, solution: str | None, sandbox: Sandbox | None = None) -> Verdict:
    """Check the solution of a run.

    Args:
        task: The task of the run.
        solution: The solution; None if there is none.
        sandbox: The sandbox that runs the tests of a `code` task.

    Raises:
        EnvironmentFault: If the sandbox failed.
        ConfigurationError: If the task is `code`, and there is no sandbox.
    """
    if solution is None:
        return wrong("the workflow left no solution")
    if task.kind != "code":
        return judge(task, solution)
    program = program_in(solution, task.entry_point)
    if program is None:
        return wrong("there is no program that defines the function")
    return judge_outcomes(task.tests, tuple(needed(sandbox).run(job_of(task, program, task.tests))))


def judge_outcomes(tests: tuple[CodeTest, ...], outcomes: tuple[Outcome, ...]) -> Verdict:
    """Call `judge_code`, caching the verdicts on short values."""
    size = sum([len(each.value) + len(each.error) for each in outcomes])
    return (_judged if size <= LONGEST else judge_code)(tests, outcomes)


_judged = functools.lru_cache(maxsize=4096)(judge_code)


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of one episode.

    Args:
        calls: Maximum number of model calls.
        tokens: Maximum number of prompt and completion tokens in total. The call that exceeds this
            limit is still completed, and no further calls are made.
    """

    calls: int = 32
    tokens: int = 200_000


DEFAULT_BUDGET: Final = Budget()


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run.

    Attributes:
        solution: The solution of the run; None if there is none.
        code: The program that computed the solution, or that is the solution of a `code` task; None
            if there is none.
        verdict: The verdict of the last check of this solution; None if the solution was not
            checked.
        failure: The reason why the run ended early; None if the run was completed. A run that fails
            keeps its previous solution.
        trace: All steps, as a tree that `print(result.trace)` displays.
    """

    solution: str | None
    code: str | None
    verdict: bool | None
    failure: Failure | None
    trace: Step

    @property
    def usage(self) -> Usage:
        """Model calls and tokens, including those of failed branches."""
        return self.trace.total()

    @property
    def warnings(self) -> tuple[Failure, ...]:
        """Warnings about dropped branches and missing tests, in the order of the workflow."""
        failures = (step.failure for step in self.trace.walk())
        return tuple(each for each in failures if each is not None and each.code[0] == "W")

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
        workflow: The tree of a workflow that was parsed without errors.
        task: The task to solve.
        backend: The source of completions.
        seed: Seed of the run; the same seed produces the same random draws.
        budget: Limits of the run.
        sandbox: The sandbox that runs programs. If it is None, the sandbox of the backend is used.
        operators: The operators of the workflow, in any form that `Operators.of` accepts. None
            means AFlow's ten.

    Raises:
        EnvironmentFault: If the backend or the sandbox failed, or an infrastructure error occurred.
        ConfigurationError: If `workflow` is None, if no sandbox is available for programs, or if
            the function `run` of an operator raised an exception or returned invalid outputs.
    """
    return Interpreter(
        task, backend, seed=seed, budget=budget, sandbox=sandbox, operators=operators
    ).run(workflow)


class Interpreter:
    """The runs of one episode, which share a budget.

    Args:
        task: The task to solve.
        backend: The source of completions. If its attribute `waits` is True, the branches of a list
            run in threads.
        seed: Seed of the draws.
        budget: Limits of all runs together.
        sandbox: The sandbox that runs programs. If it is None, the sandbox of the backend is used.
        operators: The operators, as in `execute`.

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
        self._stepped = 0
        self.context = Context(
            task, backend, sandbox or backend.sandbox, seed, budget.calls, budget.tokens
        )

    def run(self, workflow: Node) -> Result:
        """Run a workflow from an empty state.

        Raises:
            ConfigurationError: If there is no workflow.
        """
        if not isinstance(workflow, Node):
            raise ConfigurationError(
                f"expected a workflow to run, got {workflow!r:.80}. Pass the `workflow` of a text"
                " that parsed; `errors` has the errors of any other text."
            )
        self.context.clear()
        return self._result(workflow, "")

    def step(self, node: Node) -> Result:
        """Run one operator, or a list of copies of it, on the state after the previous step.

        An operator that fails does not change the state.
        """
        self._stepped += 1
        return self._result(node, str(self._stepped - 1))

    def _result(self, node: Node, path: str) -> Result:
        root, context = Step("workflow", path), self.context
        try:
            self._walk(node, context, root, path, False)
            if not path:
                _end_of(context)
        except Failed as failed:
            root.failure = failed.record(path)
        return Result(context.solution, context.code, context.verdict, root.failure, root)

    def _walk(
        self, node: Node | Done, context: Context, above: Step, path: str, looped: bool
    ) -> bool:
        """Run the steps of a node. Return whether the enclosing loops end here.

        A check that passes ends every enclosing loop in its branch. If it is the check of a
        condition, the branch for a passed check runs first.
        """
        counted = isinstance(node, Seq) or not path
        steps = node.steps if isinstance(node, Seq) else () if isinstance(node, Done) else (node,)
        for place, each in enumerate(steps):
            at = (f"{path}.{place}" if path else str(place)) if counted else path
            ended = False
            if isinstance(each, Op):
                operator = self.operators[each.name]
                step = above.add(str(each) if each.instruction else each.name, at)
                context.operate(operator, each.instruction, step)
                ended = looped and operator.is_check and context.verdict is True
            elif isinstance(each, Repeat):
                group = above.add("loop", at)
                for number in range(1, each.times + 1):
                    round_ = group.add(f"round {number}", f"{at}.r")
                    if self._walk(each.body, context, round_, round_.path, True):
                        ended = looped
                        break
            elif isinstance(each, Cond):
                group = above.add("condition", at)
                self._walk(each.check, context, group, f"{at}.c", False)
                passed = context.verdict
                if passed is None:
                    raise Failed("E-STATE", f"{each.check} gave no verdict.", at)
                side, label, mark = (
                    (each.passed, "it passes", "y") if passed else (each.fail, "it fails", "n")
                )
                chosen = group.add(label, f"{at}.{mark}")
                ended = self._walk(side, context, chosen, chosen.path, looped)
                ended = ended or (looped and passed)
            elif isinstance(each, ListOf):
                self._list(each, context, above.add("list", at))
            if ended:
                return True
        return False

    def _list(self, node: ListOf, context: Context, group: Step) -> None:
        """Run the branches of a list, each on a copy of the state, and collect their solutions.

        The remaining calls and tokens are divided among the branches in proportion to their maximum
        number of calls. Therefore no result depends on the timing of other branches.
        """
        ends = [0, *accumulate(calls(each, self.operators) for each in node.branches)]
        spent, branches = [0, 0], []
        for place, (each, end) in enumerate(zip(node.branches, ends[1:], strict=True)):
            due = [whole * end // (ends[-1] or 1) for whole in (context.calls, context.tokens)]
            fork = context.fork(place, due[0] - spent[0], due[1] - spent[1])
            branches.append(
                (each, fork, group.add(f"branch {place + 1}", f"{group.path}.b{place}"))
            )
            spent = due

        def run(branch: tuple[Node, Context, Step]) -> Candidate | None:
            each, fork, step = branch
            try:
                self._walk(each, fork, step, step.path, False)
                return _end_of(fork)
            except Failed as failed:
                left_out = f"left out: {failed.record(step.path)}"
                step.failure = Failure("W-BRANCH-FAIL", left_out, step.path)
                return None

        found = context.at_once(run, branches)
        context.calls += sum([fork.calls for _, fork, _ in branches]) - spent[0]
        context.tokens += sum([fork.tokens for _, fork, _ in branches]) - spent[1]
        candidates = tuple(each for each in found if each is not None)
        if not candidates:
            raise Failed("E-ALL-BRANCHES", f"all {len(found)} branches failed.", group.path)
        context.clear(candidates)


def _end_of(context: Context) -> Candidate:
    """Return the solution at the end of a branch or run."""
    if context.candidates is not None:
        raise Failed("E-STATE", "it ends in a list, not in one solution.")
    if context.solution is None:
        raise Failed("E-STATE", "it ends without a solution.")
    return Candidate(context.solution, context.code)
