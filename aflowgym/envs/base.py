"""The base of both workflow environments: the task, the draws of an episode, the submission.

A seed gives a task and the draws with which its operators run, so that one seed is one episode on
every machine; a task that is asked for by its id alone has draws of its own (`toolgym.tasks
.seed_of`). All runs of an episode share their draws: the same workflow twice gives the same result
twice, and two workflows that begin alike differ only from where they differ. So nothing is gained
by trying one's luck again.

What is submitted was left by an operator. The text of the agent reaches the answer nowhere, unless
`free_answer=True` gives `answer` an argument, or `instructions=True` lets it tell a language model
what to say.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from aflowgym.backends import make_backend
from aflowgym.envs.family import WorkflowTaskFamily
from aflowgym.execution.errors import WORKFLOW_ERRORS
from aflowgym.execution.grading import grade
from aflowgym.execution.protocols import Backend, Sandbox
from aflowgym.execution.state import Budget
from aflowgym.execution.trace import Usage
from aflowgym.operators.catalogue import OPERATORS
from aflowgym.operators.declaration import Operator
from aflowgym.score import charge_calls, check_weights, progress
from aflowgym.tasks.loading import base_of, tasks_of
from aflowgym.tasks.task import KINDS, Kind, WorkflowTask
from toolgym.calls import ToolCall
from toolgym.env import ToolEnv
from toolgym.episode import Info
from toolgym.errors import ConfigurationError, EnvironmentFault, ToolError
from toolgym.rewards import RewardConfig
from toolgym.tasks import TaskSet, seed_of
from toolgym.tools import ToolSpec, read_spec

BUDGET: Final = Budget()
ENDS: Final = ("final_answer", "submit")
"""Other names of `answer`."""


class WorkflowEnv(ToolEnv[WorkflowTask]):
    """A task that operators solve; a subclass says how they are called.

    Args:
        dataset: "bundled", "tiny", a file, a folder, rows, or a `TaskSet`; see
            `aflowgym.load_tasks`.
        split: "train", "dev", "test", or what else there is; "dev-families" and "dev-shapes" are
            those tasks of "dev" that are new to "train" in this respect.
        kind: "math", "code" or "qa" for tasks of one kind; None for all.
        backend: Who answers the operators: "simulated" (the preset "teaching"),
            "simulated:paper", "replay:FILE", "openai:MODEL", "transformers:FOLDER" (a dict has
            options beside such a name), or a backend of your own.
        sandbox: Where programs run; None takes the backend's own, and for a backend that was named
            and brings none, that of the process (`aflowgym.sandbox.default_sandbox`).
        free_answer: `answer` takes a value. Then the best policy is to run no operator.
        step_limit: Calls that an episode allows; `answer` is free.
        parsing: "lenient" or "strict"; see `toolgym.ToolEnv`.
        rewards: Weights of the score; see `toolgym.RewardConfig`.
        render_mode: None or "ansi".

    Raises:
        ConfigurationError: There is no such data set, split, backend or sandbox, or an argument is
            out of range.
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
        free_answer: bool = False,
        step_limit: int = 15,
        parsing: Literal["lenient", "strict"] = "lenient",
        rewards: RewardConfig | dict[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        tasks = tasks_of(dataset, split, kind)
        super().__init__(
            tasks, step_limit=step_limit, parsing=parsing, rewards=rewards, render_mode=render_mode
        )
        check_weights(self.reward_config, BUDGET.calls)
        self.backend = _backend(backend)
        self.waits = bool(getattr(self.backend, "waits", False))
        self.sandbox = _sandbox(self.backend, sandbox, named=self.backend is not backend)
        if free_answer:
            self.tools = {**self.tools, "answer": FREE_ANSWER}
        self._chance: int | None = None
        self._base: WorkflowTask
        self._seed = 0
        self._solution: str | None = None
        self._right = False

    def reset(  # type: ignore[override]
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, Info]:
        """As `ToolEnv.reset`; the seed is that of the operators' draws too."""
        named = (options or {}).get("task_id")
        own = None if named is None else seed_of(str(named))
        self._chance = own if seed is None else seed
        return super().reset(seed=seed, options=options)

    def begin(self, task: WorkflowTask) -> str:
        """The problem and its kind; passages are for the operators, and only counted here."""
        drawn = self._chance
        self._seed = int(self.np_random.integers(2**31)) if drawn is None else drawn
        self._base = base_of(task)
        self._solution, self._right = None, False
        passages = len(task.context)
        read = f" with {passages} passages, which every operator reads" if passages else ""
        return f"{task.question}\nKind: {task.kind}{read}."

    def second_hint(self, call: ToolCall, error: ToolError) -> str:
        """The operators that run on this kind of task, with their inputs and outputs."""
        if error.code not in WORKFLOW_ERRORS:
            return super().second_hint(call, error)
        kind = self.task.kind
        lines = [
            f"{self._called(each)}: needs {', '.join(each.needs) or 'nothing'};"
            f" leaves {', '.join(each.writes)}"
            for each in OPERATORS.values()
            if kind in (each.kinds or KINDS)
        ]
        return "\n".join([f"The operators for {kind} tasks, with inputs and outputs:", *lines])

    def _called(self, operator: Operator) -> str:
        """The name by which the agent calls an operator."""
        return operator.name

    def _left(self, solution: str | None, usage: Usage) -> None:
        """Take over what a run left, charge its calls and take note of how far it came.

        A run that left nothing leaves what was there.
        """
        charge_calls(self.episode.ledger, usage.calls)
        price = getattr(self.backend, "dollars", None)
        self.episode.use_models(*usage, dollars=price(usage) if price else None)
        if solution is None:
            self.reach(progress(None))
            return
        verdict = grade(self._base, solution, self.sandbox)
        if verdict.correct is None:
            raise EnvironmentFault(
                f"the gold of task {self.task.id!r} cannot be read: {verdict.reason}.",
                "Leave the task out.",
            )
        self._solution, self._right = solution, verdict.correct
        self.reach(progress(verdict))

    def _submitted(self) -> str:
        """Submit what is there; with nothing there the episode ends all the same, wrongly."""
        if self._solution is None:
            return self.submit(False, "There was no solution to submit. The episode is over.")
        return self.submit(self._right)


def _free_answer() -> ToolSpec:
    def answer(self: WorkflowEnv, value: str | int | float) -> str:
        """Submit a value of your own as the answer and end the episode.

        Args:
            value: The answer; for a code task the program.
        """
        self._left(str(value), Usage())
        return self._submitted()

    # The annotations are texts, and the names in them those of this module.
    return read_spec(answer, terminal=True, aliases=ENDS)


FREE_ANSWER: Final = _free_answer()


@functools.lru_cache(maxsize=16)
def _simulated_backend(name: str) -> Backend:
    """One simulated backend for every copy of an environment: it remembers, and has no state."""
    return make_backend(name)


def _backend(backend: str | Mapping[str, Any] | Backend) -> Backend:
    if isinstance(backend, str) and backend.partition(":")[0] == "simulated":
        return _simulated_backend(backend)
    return make_backend(backend)


def _sandbox(backend: Backend, sandbox: Sandbox | None, *, named: bool) -> Sandbox:
    chosen = sandbox or backend.sandbox
    if chosen is None and named:
        from aflowgym.sandbox import default_sandbox

        return default_sandbox()
    if chosen is None:
        raise ConfigurationError(
            "the backend brings no sandbox, and some operators and all code tasks run programs:"
            " pass one as sandbox=, or take the simulated backend."
        )
    return chosen
