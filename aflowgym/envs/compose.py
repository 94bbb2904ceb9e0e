"""`aflowgym/Compose-v0`: write a workflow of operators, look at what it leaves, and submit that.

The agent gives `run_workflow` a text in the language of `aflowgym.dsl`. A text that is no workflow
is answered with the place, what was expected there, and a corrected workflow; it costs a failed
call, and nothing is run in its place. One that runs costs a step, and another for every call that
it makes of a model. The agent may run others while it has calls, and ends with `answer`, which
submits the solution that a workflow last left.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from aflowgym.dsl import Parsed, parse
from aflowgym.dsl.nodes import operators_of
from aflowgym.envs import players
from aflowgym.envs.base import BUDGET, ENDS, WorkflowEnv
from aflowgym.envs.texts import run_text
from aflowgym.execution.errors import instruction_refused, invalid_workflow, parses, run_call
from aflowgym.execution.executor import execute
from aflowgym.execution.protocols import Backend, Sandbox
from aflowgym.operators.catalogue import OPERATORS
from aflowgym.operators.declaration import Operator
from aflowgym.remembering import remembered
from aflowgym.score import progress
from aflowgym.tasks.task import Kind, WorkflowTask
from toolgym.rewards import RewardConfig
from toolgym.tasks import TaskSet
from toolgym.tools import Code, tool


def _told_of_operators(method: Callable[..., str]) -> Callable[..., str]:
    """Make a method a tool whose description lists the operators, from their declarations."""
    lines = [f"- {each.name} ({_calls_of(each)}): {each.summary}" for each in OPERATORS.values()]
    docstring = inspect.cleandoc(method.__doc__ or "")
    method.__doc__ = docstring.format(calls=BUDGET.calls, operators="\n".join(lines))
    return tool(method)


def _calls_of(operator: Operator) -> str:
    """Least and most calls, and the kinds if it is not for all."""
    least, most = operator.calls
    only = "".join(f", {kind} tasks only" for kind in operator.kinds)
    return f"{least}{f' to {most}' * (most > least)}{only}"


class ComposeEnv(WorkflowEnv):
    """Compose a workflow of operators that solves a task; each call that it makes has a price.

    The other arguments are those of `WorkflowEnv`.

    Args:
        instructions: Operators may be given instructions. A language model can be told the answer
            in one.
        step_limit: Calls that an episode allows; `answer` is free.

    >>> import gymnasium as gym, aflowgym
    >>> env = gym.make("aflowgym/Compose-v0", kind="math")
    >>> observation, info = env.reset(seed=0)
    """

    def __init__(
        self,
        dataset: str | Path | TaskSet[WorkflowTask] = "bundled",
        split: str = "train",
        *,
        kind: Kind | None = None,
        backend: str | Mapping[str, Any] | Backend = "simulated",
        sandbox: Sandbox | None = None,
        free_answer: bool = False,
        instructions: bool = False,
        step_limit: int = 8,
        parsing: Literal["lenient", "strict"] = "lenient",
        rewards: RewardConfig | dict[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            dataset,
            split,
            kind=kind,
            backend=backend,
            sandbox=sandbox,
            free_answer=free_answer,
            step_limit=step_limit,
            parsing=parsing,
            rewards=rewards,
            render_mode=render_mode,
        )
        self.instructions = instructions

    def expert(self) -> Generator[Any, str, None]:
        """Run a workflow that is good for this kind of task, and submit what it leaves."""
        return players.compose(self)

    def novice(self, draw: random.Random) -> Generator[Any, str, None]:
        """Play the current episode as somebody who knows the tools, and not which are good."""
        return players.novice_composes(self, draw)

    def example_call(self, tool_name: str) -> dict[str, Any]:
        """A call that works in this episode."""
        if tool_name == "run_workflow":
            return run_call("Custom -> Review ? Revise : done")
        return {"name": tool_name, "arguments": {"value": 42} if self._is_free else {}}

    @property
    def _is_free(self) -> bool:
        return bool(self.tools["answer"].required)

    @_told_of_operators
    def run_workflow(self, dsl: Annotated[str, Code("workflow")]) -> str:
        """Run a workflow of operators on the task and show the solution it leaves.

        `A -> B` is a chain: B works on what A left. `[A, B] -> ScEnsemble` or `[A * 3] ->
        ScEnsemble` makes several solutions and chooses one. `Review ? Revise : done` is a check
        with a repair if it fails, `(Review -> Revise) * 3` a loop that ends when the check passes.
        A workflow makes at most {calls} calls of the model; each has a price.

        The operators, with the calls of the model that each makes:
        {operators}

        Args:
            dsl: The workflow, such as `Custom -> Review ? Revise : done`.
        """
        parsed, instructed = _read(dsl, self.task.kind)
        workflow = parsed.workflow
        if workflow is None:
            self.reach(progress(None, parsed=parses(parsed), checked=False))
            raise invalid_workflow(parsed, "Custom -> Review ? Revise : done")
        if instructed and not self.instructions:
            self.reach(progress(None, checked=False))
            raise instruction_refused(workflow)
        result = execute(
            workflow, self._base, self.backend, seed=self._seed, budget=BUDGET, sandbox=self.sandbox
        )
        self._left(result.solution, result.usage)
        return run_text(self._base, parsed, result, self.sandbox)

    @tool(terminal=True, aliases=ENDS)
    def answer(self) -> str:
        """Submit the solution that a workflow last left, and end the episode."""
        return self._submitted()


@remembered(4096)
def _read(dsl: str, kind: Kind) -> tuple[Parsed, bool]:
    """A text as a workflow, and whether it has instructions; remembered, since groups repeat."""
    parsed = parse(dsl, kind=kind)
    tree = parsed.workflow
    return parsed, tree is not None and any(each.instruction for each in operators_of(tree))
