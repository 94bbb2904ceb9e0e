"""Evaluation of a workflow by seeded runs with the simulated backend.

`worth` runs a workflow on tasks and returns the fraction of correct solutions and the mean score,
each with its standard error and 95% interval. `REFERENCE_WORKFLOWS` contains good, medium and bad
workflows for each kind of task, for comparison. None of these workflows is known to be optimal.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import stdev
from typing import Any, Final, NamedTuple

from aflowgym.backends.simulated import Preset, SimulatedBackend, preset_of
from aflowgym.dsl import parse
from aflowgym.dsl.nodes import Node
from aflowgym.execution.interpreter import execute, grade
from aflowgym.score import episode_score, progress
from aflowgym.tasks.loading import tasks_of
from aflowgym.tasks.task import Kind, WorkflowTask
from toolgym.errors import ConfigurationError
from toolgym.intervals import LEAST_SEEDS, average, wilson_interval
from toolgym.rewards import RewardConfig
from toolgym.tasks import TaskSet

REFERENCE_WORKFLOWS: Final[Mapping[Kind, Mapping[str, str]]] = {
    "math": {
        "ten programs": "[Programmer * 5, Programmer * 5] -> ScEnsemble",
        "five programs": "[Programmer * 5] -> ScEnsemble",
        "program": "Programmer",
        "five answers": "[AnswerGenerate * 5] -> ScEnsemble",
        "program, reviewed": "Custom -> Programmer -> Review ? Revise : done",
        "answer": "AnswerGenerate",
        "custom": "Custom",
    },
    "code": {
        "tested": "CustomCodeGenerate -> Test * 3",
        "two programs, tested": "[CustomCodeGenerate * 2] -> ScEnsemble -> Test",
        "program": "CustomCodeGenerate",
        "program, reviewed": "Programmer -> Review ? Revise : done",
        "answer": "AnswerGenerate",
        "custom": "Custom",
    },
    "qa": {
        "reviewed": "AnswerGenerate -> (Review -> Revise) * 3 -> Format",
        "formatted": "AnswerGenerate -> Format",
        "five answers": "[AnswerGenerate * 5] -> ScEnsemble",
        "answer": "AnswerGenerate",
        "custom": "Custom",
        "program": "Programmer",
    },
}
"""Workflows for comparison, by kind of task and name.

They are ordered roughly from good to bad for the preset "teaching".
"""


class Estimate(NamedTuple):
    """A mean over several runs.

    Attributes:
        value: The mean.
        error: Its standard error.
        low: Lower end of the 95% interval.
        high: Upper end of the 95% interval.
    """

    value: float
    error: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


class Worth(NamedTuple):
    """The results of many runs of one workflow.

    Attributes:
        success: Fraction of runs with a correct solution, with a Wilson score interval.
        score: Score of an episode in which the workflow is run once and its solution is submitted.
        calls: Mean number of model calls.
        runs: Number of runs.
    """

    success: Estimate
    score: Estimate
    calls: float
    runs: int


def worth(
    workflow: Node | str,
    tasks: str | Path | TaskSet[WorkflowTask] | Sequence[WorkflowTask] = "bundled",
    kind: Kind | None = None,
    *,
    n: int = 3000,
    seed: int = 0,
    split: str = "train",
    preset: str | Preset = "teaching",
    rewards: RewardConfig | dict[str, Any] | None = None,
) -> Worth:
    """Run a workflow `n` times with the simulated backend, cycling through the tasks.

    If two workflows run with the same seed and tasks, the steps that they have in common get the
    same random draws. Therefore the difference between two such results has a smaller error than
    each of the results.

    Args:
        workflow: A parsed workflow, or its text.
        tasks: A sequence of tasks, or a data set that `aflowgym.load_tasks` accepts.
        kind: "math", "code" or "qa" to select the tasks of one kind from a data set. None means all
            kinds.
        n: Number of runs.
        seed: Seed of the draws.
        split: The split of a data set.
        preset: The skills of the operators.
        rewards: The weights of the score.

    Raises:
        ConfigurationError: If the workflow cannot run on a task, there are no tasks, or `n` is less
            than 3.

    >>> worth("Custom", kind="math", preset="paper", n=500).calls
    1.0
    """
    if n < LEAST_SEEDS:
        raise ConfigurationError(f"n must be {LEAST_SEEDS} or more, got {n}.")
    given = TaskSet(tasks) if isinstance(tasks, list | tuple) else tasks
    chosen = tasks_of(given, split, kind)
    trees = {each: _tree(workflow, each) for each in sorted({task.kind for task in chosen})}
    backend, weights = SimulatedBackend(preset_of(preset)), RewardConfig.of(rewards)
    draw = random.Random(seed)
    right, calls, scores = 0, 0, []
    for place in range(n):
        task = chosen[place % len(chosen)]
        result = execute(trees[task.kind], task, backend, seed=draw.getrandbits(31))
        verdict = grade(task, result.solution, backend.sandbox)
        reached, correct = progress(verdict if result.ok else None), bool(verdict.correct)
        used = result.usage.calls
        scores.append(episode_score(weights, used, reached, correct))
        right, calls = right + correct, calls + used
    share, score = right / n, average(scores)
    return Worth(
        Estimate(share, (share * (1 - share) / n) ** 0.5, *wilson_interval(right, n)),
        Estimate(score.value, stdev(scores) / n**0.5, score.low, score.high),
        calls / n,
        n,
    )


def _tree(workflow: Node | str, kind: Kind) -> Node:
    parsed = parse(str(workflow), kind=kind)
    if parsed.workflow is None:
        raise ConfigurationError(
            f"{str(workflow)!r} is not a workflow for {kind} tasks: {parsed.errors[0]}"
        )
    return parsed.workflow
