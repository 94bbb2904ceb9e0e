"""How varied the workflows of some rollouts are, and how that moves while a model is trained.

A policy that collapses writes one workflow for every task long before its reward tells: the
entropy of the distribution of canonical workflows falls, and with it the chance that two of them
differ. The steps of a training are taken together in windows of equal width, since the few rollouts
of one step say little.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from aflowgym.operators import KINDS
from aflowgym.statistics_reading import Reading
from toolgym.statistics import Share

PHASES = ("before", "grpo", "after")
"""In the order of a run; others follow by name."""


@dataclass(frozen=True)
class Moment:
    """The rollouts of a phase, or of some steps of it.

    Attributes:
        phase: As it was recorded.
        first: The first step; None around the training.
        last: The last step.
        rollouts: How many there are.
        valid: How many of them wrote a valid workflow.
        counts: How often each valid workflow was written, by canonical text.
        right: How many of those that were scored ended right.
    """

    phase: str
    first: int | None
    last: int | None
    rollouts: int
    valid: int
    counts: Mapping[str, int]
    right: Share

    @property
    def steps(self) -> str:
        """The steps as text, `5` or `1-4`; empty around the training."""
        if self.first is None:
            return ""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    @property
    def validity(self) -> Share:
        """Rollouts with a valid workflow."""
        return Share(self.valid, self.rollouts)

    @property
    def favourite(self) -> tuple[str, Share]:
        """The workflow that was written most often, and its share; empty if there is none."""
        total = sum(self.counts.values())
        text, count = next(iter(ranked(self.counts)), ("", 0))
        return text, Share(count, total)


def ranked(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """The most frequent first; of equals the one whose text comes first."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


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


def moments(found: Iterable[Reading], windows: int = 20) -> list[Moment]:
    """The rollouts of each phase in the order of time, those with steps in at most some windows.

    Args:
        found: What the agents wrote.
        windows: Most windows for one phase.
    """
    by_phase: dict[str, list[Reading]] = {}
    for reading in found:
        by_phase.setdefault(reading.phase, []).append(reading)
    told = []
    for phase in _in_order(by_phase):
        alike = by_phase[phase]
        around = [reading for reading in alike if reading.step is None]
        if around:
            told.append(_moment(phase, (), around))
        steps = sorted({reading.step for reading in alike if reading.step is not None})
        width = max(1, -(-len(steps) // windows))
        for start in range(0, len(steps), width):
            window = steps[start : start + width]
            first, last = window[0], window[-1]
            inside = [each for each in alike if each.step and first <= each.step <= last]
            told.append(_moment(phase, window, inside))
    return told


def by_kind(found: Iterable[Reading]) -> list[tuple[str, Moment]]:
    """The rollouts of each kind of task, and for each kind those of each phase."""
    groups: dict[str, dict[str, list[Reading]]] = {}
    for reading in found:
        if reading.kind:
            groups.setdefault(reading.kind, {}).setdefault(reading.phase, []).append(reading)
    return [
        (kind, _moment(phase, (), groups[kind][phase]))
        for kind in KINDS
        if kind in groups
        for phase in _in_order(groups[kind])
    ]


def by_phase_of(found: Iterable[Reading]) -> dict[str, Counter[str]]:
    """How often each valid workflow was written, by phase in the order of a run."""
    counts: dict[str, Counter[str]] = {}
    for reading in found:
        texts = counts.setdefault(reading.phase, Counter())
        texts.update(workflow.text for workflow in reading.valid)
    return {phase: counts[phase] for phase in _in_order(counts)}


def _in_order(phases: Iterable[str]) -> list[str]:
    there = set(phases)
    known = [phase for phase in PHASES if phase in there]
    return [*known, *sorted(there - set(known))]


def _moment(phase: str, steps: Sequence[int], inside: Sequence[Reading]) -> Moment:
    scored = [reading for reading in inside if reading.scored]
    return Moment(
        phase=phase,
        first=steps[0] if steps else None,
        last=steps[-1] if steps else None,
        rollouts=len(inside),
        valid=sum(bool(reading.valid) for reading in inside),
        counts=Counter(workflow.text for reading in inside for workflow in reading.valid),
        right=Share(sum(reading.correct for reading in scored), len(scored)),
    )
