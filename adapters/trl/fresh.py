"""What was played since the last step, told once, however many generation batches it took.

With more steps of accumulation than a generation batch has micro-batches, a step learns from
several batches, and with fewer, several steps learn from one. The guards judge a step by all that
was played for it, and by nothing that an earlier step was judged by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from adapters.training.metric_names import METRICS
from adapters.trl.refill import Draw


class Fresh:
    """Draws that no step has told of yet.

    Args:
        numbers_of: The figures of some draws, all groups alike.
    """

    def __init__(self, numbers_of: Callable[[Sequence[Draw]], dict[str, float]]) -> None:
        self._numbers_of = numbers_of
        self._draws: list[Draw] = []
        self._sums: dict[str, float] = {}

    def add(self, draws: Sequence[Draw], sums: Mapping[str, float]) -> None:
        """Note a generation batch.

        Args:
            draws: All that was played for it; only figures and rewards are held.
            sums: Other numbers of it, which add up over batches.
        """
        self._draws += [replace(draw, batch={}) for draw in draws]
        for name, number in sums.items():
            self._sums[name] = self._sums.get(name, 0.0) + number

    def told(self) -> dict[str, float]:
        """The numbers of what is new; empty where nothing is."""
        told = {**self._numbers_of(self._draws), **self._sums} if self._draws else {}
        self._draws, self._sums = [], {}
        return told


def means(steps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each number over the steps that have it.

    A share of nothing (nan) is passed over; where nan is a breakdown, the mean is nan too.
    """
    keys = dict.fromkeys(key for step in steps for key in step)
    values = {key: [step[key] for step in steps if key in step] for key in keys}
    known = {
        key: those if METRICS[key].breaks else [each for each in those if math.isfinite(each)]
        for key, those in values.items()
    }
    return {key: sum(those) / len(those) for key, those in known.items() if those}
