"""`aflowgym/Operate-v0`: call the operators one by one, on one state, and submit what they leave.

Every operator of `aflowgym.operators.catalogue` is a tool, made from its declaration. The calls of
an episode are the steps of one run: the k-th call stands where the k-th step of a workflow stands,
so that `custom`, `review`, `revise` leave what `Custom -> Review -> Revise` leaves with the same
seed. A generator takes `copies`, which makes candidates for an ensemble, as `[Custom * 3]` does.

An operator that lacks what it needs is answered with a call that leaves it. One that fails while it
runs leaves the state as it was.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from typing import Annotated, Any, Final

from pydantic import Field

from aflowgym.dsl.nodes import ListOf, Op
from aflowgym.envs import players
from aflowgym.envs.base import BUDGET, ENDS, WorkflowEnv
from aflowgym.envs.texts import public_tests, solution_text, usage_line
from aflowgym.execution.behaviours import NO_TESTS
from aflowgym.execution.errors import not_ready
from aflowgym.execution.executor import Walk
from aflowgym.execution.replies import letters
from aflowgym.execution.state import Account, Failed, Lane, State
from aflowgym.execution.trace import Usage
from aflowgym.operators.catalogue import OPERATORS
from aflowgym.operators.declaration import Operator
from aflowgym.score import progress
from aflowgym.tasks.task import WorkflowTask
from toolgym.tools import tool

Copies = Annotated[int, Field(ge=1, le=5)]
_NEEDED: Final = {"candidates": "candidates", "code": "a program", "solution": "a solution"}


def tool_name(operator: str) -> str:
    """The name of an operator's tool.

    >>> tool_name("CustomCodeGenerate"), tool_name("ScEnsemble")
    ('custom_code_generate', 'sc_ensemble')
    """
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in operator).lstrip("_")


def _tool_of(operator: Operator) -> Callable[..., str]:
    """The tool of one declaration: a generator takes `copies`, any other operator nothing."""
    if operator.needs:

        def method(self: Any) -> str:
            return str(self._operate(operator, 1))

        arguments = ""
    else:

        def method(self: Any, copies: Copies = 1) -> str:  # type: ignore[misc]
            return str(self._operate(operator, copies))

        arguments = (
            "\n\nArgs:\n    copies: How many to make. One is the solution; of 2 to 5 candidates"
            " sc_ensemble or md_ensemble has to choose one next."
        )
    method.__name__ = tool_name(operator.name)
    method.__doc__ = f"{operator.summary} {_terms_of(operator)}{arguments}"
    return tool(method)


def _terms_of(operator: Operator) -> str:
    """What an operator needs, and what it takes: the second half of a tool's description.

    >>> _terms_of(OPERATORS["Test"])
    'For code tasks only. Needs a program. Takes at most 3 calls of the model.'
    """
    each = "" if operator.needs else " per copy"
    needed = next((words for slot, words in _NEEDED.items() if slot in operator.needs), "")
    least, most = operator.calls
    calls = f"at most {most}" if not least else f"{least} to {most}" if most > least else str(most)
    terms = [
        f"For {' and '.join(operator.kinds)} tasks only." if operator.kinds else "",
        f"Needs {needed}." if needed else "",
        f"Takes {calls} call{'s' * (most != 1)} of the model{each}.",
    ]
    return " ".join(filter(None, terms))


#: The tools, as a base class: they stand before `answer`.
OperatorTools: Any = type(
    "OperatorTools", (), {tool_name(each.name): _tool_of(each) for each in OPERATORS.values()}
)


class OperateEnv(WorkflowEnv, OperatorTools):
    """Solve a task by calling operators one by one; each call that they make has a price.

    The arguments are those of `WorkflowEnv`.

    >>> import gymnasium as gym, aflowgym
    >>> env = gym.make("aflowgym/Operate-v0", kind="code")
    >>> observation, info = env.reset(seed=0)
    """

    _walk: Walk
    _lane: Lane
    _made: int  # operators that were called in this episode

    def begin(self, task: WorkflowTask) -> str:
        """The problem and its kind, and an empty state."""
        asked = super().begin(task)
        self._walk = Walk(self.backend, self.sandbox, OPERATORS, self._seed)
        self._lane = Lane(State(self._base), Account(BUDGET.calls, BUDGET.tokens), [])
        self._made = 0
        return asked

    def expert(self) -> Generator[Any, str, None]:
        """Call the operators that are good for this kind of task, and submit what they leave."""
        return players.operate(self)

    def novice(self, draw: random.Random) -> Generator[Any, str, None]:
        """Play the current episode as somebody who knows the tools, and not which are good."""
        return players.novice_operates(self, draw)

    def example_call(self, tool_name: str) -> dict[str, Any]:
        """A call that works on the state as it is; of another tool, if that has to come first."""
        for operator in OPERATORS.values():
            if self._called(operator) == tool_name:
                refused = not_ready(operator, self._lane.state)
                return refused.example if refused else {"name": tool_name, "arguments": {}}
        fields = self.tools[tool_name].required
        return {"name": tool_name, "arguments": {"value": 42} if fields else {}}

    def _called(self, operator: Operator) -> str:
        return tool_name(operator.name)

    @tool(terminal=True, aliases=ENDS)
    def answer(self) -> str:
        """Submit the solution as the operators left it, and end the episode."""
        if self._lane.state.solution is None:
            self._solution = None  # candidates among which nobody chose are no solution
        return self._submitted()

    def _operate(self, operator: Operator, copies: int) -> str:
        """Run one operator, or copies of it as a list, on the state."""
        state = self._lane.state
        refused = not_ready(operator, state)
        if refused is not None:
            self.reach(progress(None, checked=False))
            raise refused
        one = Op(operator.name)
        node = one if copies == 1 else ListOf((one,) * copies)
        path, before = str(self._made), self._walk.usage
        self._made += 1
        try:
            self._walk.node(node, self._lane, path, False)
            failure = ""
        except Failed as failed:
            failure = f"{operator.name} left nothing. {failed.record(path)}"
        after = self._walk.usage
        used = Usage(*(now - then for now, then in zip(after, before, strict=True)))
        wrote = not failure and "solution" in operator.writes and state.solution is not None
        self._left(state.solution if wrote else None, used)
        result = failure or "\n".join(self._shown(operator))
        return f"{usage_line(used)}\n{result}"

    def _shown(self, operator: Operator) -> list[str]:
        """What an operator left, for the agent: candidates, a verdict, or a solution."""
        state, lines = self._lane.state, []
        if state.candidates is not None:
            names = letters(len(state.candidates))
            pairs = zip(names, state.candidates, strict=True)
            return ["Candidates:", *(f"{name}: {each.solution}" for name, each in pairs)]
        if operator.is_check:
            lines = [f"Verdict: {'right' if state.verdict else 'wrong'}.", state.feedback or ""]
            lines = lines if state.feedback != NO_TESTS else lines[1:]
        if "solution" in operator.writes and state.solution is not None:
            tested = "" if operator.is_check else self._tested(state.solution)
            lines += [tested, solution_text(state.solution)]
        return [line for line in lines if line]

    def _tested(self, solution: str) -> str:
        return public_tests(self._base, solution, self.sandbox)
