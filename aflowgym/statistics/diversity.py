"""How varied the workflows of some rollouts are, and how that moves while a model is trained.

A policy that collapses writes one workflow for every task long before its reward tells: the
entropy of the distribution of canonical workflows falls, and with it the chance that two of them
differ. The steps of a training are taken together in windows of equal width, since the few rollouts
of one step say little.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from aflowgym.statistics.counts import Gathered, Tally


@dataclass(frozen=True)
class Moment:
    """The rollouts of a phase, or of some steps of it.

    Attributes:
        phase: As it was recorded.
        first: The first step; None around the training.
        last: The last step.
        tally: What was counted of them.
    """

    phase: str
    first: int | None
    last: int | None
    tally: Tally

    @property
    def steps(self) -> str:
        """The steps as text, `5` or `1-4`; empty around the training."""
        if self.first is None:
            return ""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def entropy(counts: Mapping[str, int]) -> float:
    """Entropy of a distribution in nats, 0 if all is one and at most the log of how many there are.

        H = - sum_i p_i log p_i          p_i = n_i / n

    It is that of the sample, which lies below that of the policy by about (kinds - 1) / 2n (Miller
    1955): compare moments of similar size. nan without any.

    >>> round(entropy({"a": 2, "b": 2}), 4)
    0.6931
    """
    total = sum(counts.values())
    if not total:
        return math.nan
    parts = sorted(count / total for count in counts.values() if count)
    return math.fsum(-p * math.log(p) for p in parts) + 0.0


def diversity(counts: Mapping[str, int]) -> float:
    """The chance that two of them, drawn without putting back, differ (Simpson 1949).

        D = 1 - sum_i n_i (n_i - 1) / (n (n - 1))

    Unbiased, so it can be compared between moments of any size. nan for fewer than two.

    >>> diversity({"a": 2, "b": 2}) == 2 / 3
    True
    """
    total = sum(counts.values())
    if total < 2:
        return math.nan
    same = sum(count * (count - 1) for count in counts.values())
    return (total * (total - 1) - same) / (total * (total - 1))


def moments(found: Gathered, windows: int = 20) -> list[Moment]:
    """The rollouts of each phase in the order of time, those with steps in at most some windows.

    Args:
        found: What was counted.
        windows: Most windows for one phase.
    """
    told = []
    for phase in found.phases:
        course = found.courses[phase]
        if course.around.rollouts:
            told.append(Moment(phase, None, None, course.around))
        stretches = course.stretches
        width = max(1, -(-len(stretches) // windows))
        for start in range(0, len(stretches), width):
            window = stretches[start : start + width]
            whole = Tally()
            for stretch in window:
                whole += stretch.tally
            told.append(Moment(phase, window[0].first, window[-1].last, whole))
    return told
