"""`aflowgym/Compose-v0`: the agent writes workflows of operators in the language of `aflowgym.dsl`.

In an episode with several turns, `run_workflow` runs a workflow and shows its solution, and
`answer` submits the last solution. A message that consists only of a workflow is interpreted as a
call of `run_workflow`, which is recorded as the repair `bare_argument`.

With `one_shot=True`, the agent's only message is the workflow. That workflow is run once, and its
solution is submitted. In this mode, the agent makes no tool calls: the tool is hidden, and the
system prompt describes the language.

Text that cannot be parsed as a workflow, or has a type error, is not run. The error reports the
position, what was expected there, and a corrected workflow.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Generator
from dataclasses import replace
from typing import Annotated, Any, Final

from aflowgym.dsl import Parsed, parse
from aflowgym.dsl.nodes import operators_of
from aflowgym.envs import players
from aflowgym.envs.base import BUDGET, ENDS, WorkflowEnv, example_of, run_text
from aflowgym.execution.errors import instruction_refused, invalid_workflow, parses, run_call
from aflowgym.operators import OPERATORS, Operator, Operators
from aflowgym.remembering import remembered
from aflowgym.score import progress
from aflowgym.tasks.task import Kind
from toolgym.errors import ToolError
from toolgym.tools import Code, ToolSpec, tool, tools_of

FORMS: Final = {
    "": "`A -> B` is a chain: B works on what A left.",
    "ScEnsemble": "`[A, B] -> ScEnsemble` or `[A * 3] -> ScEnsemble` makes several solutions and"
    " chooses one.",
    "Review Revise": "`Review ? Revise : done` is a check with a repair if it fails,"
    " `(Review -> Revise) * 3` a loop that ends when the check passes.",
}
"""Sentences about the language in the prompt, by the operators that they mention."""
MARKED: Final = frozenset({"N-FENCE", "N-LABEL", "N-TAG"})
"""Codes of notes on a workflow in a fence, after a label or in a tag."""
_MARKS: Final = re.compile(r"(?:```[\w-]*+|\W|dsl|workflow)*+", re.IGNORECASE)
ONE_SHOT: Final = (
    "Your whole message is a workflow of operators, such as `{example}`. It is run once, and the"
    " solution it leaves is your answer."
)


class ComposeEnv(WorkflowEnv):
    """Compose a workflow of operators that solves a task; each call that it makes has a price.

    The other arguments are documented in `WorkflowEnv`.

    Args:
        one_shot: Whether the agent writes only one message, which contains the workflow and no tool
            call. Its solution is submitted.
        instructions: Whether workflows can give instructions to operators, as in `Custom("be
            brief")`. An instruction lets the agent tell a language model the answer.
        step_limit: Maximum number of calls in an episode. `answer` does not count. This argument
            has no effect in one-shot mode.

    >>> import gymnasium as gym, aflowgym
    >>> env = gym.make("aflowgym/Compose-v0", kind="math", one_shot=True)
    >>> observation, info = env.reset(seed=0)
    >>> env.step("Custom -> Programmer -> Review ? Revise : done")[2]
    True
    """

    def __init__(
        self,
        *args: Any,
        one_shot: bool = False,
        instructions: bool = False,
        step_limit: int = 8,
        **options: Any,
    ) -> None:
        self.one_shot, self.instructions = one_shot, instructions
        super().__init__(*args, step_limit=step_limit, **options)

    def expert(self) -> Generator[Any, str, None]:
        """Run a good workflow for this kind of task, and submit its solution."""
        return players.compose(self, players.good_workflows(self), one_shot=self.one_shot)

    def novice(self, draw: random.Random) -> Generator[Any, str, None]:
        """Run a typical workflow, good or bad, and submit its solution."""
        return players.compose(self, players.typical_workflow(self, draw), one_shot=self.one_shot)

    def example_call(self, tool_name: str) -> dict[str, Any]:
        """Return a call that works in this episode; in one-shot mode, return {}."""
        if self.one_shot:
            return {}
        return run_call(self.example) if tool_name == "run_workflow" else {"name": tool_name}

    def budget_line(self) -> str:
        """Return the sentence that states the agent's budget."""
        return "Write one workflow." if self.one_shot else super().budget_line()

    def no_call(self, text: str) -> ToolError:
        """Return the error for a message without a tool call."""
        return self._invalid(self._read(text)[0]) if self.one_shot else super().no_call(text)

    @tool
    def run_workflow(self, dsl: Annotated[str, Code("workflow")]) -> str:
        """Run a workflow of operators on the task and show the solution it leaves.

        Args:
            dsl: The workflow, such as `Custom -> Review ? Revise : done`.
        """
        parsed, is_instructed = self._read(dsl)
        workflow = parsed.workflow
        if workflow is None:
            self.reach(progress(None, parsed=parses(parsed), checked=False))
            raise self._invalid(parsed)
        if is_instructed and not self.instructions:
            self.reach(progress(None, checked=False))
            raise self._without_call(instruction_refused(workflow))
        result = self.interpreter.run(workflow)
        self.take(result)
        return run_text(self.task, parsed, result, self.sandbox)

    @tool(terminal=True, aliases=ENDS)
    def answer(self) -> str:
        """Submit the solution that a workflow last left, and end the episode."""
        return self.submit_solution()

    def make_tools(self) -> dict[str, ToolSpec]:
        """Return the tools. The description of `run_workflow` lists the operators."""
        made = compose_tools(self.operators, self.one_shot)
        return made if self.one_shot else {**tools_of(type(self)), **made}

    def _read(self, dsl: str) -> tuple[Parsed, bool]:
        return read(dsl, self.task.kind, self.operators)

    def _invalid(self, parsed: Parsed) -> ToolError:
        return self._without_call(invalid_workflow(parsed, self.example))

    def _without_call(self, error: ToolError) -> ToolError:
        """Return the error for a message without a call; in one-shot mode, with a workflow."""
        if not self.one_shot:
            return error
        hint = f"{error.hint}\nThis works: {error.example['arguments']['dsl']}".strip()
        return ToolError(error.code, error.message, hint)


