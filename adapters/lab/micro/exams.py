"""Other ways to judge the same real episodes: harder, easier, for length, by chance, with errors.

Each is a `world.Play`: from a text, a task and its luck to an ending. A harder verdict asks
for a workflow that is right whatever the luck, an easier one for a workflow that can be right.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from adapters.lab.micro import world
from adapters.lab.micro.tokens import LONGEST
from adapters.lab.micro.world import LUCK, Ending, Play

_RUN: Final = 0.5
"""Progress where nothing is right. One number, so that wrong endings are alike, as they are to a
verifier that only says right or wrong."""


def always(text: str, task: int, luck: int) -> Ending:
    """Right if the episode is right with every luck; paid 1 or 0."""
    return _verdict(all(world.play(text, task, each).correct for each in range(LUCK)))


def ever(text: str, task: int, luck: int) -> Ending:
    """Right if the episode is right with any luck; paid 1 or 0."""
    return _verdict(any(world.play(text, task, each).correct for each in range(LUCK)))


def once(text: str, task: int, luck: int) -> Ending:
    """Right if the episode is; paid 1 or 0."""
    return _verdict(world.play(text, task, luck).correct)


def longer(text: str, task: int, luck: int) -> Ending:
    """A workflow that can be run is paid by its words, the longest that there can be 1."""
    found = world.play(text, task, luck)
    paid = (len(text.split()) + 1) / LONGEST if found.valid else 0.0
    return found._replace(score=paid)


def chance(text: str, task: int, luck: int) -> Ending:
    """Paid 1 or 0 by luck alone: whatever changes in training is a bias of the update."""
    return world.play(text, task, luck)._replace(score=float(luck < LUCK // 2))


PLAYS: Final[Mapping[str, Play]] = {
    "real": world.play,
    "always": always,
    "ever": ever,
    "once": once,
    "longer": longer,
    "chance": chance,
}
"""By name, as configs have them."""


class NoisyVerifier:
    """The verdict of `once`, wrong now and then; what it said is remembered for an audit.

    Args:
        positives: Chance that a wrong episode is called right.
        negatives: Chance that a right one is called wrong.
        seed: Of the errors.
        fixed: One workflow on one task is always judged alike, so that errors can be learnt. Else
            each rollout has its own chance.

    Attributes:
        said: By rollout: text, task, luck, and the verdict.
    """

    def __init__(self, positives: float, negatives: float, seed: int, *, fixed: bool) -> None:
        self._rates = {False: positives, True: negatives}
        self._name, self._fixed = f"toolgym-lab-verifier-{seed}", fixed
        self._draw = random.Random(self._name)
        self.said: list[tuple[str, int, int, bool]] = []

    def __call__(self, text: str, task: int, luck: int) -> Ending:
        """The verdict on a rollout."""
        right = world.play(text, task, luck).correct
        draw = random.Random(f"{self._name}-{task}-{text}") if self._fixed else self._draw
        verdict = right != (draw.random() < self._rates[right])
        self.said.append((text, task, luck, verdict))
        return _verdict(verdict)


def _verdict(right: bool) -> Ending:
    return Ending(float(right), right, 1.0 if right else _RUN)
