"""The states that a solution can be in, numbered, for distributions over them.

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

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aflowgym.tasks.task import Kind

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
    """What each state is worth at the end, cost aside, [latent class, state].

    Args:
        near: What wrong answers add to the score, see `aflowgym.expectation.nearness`.
    """
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
