"""How near wrong answers come, as part of the score, by latent class and answer.

The verifier's progress of an answer depends on the task: how many words the typical mistake shares
with the gold, how many tests there are. So real answers are written for each task and judged by the
real verifier, and the mean over the tasks is taken.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from aflowgym import score
from aflowgym.backends.presets import LEVELS, Skills
from aflowgym.backends.simulated import SimulatedBackend
from aflowgym.execution.grading import grade
from aflowgym.expectation.model import ANSWERS, LOOSE, ODD, RIGHT, TYPICAL, Array
from aflowgym.tasks.loading import load_tasks
from aflowgym.tasks.task import Kind, WorkflowTask
from toolgym.errors import ConfigurationError
from toolgym.rewards import Ledger, RewardConfig


def nearness(
    kind: Kind, skills: Skills, rewards: RewardConfig, tasks: Sequence[WorkflowTask] | None = None
) -> Array:
    """What the progress of each answer adds to the score, [latent class, answer and failure].

    Raises:
        ConfigurationError: There are no tasks, or one is of another kind.
    """
    if tasks is None:
        return _in_score(_bundled(kind), skills, kind, rewards)
    if not tasks or any(task.kind != kind for task in tasks):
        raise ConfigurationError(f"tasks must be {kind} tasks, one or more.")
    return _in_score(_progress(tasks), skills, kind, rewards)


@functools.cache
def _bundled(kind: Kind) -> Array:
    return _progress([task for task in load_tasks("bundled", "train") if task.kind == kind])


def _progress(tasks: Sequence[WorkflowTask]) -> Array:
    """The progress of wrong answers, [task, column]."""
    backend = SimulatedBackend()
    rows = []
    for task in tasks:
        world = backend.world(task)
        answers = [world.loose, world.typical(False), world.typical(True)]
        answers += [world.odd(0, False), world.odd(0, True)]
        verdicts = [grade(task, world.said(answer), backend.sandbox) for answer in answers]
        rows.append([score.progress(verdict) for verdict in verdicts])
    return np.array(rows)


def _in_score(reached: Array, skills: Skills, kind: Kind, rewards: RewardConfig) -> Array:
    means = [np.mean([_binned(each, rewards) for each in column]) for column in reached.T]
    cases = [case for _ in range(LEVELS) for case in skills.latent(kind)]
    table = np.zeros((len(cases), len(ANSWERS) + 1))
    for row, case in zip(table, cases, strict=True):
        row[LOOSE] = means[0]
        row[TYPICAL] = means[1 + case.revealed]
        row[list(ODD)] = means[3:]
    table[:, RIGHT] = 0.0
    table[:, -1] = _binned(score.progress(None), rewards)
    return rewards.partial * table


def _binned(reached: float, rewards: RewardConfig) -> float:
    ledger = Ledger(rewards)
    ledger.reach(reached)
    return ledger.progress
