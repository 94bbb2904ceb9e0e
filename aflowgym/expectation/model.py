"""The states that a solution can be in, what the operators do to them, what they are worth.

| answer       | what it is                                                                    |
| ------------ | ----------------------------------------------------------------------------- |
| `R`, `W`     | right; right content in a loose form                                          |
| `M`          | the typical mistake of the task                                               |
| `U0`, `U1`   | a mistake of its own; of programs, one that the public tests find out is `U1` |
| `I0`, `I1`   | in a branch: the mistake of its own that the list started from                |

`I` is apart from `U` because branches that leave the solution as it was all hold the same mistake,
which counts as one answer when an ensemble counts. Whether the public tests find `M` out belongs to
the task, so it is a latent class, not a state. Beside its answer a state holds what the last check
said of it. Two more states: no solution yet, and failed.

A distribution is an array [latent class, point, batch, state]. A point is a value at which the
generating function of the number of calls is taken: a call multiplies by it. At 1 that gives
probabilities; at the roots of unity, the whole distribution of calls by a Fourier transform.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aflowgym import score
from aflowgym.backends.presets import GENERATORS, LEVELS, Preset, Skills
from aflowgym.backends.simulated import SimulatedBackend
from aflowgym.execution.grading import grade
from aflowgym.operators.catalogue import OPERATORS
from aflowgym.tasks.loading import load_tasks
from aflowgym.tasks.task import Kind, WorkflowTask
from toolgym.errors import ConfigurationError
from toolgym.rewards import Ledger, RewardConfig

Array = NDArray[Any]

ANSWERS: Final = ("R", "W", "M", "U0", "U1", "I0", "I1")
SAYS: Final = ("nothing", "right", "wrong")
RIGHT, LOOSE, TYPICAL, ODD, INHERITED = 0, 1, 2, (3, 4), (5, 6)
NOTHING, PASSED, BLAMED = range(3)
NONE: Final = len(ANSWERS) * len(SAYS)
FAILED: Final = NONE + 1
SIZE: Final = NONE + 2


def at(answer: int, says: int = NOTHING) -> int:
    """The number of a state."""
    return answer * len(SAYS) + says


#: Per answer, the states that hold it.
HOLDS: Final = tuple(slice(at(answer), at(answer) + len(SAYS)) for answer in range(len(ANSWERS)))


def said(says: int) -> Array:
    """1.0 for the states in which the last check said this."""
    mask = np.zeros(SIZE)
    mask[says:NONE:3] = 1.0
    return mask


PASSES: Final = said(PASSED)
"""The states after a check that passed."""


def start(levels: int, points: Array) -> Array:
    """The state before a workflow: nothing is there."""
    state = np.zeros((levels, len(points), 1, SIZE), points.dtype)
    state[..., NONE] = 1.0
    return state


def occurring(kind: Kind, loose: float, in_branches: bool) -> Array:
    """The numbers of the states that can have any mass.

    Args:
        kind: Of the tasks.
        loose: How often a right answer is in a loose form.
        in_branches: With the states that occur in branches only.
    """
    answers = [RIGHT, TYPICAL, ODD[1]]
    answers += [INHERITED[1]] if in_branches else []
    answers += [LOOSE] if loose else []
    if kind == "code":
        answers += [ODD[0], INHERITED[0]] if in_branches else [ODD[0]]
    held = sorted(at(answer, says) for answer in answers for says in range(len(SAYS)))
    return np.array([*held, NONE, FAILED])


def worth_at_end(near: Array) -> Array:
    """The worth of each state at the end, cost aside, [latent class, state]."""
    values = np.zeros((len(near), SIZE))
    for answer in range(len(ANSWERS)):
        values[:, HOLDS[answer]] = near[:, [answer]]
    values[:, HOLDS[RIGHT]] = 1.0
    values[:, FAILED] = near[:, -1]
    return values


def answers_of(states: Array) -> Array:
    """The mass of each answer, and of `FAILED` last: [..., 8]."""
    held = [states[..., each].sum(axis=-1) for each in HOLDS]
    return np.stack([*held, states[..., FAILED]], axis=-1)


# --- operators ------------------------------------------------------------------------------------
#
# One matrix each. Each function is the counterpart of one in `aflowgym.backends.simulated`, with
# the draw replaced by its probability. A latent class is a difficulty, and on `code` tasks also
# whether the public tests find the typical mistake out; given the class, all draws are independent.

_CONTENT: Final = (RIGHT, LOOSE)


class Model:
    """The matrices of a preset on one kind of task, [class, point, state, state].

    Attributes:
        weights: The probability of each latent class.
        typical_revealed: Per class, whether the public tests find the typical mistake out.
        loose: Per class, whether right content comes in a loose form.
    """

    def __init__(self, preset: Preset, kind: Kind, points: Array) -> None:
        self.preset, self.kind, self.points = preset, kind, points
        self.skills: Skills = preset.skills(kind)
        latent = self.skills.latent(kind)
        cases = [case for _ in range(LEVELS) for case in latent]
        self.weights = np.array([case.chance / LEVELS for case in cases])
        self.typical_revealed = np.array([case.revealed for case in cases])
        self.loose = np.array([case.loose for case in cases])
        self._level = np.repeat(np.arange(LEVELS), len(latent))
        self._matrix = functools.cache(self._made)

    def matrix(self, operator: str) -> Array:
        """The matrix of an operator that takes one solution."""
        return self._matrix(self.preset.acts(operator))

    def _made(self, acted: str) -> Array:
        matrix = self._generator(acted) if acted in GENERATORS else _MADE[acted](self)
        matrix[..., FAILED, :] = 0.0
        matrix[..., FAILED, FAILED] = 1.0
        return matrix

    def blank(self) -> Array:
        """A matrix of zeros."""
        return np.zeros((len(self.weights), len(self.points), SIZE, SIZE), self.points.dtype)

    def wrong(self) -> Array:
        """A wrong answer that is made anew, [answer]."""
        skills, spread = self.skills, np.zeros(len(ANSWERS))
        revealed = skills.reveal if self.kind == "code" else 1.0
        spread[TYPICAL] = skills.modal
        spread[list(ODD)] = (1 - skills.modal) * np.array([1 - revealed, revealed])
        return spread

    def _fresh(self, operator: str) -> Array:
        """What a generator writes if it takes nothing over, [class, answer]."""
        if operator == "CustomCodeGenerate" and self.kind != "code":
            odd = np.zeros((len(self.weights), len(ANSWERS)))
            odd[:, ODD[1]] = 1.0
            return odd
        right = np.array(self.skills.odds[operator])[self._level][:, None]
        content = self.content()
        if operator == "Programmer":
            content = np.zeros_like(content)
            content[:, RIGHT] = 1.0
        return np.asarray(right * content + (1 - right) * self.wrong())

    def content(self) -> Array:
        """The form in which right content is given, [class, answer]."""
        form = np.zeros((len(self.weights), len(ANSWERS)))
        form[:, RIGHT], form[:, LOOSE] = ~self.loose, self.loose
        return form

    def _generator(self, operator: str) -> Array:
        """The draws of `simulated._generate`."""
        program = operator == "CustomCodeGenerate" and self.kind != "code"
        anchor = 0.0 if program else self.skills.anchor
        fresh, matrix = self._fresh(operator)[:, None, :], self.blank()
        to = [at(answer) for answer in range(len(ANSWERS))]
        matrix[..., NONE, to] = fresh
        for answer in range(len(ANSWERS)):
            for says in range(len(SAYS)):
                taken = 0.0 if says == BLAMED else anchor
                matrix[..., at(answer, says), to] = (1 - taken) * fresh
                matrix[..., at(answer, says), at(answer)] += taken
        z = self.points[:, None, None]
        if operator != "Programmer":
            return matrix * z
        tries, breaks = OPERATORS[operator].calls[1], self.skills.breaks
        matrix *= sum((1 - breaks) * breaks**k * z ** (k + 1) for k in range(tries))
        matrix[..., :FAILED, FAILED] = breaks**tries * z[..., 0] ** tries
        return matrix


def _review(model: Model) -> Array:
    skills, matrix = model.skills, model.blank()
    for answer in range(len(ANSWERS)):
        flagged = skills.false_alarm if answer in _CONTENT else skills.catch
        matrix[..., HOLDS[answer], at(answer, BLAMED)] = flagged
        matrix[..., HOLDS[answer], at(answer, PASSED)] = 1 - flagged
    return matrix * model.points[:, None, None]


def _revise(model: Model) -> Array:
    skills, matrix = model.skills, model.blank()
    to = [at(answer) for answer in range(len(ANSWERS))]
    chances = {
        NOTHING: (skills.blind_keep, skills.blind_fix),
        PASSED: (1.0, 0.0),
        BLAMED: (skills.keep, skills.fix),
    }
    for says, (keep, fix) in chances.items():
        for answer in range(len(ANSWERS)):
            here = at(answer, says)
            if answer in _CONTENT:
                matrix[..., here, to] = (1 - keep) * model.wrong()
                matrix[..., here, at(answer)] += keep
            else:
                matrix[..., here, to] = fix * model.content()[:, None]
                matrix[..., here, at(answer)] += 1 - fix
    return matrix * model.points[:, None, None]


def _format(model: Model) -> Array:
    matrix = model.blank()
    for answer in range(len(ANSWERS)):
        bare = model.skills.bare if answer == LOOSE else 0.0
        matrix[..., HOLDS[answer], at(RIGHT)] = bare
        matrix[..., HOLDS[answer], at(answer)] += 1 - bare
    return matrix * model.points[:, None, None]


def _test(model: Model) -> Array:
    """A program that the public tests find out is mended, or stays as it is after all tries."""
    repair, tries = model.skills.repair, OPERATORS["Test"].calls[1]
    z, matrix = model.points[:, None], model.blank()
    mended = sum(repair * (1 - repair) ** k * z ** (k + 1) for k in range(tries))
    for answer in range(len(ANSWERS)):
        reveals = np.full(len(model.weights), float(answer in (ODD[1], INHERITED[1])))
        if answer == TYPICAL:
            reveals = model.typical_revealed.astype(float)
        reveals = reveals[:, None, None]
        matrix[..., HOLDS[answer], at(answer, PASSED)] = 1 - reveals
        matrix[..., HOLDS[answer], at(RIGHT, PASSED)] += reveals * mended
        matrix[..., HOLDS[answer], at(answer, BLAMED)] = reveals * (1 - repair) ** tries * z**tries
    return matrix


_MADE: Final[Mapping[str, Callable[[Model], Array]]] = {
    "Review": _review,
    "Revise": _revise,
    "Format": _format,
    "Test": _test,
}


# --- what wrong answers are worth -----------------------------------------------------------------
#
# The verifier's progress of an answer depends on the task: how many words the typical mistake
# shares with the gold, how many tests there are. So real answers are written for each task and
# judged by the real verifier, and the mean over the tasks is taken.


def nearness(
    kind: Kind, skills: Skills, rewards: RewardConfig, tasks: Sequence[WorkflowTask] | None = None
) -> Array:
    """The part of the score that the progress of each answer adds, [class, answer and failure].

    Raises:
        ConfigurationError: There are no tasks, or one is of another kind.
    """
    if tasks is None:
        return _in_score(_bundled_progress(kind), skills, kind, rewards)
    if not tasks or any(task.kind != kind for task in tasks):
        raise ConfigurationError(f"tasks must be {kind} tasks, one or more.")
    return _in_score(_progress(tasks), skills, kind, rewards)


@functools.cache
def _bundled_progress(kind: Kind) -> Array:
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
    means = [np.mean([_bin(each, rewards) for each in column]) for column in reached.T]
    cases = [case for _ in range(LEVELS) for case in skills.latent(kind)]
    table = np.zeros((len(cases), len(ANSWERS) + 1))
    for row, case in zip(table, cases, strict=True):
        row[LOOSE] = means[0]
        row[TYPICAL] = means[1 + case.revealed]
        row[list(ODD)] = means[3:]
    table[:, RIGHT] = 0.0
    table[:, -1] = _bin(score.progress(None), rewards)
    return rewards.partial * table


def _bin(reached: float, rewards: RewardConfig) -> float:
    ledger = Ledger(rewards)
    ledger.reach(reached)
    return ledger.progress
