"""Counts of a set of rollouts while they pass, one at a time, and how varied their workflows are.

A long training plays more rollouts than fit into memory, and its tables need only counts. So each
rollout is added to the tallies of its phase, of its kind of task and of its stretch of steps, and
let go. What grows is the number of different workflows, and the steps up to a limit: beyond it
neighbours are taken together, which a table of twenty windows does not show.

A policy that collapses writes one workflow for every task long before its reward tells: the
entropy of the distribution of canonical workflows falls, and with it the chance that two of them
differ. The steps of a training are taken together in windows of equal width, since the few rollouts
of one step say little.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from aflowgym.statistics.workflows import Reading
from toolgym.statistics import Share

PHASES = ("before", "grpo", "after")
"""In the order of a run; others follow by name."""
MOST_STRETCHES: Final = 2_000


@dataclass
class Tally:
    """Counts of a group of rollouts.

    Attributes:
        rollouts: How many there are.
        acted: Those that wrote a workflow.
        able: Those that wrote a valid one.
        written: Workflows, valid or not.
        plain: Valid ones that were read without a remark.
        wrong: Those that are not valid.
        scored: Rollouts that no fault of the machine spoilt.
        right: Scored rollouts that ended right.
        calls: Calls of a model that the operators of the scored rollouts came to.
        counts: How often each valid workflow was written, by canonical text.
        codes: Of the workflows that are not valid, how many have each code.
        ended: Of the scored rollouts, how many had each as the last valid workflow; "" for none.
        ended_right: Those of them that ended right.
    """

    rollouts: int = 0
    acted: int = 0
    able: int = 0
    written: int = 0
    plain: int = 0
    wrong: int = 0
    scored: int = 0
    right: int = 0
    calls: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    ended_right: Counter[str] = field(default_factory=Counter)

    def add(self, reading: Reading) -> None:
        """Count one rollout."""
        valid = reading.valid
        self.rollouts += 1
        self.acted += bool(reading.workflows)
        self.able += bool(valid)
        self.written += len(reading.workflows)
        self.plain += sum(not workflow.remarks for workflow in valid)
        self.counts.update(workflow.text for workflow in valid)
        for workflow in reading.workflows:
            if not workflow.valid:
                self.wrong += 1
                self.codes.update(workflow.codes)
        if reading.scored:
            self._end(reading)

    def _end(self, reading: Reading) -> None:
        self.scored += 1
        self.right += reading.correct
        self.calls += reading.calls
        self.ended[reading.last] += 1
        if reading.correct:
            self.ended_right[reading.last] += 1

    def __iadd__(self, other: Tally) -> Tally:
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if isinstance(mine, Counter):
                mine.update(theirs)
            else:
                setattr(self, each.name, mine + theirs)
        return self

    @property
    def validity(self) -> Share:
        """Rollouts with a valid workflow."""
        return Share(self.able, self.rollouts)

    @property
    def accuracy(self) -> Share:
        """Of the scored rollouts, those that ended right."""
        return Share(self.right, self.scored)

    @property
    def mean_calls(self) -> float | None:
        """Calls of a model for each scored rollout; None without any."""
        return self.calls / self.scored if self.scored else None

    @property
    def favourite(self) -> tuple[str, Share]:
        """The workflow that was written most often, and its share; empty if there is none."""
        text, count = next(iter(rank(self.counts)), ("", 0))
        return text, Share(count, self.counts.total())


@dataclass
class Stretch:
    """The rollouts of some steps that follow each other."""

    first: int
    last: int
    tally: Tally = field(default_factory=Tally)


class Course:
    """The rollouts of one phase by their steps, in as many stretches as fit at most."""

    def __init__(self) -> None:
        self.around = Tally()
        self.width = 1
        self._places: dict[int, Stretch] = {}

    def add(self, reading: Reading) -> None:
        """Count one rollout; one without a step lies around the training."""
        if reading.step is None:
            self.around.add(reading)
            return
        step = reading.step
        place = step // self.width
        stretch = self._places.setdefault(place, Stretch(step, step))
        stretch.first, stretch.last = min(stretch.first, step), max(stretch.last, step)
        stretch.tally.add(reading)
        if len(self._places) > MOST_STRETCHES:
            self._join()

    def _join(self) -> None:
        self.width *= 2
        pairs: dict[int, Stretch] = {}
        for place, stretch in self._places.items():
            joined = pairs.setdefault(place // 2, Stretch(stretch.first, stretch.last))
            joined.first = min(joined.first, stretch.first)
            joined.last = max(joined.last, stretch.last)
            joined.tally += stretch.tally
        self._places = pairs

    @property
    def stretches(self) -> list[Stretch]:
        """In the order of their steps."""
        return [self._places[place] for place in sorted(self._places)]


class Gathered:
    """The tallies of a set of rollouts.

    Attributes:
        by_phase: All of a phase.
        by_kind: Those of a kind of task in a phase.
        courses: Those of a phase by step.
        structures: Of each valid workflow its class.
        operators: Of each valid workflow how often each operator occurs in it.
    """

    def __init__(self, readings: Iterable[Reading]) -> None:
        self.by_phase: dict[str, Tally] = {}
        self.by_kind: dict[tuple[str, str], Tally] = {}
        self.courses: dict[str, Course] = {}
        self.structures: dict[str, str] = {}
        self.operators: dict[str, Counter[str]] = {}
        for reading in readings:
            self._add(reading)

    def _add(self, reading: Reading) -> None:
        phase, kind = reading.phase, reading.kind
        self.by_phase.setdefault(phase, Tally()).add(reading)
        self.courses.setdefault(phase, Course()).add(reading)
        if kind:
            self.by_kind.setdefault((kind, phase), Tally()).add(reading)
        for workflow in reading.valid:
            self.structures[workflow.text] = workflow.structure
            self.operators[workflow.text] = workflow.operators

    @property
    def phases(self) -> list[str]:
        """Those that there are, in the order of a run."""
        usual = [phase for phase in PHASES if phase in self.by_phase]
        return [*usual, *sorted(self.by_phase.keys() - set(usual))]

    @property
    def total(self) -> Tally:
        """All rollouts together."""
        whole = Tally()
        for phase in self.phases:
            whole += self.by_phase[phase]
        return whole


def rank(counts: Counter[str]) -> list[tuple[str, int]]:
    """The most frequent first; of equals the one whose text comes first."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


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


def moments(gathered: Gathered, windows: int = 20) -> list[Moment]:
    """The rollouts of each phase in the order of time, those with steps in at most some windows."""
    all_moments = []
    for phase in gathered.phases:
        course = gathered.courses[phase]
        if course.around.rollouts:
            all_moments.append(Moment(phase, None, None, course.around))
        stretches = course.stretches
        width = max(1, -(-len(stretches) // windows))
        for start in range(0, len(stretches), width):
            window = stretches[start : start + width]
            whole = Tally()
            for stretch in window:
                whole += stretch.tally
            all_moments.append(Moment(phase, window[0].first, window[-1].last, whole))
    return all_moments
