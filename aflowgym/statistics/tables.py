"""Tables on the workflows of rollouts: validity, errors, frequent ones, operators, structures.

Workflows are counted by their canonical text, so that two spellings of one workflow are the same,
and those that are not valid by the codes of their errors. Rollouts are counted one at a time;
memory is bounded by the number of different workflows, of which at most `MOST_DIFFERENT` are kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from aflowgym.dsl import CODES
from aflowgym.execution.errors import WORKFLOW_ERRORS
from aflowgym.operators.catalogue import OPERATORS, Registry
from aflowgym.statistics.workflows import FALLBACK, STRUCTURES, Workflow, WorkflowReader, kind_of
from aflowgym.tasks.task import KINDS
from toolgym.calls import CALL_ERRORS
from toolgym.statistics import Cell, Rollout, Share, Statistics, Table

PHASES: Final = ("before", "grpo", "after")
"""The phases of a run in order; others follow, sorted by name."""
MOST_WINDOWS: Final = 20
MOST_DIFFERENT: Final = 100_000
OTHERS: Final = "(others)"
_MEANINGS: Final = {
    **CALL_ERRORS,
    **WORKFLOW_ERRORS,
    **CODES,
    FALLBACK: "The trainer replaced the output by a default workflow.",
}
_FIGURES: Final = (
    *("rollouts", "valid", "right", "score", "calls"),
    *("different", "diversity", "most frequent", "its share"),
)


@dataclass
class Tally:
    """Counts of a group of rollouts.

    Attributes:
        rollouts: Number of rollouts.
        able: Number of rollouts with a valid workflow.
        written: Number of workflows, valid or not.
        judged: Number of rollouts that are known to be right or wrong.
        right: Number of these that are right.
        scored: Number of rollouts with a score.
        score: Sum of their scores.
        metered: Number of rollouts with known calls of models.
        calls: Sum of these calls.
        valid: How often each valid workflow was written, by canonical text.
        codes: How many of the other workflows have each error code.
        ended: Number of judged rollouts by their last valid workflow; "" for none.
        ended_right: Number of these that are right.
    """

    rollouts: int = 0
    able: int = 0
    written: int = 0
    judged: int = 0
    right: int = 0
    scored: int = 0
    score: float = 0.0
    metered: int = 0
    calls: float = 0
    valid: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    ended_right: Counter[str] = field(default_factory=Counter)

    def add(self, rollout: Mapping[str, Any], workflows: list[Workflow]) -> None:
        """Count a rollout."""
        texts = [each.text for each in workflows if each.text]
        self.rollouts += 1
        self.able += bool(texts)
        self.written += len(workflows)
        self.valid.update(texts)
        for workflow in workflows:
            self.codes.update(workflow.codes)
        if rollout.get("score") is not None and not math.isnan(rollout["score"]):
            self.scored += 1
            self.score += rollout["score"]
        if rollout.get("env_usage"):
            self.metered += 1
            self.calls += rollout["env_usage"]["calls"]
        if rollout.get("scored", True) and rollout["correct"] is not None:
            last = texts[-1] if texts else ""
            self.judged += 1
            self.right += rollout["correct"]
            self.ended[last] += 1
            self.ended_right[last] += rollout["correct"]

    def __iadd__(self, other: Tally) -> Tally:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))
        return self

    def figures(self) -> tuple[Cell, ...]:
        """Return the cells of `_FIGURES`."""
        text, count = next(iter(rank(self.valid)), ("", 0))
        return (
            self.rollouts,
            Share(self.able, self.rollouts),
            Share(self.right, self.judged),
            self.score / self.scored if self.scored else None,
            self.calls / self.metered if self.metered else None,
            len(self.valid),
            diversity(self.valid),
            text,
            Share(count, self.valid.total()),
        )


class Windows:
    """Tallies of consecutive steps; their width doubles until there are at most `MOST_WINDOWS`."""

    def __init__(self) -> None:
        self.width = 1
        self.first = self.last = 0
        self._tallies: dict[int, Tally] = {}

    def add(self, step: int, rollout: Mapping[str, Any], workflows: list[Workflow]) -> None:
        """Count a rollout of a step, from 1."""
        self.first = min(self.first, step) if self._tallies else step
        self.last = max(self.last, step) if self._tallies else step
        self._tallies.setdefault((step - 1) // self.width, Tally()).add(rollout, workflows)
        while len(self._tallies) > MOST_WINDOWS:
            self.width *= 2
            narrow, self._tallies = self._tallies, {}
            for place, tally in narrow.items():
                wide = self._tallies.setdefault(place // 2, Tally())
                wide += tally

    def rows(self) -> list[tuple[str, Tally]]:
        """Return the steps of each window, such as `5` or `1-4`, and its tally, in order."""
        found = []
        for place, tally in sorted(self._tallies.items()):
            low = max(place * self.width + 1, self.first)
            high = min((place + 1) * self.width, self.last)
            found.append((str(low) if low == high else f"{low}-{high}", tally))
        return found


class Collapses:
    """Counts how often the share of valid outputs falls by more than half in the next step."""

    def __init__(self) -> None:
        self.groups = self.changes = self.falls = self.updates = self.falls_after = 0
        self._group: tuple[Any, ...] | None = None
        self._valid = self._of = 0
        self._before: float | None = None
        self._updated = False

    def add(self, group: tuple[Any, ...], able: bool) -> None:
        """Count an output of a step and number of updates, which are `group`."""
        if group != self._group:
            self.close()
            self.groups += 1
            self._before = self._valid / self._of if self._of else None
            self._updated = self._group is not None and group[1] != self._group[1]
            self._group, self._valid, self._of = group, 0, 0
        self._valid += able
        self._of += 1

    def close(self) -> None:
        """Compare the last step with the one before."""
        if self._before is not None:
            fell = self._valid / self._of < self._before / 2
            self.changes += 1
            self.falls += fell
            self.updates += self._updated
            self.falls_after += fell and self._updated
        self._before = None


def workflow_statistics(
    rollouts: Iterable[Rollout], top: int = 10, *, operators: Registry = OPERATORS
) -> Statistics:
    """Return the tables on the workflows of rollouts.

    Args:
        rollouts: Episode records, lines of a run's `rollouts.jsonl`, or the output of `read_log`,
            in the order of the training.
        top: Maximum number of workflows in the table `patterns`.
        operators: The operators that the agents could use.

    Returns:
        The tables `validity`, `errors`, `patterns`, `operators`, `structures`, `kinds`,
        `collapse` and `time`.
    """
    reader = WorkflowReader(operators)
    phases: dict[str, Tally] = {}
    kinds: dict[tuple[str, str], Tally] = {}
    outside: dict[str, Tally] = {}
    windows: dict[str, Windows] = {}
    numbered = Windows()
    collapses: dict[str, Collapses] = {}
    known: dict[str, Workflow] = {}
    ...
    return Statistics(())


def rank(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return the entries, the most frequent first, equal counts by text."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def diversity(counts: Mapping[str, int]) -> float:
    """Return the chance that two entries, drawn without replacement, differ (Simpson 1949).

        D = 1 - sum_i n_i (n_i - 1) / (n (n - 1))

    It is unbiased, so groups of different sizes can be compared; nan for fewer than two entries.

    >>> diversity({"a": 2, "b": 2}) == 2 / 3
    True
    """
    total = sum(counts.values())
    same = sum(count * (count - 1) for count in counts.values())
    return 1 - same / (total * (total - 1)) if total > 1 else math.nan