@remembered(4096)
def read(dsl: str, kind: Kind | None, operators: Operators) -> tuple[Parsed, bool]:
    """Parse text, and return whether it contains instructions.

    The results are cached, because the episodes of a group often contain the same workflow.
    """
    parsed = parse(dsl, kind=kind, operators=operators)
    tree = parsed.workflow
    return parsed, tree is not None and any(each.instruction for each in operators_of(tree))


def bare_workflow(operators: Operators, one_shot: bool, text: str) -> dict[str, Any] | None:
    """Return the arguments of `run_workflow` for a message without a tool call, or None.

    The message must consist of a workflow, optionally after reasoning. In one-shot mode, the
    message can contain prose around a workflow that is in a tag, in a fence or after a label.
    """
    records = read(text, None, operators)[0]
    codes = {record.code for record in records.diagnostics}
    if not parses(records):
        return None
    if not one_shot:
        thoughts = [each.span[0] for each in records.diagnostics if each.code == "N-THINK"]
        spans = [each.span for each in records.diagnostics if each.code in MARKED]
        begin = max([begin for begin, _ in spans], default=0)
        end = min([end for _, end in spans], default=len(text))
        around = text[max(thoughts, default=0) : begin] + text[end:]
        if "N-COMMENT" in codes or not _MARKS.fullmatch(around):
            return None
    return {"dsl": text}


@functools.lru_cache(maxsize=64)
def compose_tools(operators: Operators, one_shot: bool) -> dict[str, ToolSpec]:
    """Return the tool `run_workflow` with a description that lists these operators.

    Args:
        operators: The operators.
        one_shot: Whether the tool is hidden and also submits the solution.
    """
    run = tools_of(ComposeEnv)["run_workflow"]
    method: Any = run.function
    forms = [text for names, text in FORMS.items() if operators.keys() >= {*names.split()}]
    forms.append(f"A workflow makes at most {BUDGET.calls} calls of the model; each has a price.")
    lines = [f"- {each.name} ({_calls_of(each)}): {each.summary}" for each in operators.values()]
    purpose = ONE_SHOT.format(example=example_of(operators)) if one_shot else run.description
    listed = "The operators, with the calls of the model that each makes:"
    description = "\n".join([purpose, "", " ".join(forms), "", listed, *lines])
    bare = functools.partial(bare_workflow, operators, one_shot)
    run = replace(run, description=description, bare=bare)

    def run_and_submit(env: ComposeEnv, dsl: str) -> str:
        text = method(env, dsl)
        return f"{env.submit_solution()}\n{text}"

    once = replace(run, terminal=True, hidden=True, function=run_and_submit)
    return {run.name: once if one_shot else run}


def _calls_of(operator: Operator) -> str:
    """Return the range of model calls of an operator, and its kinds of tasks if limited."""
    least, most = operator.calls
    only = "".join(f", {kind} tasks only" for kind in operator.kinds)
    return f"{least}{f' to {most}' * (most > least)}{only}"


ComposeEnv.tools = {**ComposeEnv.tools, **compose_tools(OPERATORS, False)}
