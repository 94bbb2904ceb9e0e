"""The exact worth of a workflow with the simulated backend.

Nothing is sampled. A workflow is a finite chain of draws whose probabilities are known
(`aflowgym.backends.presets`), so the joint distribution of its outcome and the number of its calls
can be computed, and from it whatever an episode is scored by. How near a wrong answer comes depends
on the tasks, so their mean is taken: over the bundled `train` tasks, unless others are given.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from aflowgym import score
from aflowgym.backends.presets import Preset, preset_of
from aflowgym.dsl import parse
from aflowgym.dsl.checking import calls
from aflowgym.dsl.nodes import Node
from aflowgym.expectation.model import RIGHT, Array, Model, answers_of, nearness, start
from aflowgym.expectation.walking import Walker, closed_only
from aflowgym.operators.catalogue import OPERATORS, Registry
from aflowgym.tasks.task import Kind, WorkflowTask
from toolgym.errors import ConfigurationError
from toolgym.rewards import RewardConfig

DEFAULT_REWARDS = RewardConfig.of(None)


class Expectation(NamedTuple):
    """Means over tasks and draws.

    Attributes:
        accuracy: The probability that the solution is right.
        calls: How many calls of the model one run takes.
        reward: The score of the episode that submits this workflow, once, and answers.
    """

    accuracy: float
    calls: float
    reward: float


def expected(
    workflow: Node | str,
    kind: Kind,
    preset: str | Preset = "teaching",
    *,
    tasks: Sequence[WorkflowTask] | None = None,
    rewards: RewardConfig = DEFAULT_REWARDS,
    operators: Registry = OPERATORS,
) -> Expectation:
    """Accuracy, calls and reward of a workflow with the simulated backend.

    Args:
        workflow: The tree of a text that parsed, or such a text.
        kind: The kind of the tasks.
        preset: The skills of the operators.
        tasks: The tasks, of this kind, over which the mean is taken; None for the bundled ones.
        rewards: The weights of the score.
        operators: The declarations of the operators.

    Raises:
        ConfigurationError: The text has errors, or the preset says nothing of an operator.

    >>> expected("Custom", "math", "paper").calls
    1.0
    """
    skills = preset_of(preset)
    joint = outcomes(_tree(workflow, kind, operators), kind, skills, operators)
    near = nearness(kind, skills.skills(kind), rewards, tasks)
    reward = float((joint.sum(axis=2) * near).sum())
    for made in range(joint.shape[2]):
        mass = joint[:, :, made].sum(axis=0)
        right = score.episode_score(rewards, made, 1.0, correct=True)
        wrong = score.episode_score(rewards, made, 0.0, correct=False)
        reward += right * mass[RIGHT] + wrong * (mass.sum() - mass[RIGHT])
    mean = (joint.sum(axis=(0, 1)) * np.arange(joint.shape[2])).sum()
    return Expectation(_round(joint[:, RIGHT].sum()), _round(mean), _round(reward))


def outcomes(
    workflow: Node, kind: Kind, preset: str | Preset, operators: Registry = OPERATORS
) -> Array:
    """The joint distribution of what a workflow comes to.

    Returns:
        Probabilities [latent class, answer, calls]; the answers are those of
        `aflowgym.expectation.model`, and failure last.
    """
    size = 1 << calls(workflow, operators).most.bit_length()
    model = _model(preset_of(preset), kind, size)
    before = start(len(model.weights), model.points)
    walked = closed_only(Walker(model, operators).walk(workflow, before).on)
    ends = answers_of(walked[:, :, 0])  # [class, point, answer]
    joint = np.fft.irfft(ends.conj(), size, axis=1)
    return np.asarray(np.moveaxis(joint, 1, 2) * model.weights[:, None, None])


@functools.lru_cache(maxsize=32)
def _model(preset: Preset, kind: Kind, size: int) -> Model:
    """A model at half of the roots of unity; the other half are their mirror images."""
    points = np.exp(2j * np.pi * np.arange(size // 2 + 1) / size)
    return Model(preset, kind, points)


def _tree(workflow: Node | str, kind: Kind, operators: Registry) -> Node:
    if not isinstance(workflow, str):
        return workflow
    parsed = parse(workflow, kind=kind, operators=operators)
    if parsed.workflow is None:
        raise ConfigurationError(f"there is no workflow in {workflow!r}: {parsed.errors[0]}")
    return parsed.workflow


def _round(number: float) -> float:
    """A number without the noise of the transform."""
    return round(float(number), 12) + 0.0
