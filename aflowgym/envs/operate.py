"""`aflowgym/Operate-v0`: the agent calls the operators one by one, each as a tool.

All operators of an episode share one state, as in a workflow. The calls `custom`, `review`,
`revise` have the same result as the workflow `Custom -> Review -> Revise` with the same seed.
Generators have an argument `copies`, which produces several candidates for an ensemble, like
`[Custom * 3]` in a workflow.

If an input of an operator is missing, the error contains a call that produces the input. An
operator that fails while it runs does not change the state.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Generator
from typing import Annotated, Any, Final

from pydantic import Field

from aflowgym.dsl.nodes import ListOf, Op
from aflowgym.envs import players
from aflowgym.envs.base import ENDS, WorkflowEnv, public_tests, solution_text, usage_line
from aflowgym.execution.errors import not_ready
from aflowgym.operators import OPERATORS, Operator, Operators
from aflowgym.operators.aflow import NO_TESTS
from aflowgym.operators.replies import letters
from aflowgym.score import progress
from toolgym.errors import ConfigurationError
from toolgym.tools import ToolSpec, read_spec, tool, tools_of

Copies = Annotated[int, Field(ge=1, le=5)]
_NEEDED: Final = {"candidates": "candidates", "code": "a program", "solution": "a solution"}


class OperateEnv(WorkflowEnv):
    """Solve a task by calling operators one by one; each call that they make has a price.

    The arguments are documented in `WorkflowEnv`.

    >>> import gymnasium as gym, aflowgym
    >>> env = gym.make("aflowgym/Operate-v0", kind="code")
    >>> observation, info = env.reset(seed=0)
    """

    def __getattr__(self, name: str) -> Any:
        """Return the tool of an operator as a method, such as `env.custom(copies=3)`."""
        if name in self.__dict__.get("tools", ()):
            return functools.partial(self.call, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")

    def expert(self) -> Generator[Any, str, None]:
        """Call the operators of a good workflow for this kind of task, and submit the solution."""
        return players.operate(self, players.good_workflows(self))

    def novice(self, draw: random.Random) -> Generator[Any, str, None]:
        """Call the operators of a typical workflow, good or bad, and submit the solution."""
        return players.operate(self, players.typical_workflow(self, draw))

    def example_call(self, tool_name: str) -> dict[str, Any]:
        """Return a call that is valid in the current state.

        If the tool requires another call first, that call is returned.
        """
        for operator in self.operators.values():
            if self.called(operator) == tool_name:
                refused = not_ready(operator, self.interpreter.context, self.operators)
                return refused.example if refused else {"name": tool_name, "arguments": {}}
        return {"name": tool_name, "arguments": {}}

    def called(self, operator: Operator) -> str:
        """Return the name of the operator's tool."""
        return operator.tool

    def make_tools(self) -> dict[str, ToolSpec]:
        """Return a tool for each operator, and the tool `answer`."""
        return {**operator_tools(self.operators), **tools_of(type(self))}

    @tool(terminal=True, aliases=ENDS)
    def answer(self) -> str:
        """Submit the solution as the operators left it, and end the episode."""
        return self.submit_solution()

    def operate(self, operator: Operator, copies: int) -> str:
        """Run an operator, or copies of it as a list, on the state.

        Return the observation of the operator's tool.
        """
        refused = not_ready(operator, self.interpreter.context, self.operators)
        if refused is not None:
            self.reach(progress(None, checked=False))
            raise refused
        one = Op(operator.name)
        result = self.interpreter.step(one if copies == 1 else ListOf((one,) * copies))
        self.take(result)
        if result.solution is None:  # candidates without a choice are not a solution
            self._judged = None
        lines = [usage_line(result.usage), *map(str, result.warnings)]
        if result.failure is not None:
            lines.append(f"{operator.name} left nothing. {result.failure}")
        else:
            lines += self._left(operator)
        return "\n".join(lines)

    def _left(self, operator: Operator) -> list[str]:
        """Return lines that describe the state: candidates, or verdict and solution."""
        state = self.interpreter.context
        if state.candidates is not None:
            names = letters(len(state.candidates))
            pairs = zip(names, state.candidates, strict=True)
            return ["Candidates:", *(f"{name}: {each.solution}" for name, each in pairs)]
        lines = []
        if "verdict" in operator.outputs and state.feedback != NO_TESTS:
            lines.append(f"Verdict: {'right' if state.verdict else 'wrong'}.")
        if "feedback" in operator.outputs and state.feedback:
            lines.append(state.feedback)
        if "solution" in operator.outputs and state.solution is not None:
            lines.append(public_tests(self.task, state.solution, self.sandbox))
            lines.append(solution_text(state.solution))
        return [line for line in lines if line]


@functools.lru_cache(maxsize=64)
def operator_tools(operators: Operators) -> dict[str, ToolSpec]:
    """Return the tools for some operators, by name.

    Raises:
        ConfigurationError: If the tool name of an operator is reserved for the tool `answer`.
    """
    tools = {}
    for operator in operators.values():
        spec = _tool_of(operator)
        if spec.name in ("answer", *ENDS):
            raise ConfigurationError(
                f"operators: the tool of {operator.name} would be {spec.name}, which ends an"
                " episode. Choose another name."
            )
        tools[spec.name] = spec
    return tools


def _tool_of(operator: Operator) -> ToolSpec:
    """Return the tool of an operator. Only generators have an argument, `copies`."""
    if operator.inputs:

        def method(self: OperateEnv) -> str:
            return self.operate(operator, 1)

        arguments = ""
    else:

        def method(self: OperateEnv, copies: Copies = 1) -> str:  # type: ignore[misc]
            return self.operate(operator, copies)

        arguments = (
            "\n\nArgs:\n    copies: How many to make. One is the solution; of 2 to 5 candidates"
            " sc_ensemble or md_ensemble has to choose one next."
        )
    method.__name__ = operator.tool
    method.__doc__ = f"{operator.summary} {_terms_of(operator)}{arguments}"
    return read_spec(method)


def _terms_of(operator: Operator) -> str:
    """Return the second half of a tool's description: kinds, inputs and calls of the operator.

    >>> _terms_of(OPERATORS["Test"])
    'For code tasks only. Needs a program. Takes at most 3 calls of the model.'
    """
    each = "" if operator.inputs else " per copy"
    needed = next((words for slot, words in _NEEDED.items() if slot in operator.inputs), "")
    least, most = operator.calls
    calls = f"at most {most}" if not least else f"{least} to {most}" if most > least else str(most)
    terms = [
        f"For {' and '.join(operator.kinds)} tasks only." if operator.kinds else "",
        f"Needs {needed}." if needed else "",
        f"Takes {calls} call{'s' * (most != 1)} of the model{each}.",
    ]
    return " ".join(filter(None, terms))


OperateEnv.tools = {**operator_tools(OPERATORS), **OperateEnv.tools}
