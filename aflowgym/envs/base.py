"""The base of both workflow environments: the task, the runs of an episode, the submission.

An episode has one `Interpreter`, with the seed that is passed to `reset`, or with a new seed if
none is given. Therefore the seed determines the replies of the simulated operators, and running a
workflow again returns the same solution. All workflows and operators of an episode share one budget
of calls and tokens.

The submitted solution is always the output of an operator. Text that the agent writes never becomes
the answer, unless `instructions=True` allows the agent to give instructions to a language model.

The observation after a run contains the usage, the results of the public tests, the verdict of the
last check, and the solution after a line `Solution:`. The observation depends on neither the gold
answer nor the hidden tests.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from aflowgym.answers.answer import Verdict
from aflowgym.answers.code import passes
from aflowgym.backends import make_backend
from aflowgym.dsl import Parsed, parse
from aflowgym.envs.family import WorkflowTaskFamily
from aflowgym.execution.errors import WORKFLOW_ERRORS
from aflowgym.execution.interpreter import Budget, Interpreter, Result, grade
from aflowgym.operators import OPERATORS, Operator, Operators
from aflowgym.operators.context import Backend, Sandbox, job_of
from aflowgym.operators.replies import program_in
from aflowgym.operators.trace import Usage
from aflowgym.sandbox import default_sandbox
from aflowgym.score import charge_calls, check_weights, progress
from aflowgym.tasks.loading import tasks_of
from aflowgym.tasks.task import KINDS, Kind, WorkflowTask
from toolgym.calls import ToolCall
from toolgym.env import ToolEnv
from toolgym.episode import Info, without_notice
from toolgym.errors import ConfigurationError, EnvironmentFault, ToolError
from toolgym.rewards import RewardConfig
from toolgym.tasks import TaskSet
from toolgym.tools import ToolSpec

SOLUTION: Final = "Solution:"
_MOST_CHARS: Final = 4000


def usage_line(usage: Usage) -> str:
    """Return a line that reports the usage of a run.

    The line reports the number of model calls, not the number of tool calls of the agent.

    >>> usage_line(Usage(1, 100, 60))
    'Took 1 call of the model, 160 tokens.'
    """
    return f"Took {usage.calls} call{'s' * (usage.calls != 1)} of the model, {usage.tokens} tokens."


def solution_text(solution: str) -> str:
    """Return a solution in the form in which it is shown to the agent.

    A very long solution is truncated in the middle.
    """
    if len(solution) > _MOST_CHARS:
        half = _MOST_CHARS // 2
        left_out = len(solution) - 2 * half
        solution = f"{solution[:half]}\n[... {left_out} characters ...]\n{solution[-half:]}"
    return f"{SOLUTION}\n{solution}"


def solution_in(observation: str) -> str | None:
    """Return the solution that an observation shows, or None if it shows none.

    >>> solution_in("Took 1 call of the model, 9 tokens.\\nSolution:\\nAnswer: 12\\n(3 calls left)")
    'Answer: 12'
    """
    _, mark, text = f"\n{observation}".partition(f"\n{SOLUTION}\n")
    return without_notice(text) if mark else None


def public_tests(task: WorkflowTask, solution: str, sandbox: Sandbox) -> str:
    """Return one line with the number of public tests that pass, and the first test that fails.

    The line is empty if there are no public tests.
    """
    tests = task.public_tests
    if not tests:
        return ""
    program = program_in(solution, task.entry_point)
    if program is None:
        return f"Public tests: no program defines {task.entry_point}()."
    outcomes = sandbox.run(job_of(task, program, tests))
    failed = [(t, o) for t, o in zip(tests, outcomes, strict=True) if not passes(t, o)]
    count = f"Public tests: {len(tests) - len(failed)} of {len(tests)} pass."
    if not failed:
        return count
    test, outcome = failed[0]
    call = f"{test.function}{test.arguments}".replace(",)", ")")
    return f"{count} {call} {outcome}, not {test.expected}."


def run_text(task: WorkflowTask, parsed: Parsed, result: Result, sandbox: Sandbox) -> str:
    """Return the result of a workflow as an observation for the agent."""
    warned = any(record.severity == "warning" for record in parsed.diagnostics)
    lines = [f"Read as: {parsed.workflow}"] if warned else []
    lines += [usage_line(result.usage), *map(str, result.warnings)]
    if result.failure is not None:
        kept = "No solution." if result.solution is None else "The run ended before its end."
        lines.append(f"{kept} {result.failure}")
    if result.solution is None:
        return "\n".join(lines)
    if tested := public_tests(task, result.solution, sandbox):
        lines.append(tested)
    if result.verdict is not None:
        lines.append(f"Last check: {'passes' if result.verdict else 'fails'}.")
    return "\n".join([*lines, solution_text(result.solution)])


BUDGET: Final = Budget()
ENDS: Final = ("final_answer", "submit")
"""Aliases of the tool `answer`."""


class WorkflowEnv(ToolEnv[WorkflowTask]):
    """The base class of environments whose tasks are solved by operators.

    Args:
        dataset: "bundled", a file, a folder, rows, or a `TaskSet`. See `aflowgym.load_tasks`.
        split: "train", "dev", "test", or another split of the data set. "dev-families" and
            "dev-shapes" contain the tasks of "dev" whose family or shape does not occur in "train".
        kind: "math", "code" or "qa" to select the tasks of one kind. None means all kinds.
        backend: The backend of the operators: "simulated" (the preset "teaching"),
            "simulated:paper", "replay:FILE", "openai:MODEL", "transformers:FOLDER", a dict with a
            name and options, or a backend object.
        sandbox: The sandbox that runs programs. If it is None, the sandbox of the backend is used,
            or else the default sandbox of this process (`aflowgym.sandbox.default_sandbox`).
        operators: `Operator` objects, names of AFlow's operators, or strings of the form
            "module:attribute". If it is None, AFlow's ten operators are used.
        step_limit: Maximum number of calls in an episode. `answer` does not count.
        parsing: "lenient" or "strict". See `toolgym.ToolEnv`.
        rewards: Weights of the score. See `toolgym.RewardConfig`.
        render_mode: None or "ansi".

    Raises:
        ConfigurationError: If there is no such data set, split, backend, sandbox or operator, or an
            argument is out of range.
    """

    family: ClassVar[WorkflowTaskFamily] = WorkflowTaskFamily()

    def __init__(
        self,
        dataset: str | Path | TaskSet[WorkflowTask] = "bundled",
        split: str = "train",
        *,
        kind: Kind | None = None,
        backend: str | Mapping[str, Any] | Backend = "simulated",
        sandbox: Sandbox | None = None,
        operators: Iterable[Operator | str] | None = None,
        step_limit: int = 15,
        parsing: Literal["lenient", "strict"] = "lenient",
        rewards: RewardConfig | dict[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            tasks_of(dataset, split, kind),
            step_limit=step_limit,
            parsing=parsing,
            rewards=rewards,
            render_mode=render_mode,
        )
        check_weights(self.reward_config, BUDGET.calls)
        self.operators = OPERATORS.of(operators)
        example_of(self.operators)  # raises an error if they cannot form a workflow
        self.tools = self.make_tools()
        is_simulated = isinstance(backend, str) and backend.startswith("simulated")
        self.backend = _simulated(str(backend)) if is_simulated else make_backend(backend)
        self.waits = bool(getattr(self.backend, "waits", False))
        self.sandbox = sandbox or self.backend.sandbox or default_sandbox()
        self.interpreter: Interpreter
        self._seed: int | None = None
        # The solution that `answer` would submit, and the verdict on it.
        self._judged: tuple[str, Verdict] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "tools"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.tools = self.make_tools()

    def make_tools(self) -> dict[str, ToolSpec]:
        """Return the tools for `operators`. A subclass overrides this method."""
        raise NotImplementedError

    @property
    def example(self) -> str:
        """A short workflow that runs on this kind of task."""
        return example_of(self.operators, self.task.kind)

    def reset(  # type: ignore[override]
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, Info]:
        """Begin an episode; see `ToolEnv.reset`.

        The operators use the same seed as the environment.
        """
        self._seed = seed
        return super().reset(seed=seed, options=options)

    def begin(self, task: WorkflowTask) -> str:
        """Return the problem, its kind, and the number of passages, but not the passages."""
        seed = int(self.np_random.integers(2**31)) if self._seed is None else self._seed
        self.interpreter = Interpreter(
            task,
            self.backend,
            seed=seed,
            budget=BUDGET,
            sandbox=self.sandbox,
            operators=self.operators,
        )
        self._judged = None
        passages = len(task.context)
        read = f" with {passages} passages, which every operator reads" if passages else ""
        return f"{task.question}\nKind: {task.kind}{read}."

    def second_hint(self, call: ToolCall, error: ToolError) -> str:
        """Return the operators that can run on this kind of task, with their inputs and outputs."""
        if error.code not in WORKFLOW_ERRORS:
            return super().second_hint(call, error)
        kind = self.task.kind
        lines = [
            f"{self.called(each)}: needs {', '.join(each.inputs) or 'nothing'};"
            f" leaves {', '.join(each.outputs)}"
            for each in self.operators.values()
            if kind in (each.kinds or KINDS)
        ]
        return "\n".join([f"The operators for {kind} tasks, with inputs and outputs:", *lines])

    def called(self, operator: Operator) -> str:
        """Return the name of the tool with which the agent calls an operator."""
        return operator.name

    def take(self, result: Result) -> None:
        """Charge the cost of the calls of a run, and check the solution if there is one."""
        charge_calls(self.episode.ledger, result.usage.calls)
        price = getattr(self.backend, "dollars", None)
        self.episode.use_models(*result.usage, dollars=price(result.usage) if price else None)
        solution = result.solution
        if solution is None:
            self.reach(progress(None))
            return
        if self._judged is None or self._judged[0] != solution:
            verdict = grade(self.task, solution, self.sandbox)
            if verdict.correct is None:
                raise EnvironmentFault(
                    f"the gold of task {self.task.id!r} cannot be read: {verdict.reason}.",
                    "Exclude the task.",
                )
            self._judged = solution, verdict
        self.reach(progress(self._judged[1]))

    def submit_solution(self) -> str:
        """Submit the last solution and end the episode.

        An episode without a solution counts as a wrong answer.
        """
        if self._judged is None:
            return self.submit(False, "There was no solution to submit. The episode is over.")
        return self.submit(bool(self._judged[1].correct))


@functools.lru_cache(maxsize=256)
def example_of(operators: Operators, kind: Kind | None = None) -> str:
    """Return a short workflow of these operators that can run on tasks of one kind.

    Raises:
        ConfigurationError: If no operator can produce a solution from the problem alone.
    """
    texts: list[str] = ["Custom -> Review ? Revise : done", *operators]
    for text in texts:
        if parse(text, kind=kind, operators=operators).workflow is not None:
            return text
    if kind is not None:
        return str(example_of(operators))
    raise ConfigurationError(
        "operators: none of them makes a solution from the problem alone; add one without inputs,"
        ' such as "Custom".'
    )


@functools.lru_cache(maxsize=16)
def _simulated(name: str) -> Backend:
    """Return the simulated backend that all copies of an environment share, to save memory."""
    return make_backend(name)
