"""Run a workflow on a task: `execute`, and `aexecute` for an event loop.

A run ends in a `Result`. Either it has a solution, or it has a failure with a code, and never both:
no failure is told in the words of an answer. What the machine or a backend does wrong is an
`EnvironmentFault` and passes through; then there is no result at all. The trace has every step.

Nothing is run that was not written: `execute` takes the workflow of `aflowgym.parse`, and a text
that did not parse has none.
"""

from __future__ import annotations

from dataclasses import dataclass

from aflowgym.dsl.nodes import Cond, Done, ListOf, Node, Op, Repeat, Seq, children
from aflowgym.execution.budget import Account, Budget, Failed
from aflowgym.execution.protocols import Backend, Sandbox
from aflowgym.execution.state import State
from aflowgym.execution.sync import Concurrent, Face, Waiting, finished
from aflowgym.execution.trace import Failure, Step, Usage
from aflowgym.execution.walk import Lane, Walk, end_of
from aflowgym.operators.catalogue import OPERATORS
from aflowgym.operators.declaration import Registry
from aflowgym.tasks.task import WorkflowTask
from toolgym.errors import ConfigurationError

DEFAULT_BUDGET = Budget()


@dataclass(frozen=True, slots=True)
class Result:
    """What a run came to.

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
    """Run a workflow, and wait for it; branches run one after the other.

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
    face = Waiting(backend, sandbox or backend.sandbox)
    return finished(_run(workflow, task, face, seed, budget, operators))


async def aexecute(
    workflow: Node,
    task: WorkflowTask,
    backend: Backend,
    *,
    seed: int = 0,
    budget: Budget = DEFAULT_BUDGET,
    sandbox: Sandbox | None = None,
    operators: Registry = OPERATORS,
) -> Result:
    """`execute` on an event loop: the branches of a list, and votes, run at the same time.

    Arguments, result and errors are those of `execute`, and so is the trace.
    """
    face = Concurrent(backend, sandbox or backend.sandbox)
    return await _run(workflow, task, face, seed, budget, operators)


async def _run(
    workflow: Node, task: WorkflowTask, face: Face, seed: int, budget: Budget, operators: Registry
) -> Result:
    if not isinstance(workflow, Op | Seq | ListOf | Repeat | Cond):
        raise ConfigurationError(
            f"there is no workflow to run, but {workflow!r}; give the workflow of a text that"
            " parsed, and look at its errors otherwise."
        )
    root = Step("workflow", "")
    walk = Walk(face, operators, seed)
    lane = Lane(State(task), Account(budget.calls, budget.tokens), root.children)
    whole = workflow if isinstance(workflow, Seq) else Seq((workflow,))
    try:
        if (deep := _depth(workflow)) > budget.depth:
            raise Failed("E-DEPTH", f"{deep} levels, {budget.depth} allowed.")
        await walk.node(whole, lane, "", False)
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
    found = (step.failure for step in root.walk())
    return tuple(each for each in found if each is not None and each.code[0] == "W")


def _depth(node: Node | Done) -> int:
    """How deep lists, loops and conditions are nested."""
    kind = type(node)
    if kind is Op or kind is Done:
        return 0
    inner = 0
    for child in children(node):
        if type(child) is not Op:
            inner = max(inner, _depth(child))
    return inner if kind is Seq else inner + 1
