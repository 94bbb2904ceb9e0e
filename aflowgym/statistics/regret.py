"""Regret: how much less the workflows of rollouts are worth than the best of a stated family.

With the simulated backend it is known exactly what a workflow is worth, so luck can be taken out:
each rollout counts with the expected reward of its last valid workflow, run once and answered, and
one that has none with the score that it got. Regret is what the best workflow of the family is
worth more. The language has more workflows than the family: one that is better is told and logged,
and makes a regret below zero. Where the backend is another one, or answers are free, nothing is
known and no regret told; nor where operators are called one by one.
"""

from __future__ import annotations

import functools
import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aflowgym.backends.presets import PRESETS
from aflowgym.expectation import expected
from aflowgym.expectation.family import FAMILY, Family
from aflowgym.expectation.search import Best, best_workflow
from aflowgym.statistics.counts import Gathered, Tally
from aflowgym.tasks.task import KINDS, Kind
from toolgym.rewards import RewardConfig
from toolgym.statistics import Cell, Mean, Table

BETTER: Final = 1e-9
"""How much more than the best of the family a workflow is worth that is called better."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Regret:
    """Of the rollouts of one phase on one kind of task.

    Attributes:
        kind: Of the tasks.
        phase: As it was recorded.
        reward: The mean exact reward of what they ended with.
        best: What it is measured against.
        preset: The skills of the operators.
        better: Workflows that are worth more than that, and what they are worth, best first.
    """

    kind: Kind
    phase: str
    reward: Mean
    best: Best
    preset: str
    better: tuple[tuple[str, float], ...] = ()

    @property
    def regret(self) -> Mean:
        """The worth that the best of the family has more; below zero where it has less."""
        lost = self.best.expectation.reward - self.reward.value
        return Mean(lost, self.reward.error, self.reward.of)


def regrets(
    gathered: Gathered, env_kwargs: Mapping[str, Any], family: Family = FAMILY
) -> tuple[Regret, ...]:
    """The regret of each kind and phase that whole workflows were submitted in.

    Raises:
        ConfigurationError: The weights of the score are none.
    """
    preset = simulated_preset(env_kwargs)
    if preset is None:
        return ()
    rewards = RewardConfig.of(env_kwargs.get("rewards"))
    rows = []
    for kind in KINDS:
        for phase in gathered.phases:
            tally = gathered.composed.get((kind, phase))
            if tally is None or not tally.scored:
                continue
            best = best_workflow(kind, preset, rewards, family=family)
            worth = {t: expected(t, kind, preset, rewards=rewards).reward for t in tally.ended if t}
            better = _better(worth, best, kind, preset)
            rows.append(Regret(kind, phase, _reward(tally, worth), best, preset, better))
    return tuple(rows)


def simulated_preset(env_kwargs: Mapping[str, Any]) -> str | None:
    """The preset that decides what a workflow is worth; None where that is not known.

    >>> simulated_preset({}), simulated_preset({"backend": "simulated:paper"})
    ('teaching', 'paper')
    >>> simulated_preset({"backend": "replay:answers.jsonl"}) is None
    True
    """
    backend = env_kwargs.get("backend", "simulated")
    what, _, preset = backend.partition(":") if isinstance(backend, str) else ("", "", "")
    is_simulated = what == "simulated" and (preset or "teaching") in PRESETS
    return (preset or "teaching") if is_simulated and not env_kwargs.get("free_answer") else None


def _reward(tally: Tally, worth: Mapping[str, float]) -> Mean:
    """The mean over the scored rollouts."""
    counts = Counter[float]()
    for text, reward in worth.items():
        counts[reward] += tally.ended[text]
    counts.update({score: count for score, count in tally.lost.items() if not math.isnan(score)})
    return Mean.of_counts(counts)


def _better(
    worth: Mapping[str, float], best: Best, kind: Kind, preset: str
) -> tuple[tuple[str, float], ...]:
    """The workflows that are better than the best of the family, logged."""
    least = best.expectation.reward + BETTER
    better = sorted((-reward, text) for text, reward in worth.items() if reward > least)
    for minus, text in better:
        _tell_once(text, -minus, best, kind, preset)
    return tuple((text, -minus) for minus, text in better)


@functools.lru_cache(maxsize=1024)
def _tell_once(text: str, reward: float, best: Best, kind: Kind, preset: str) -> None:
    _logger.warning(
        "better than the best of the stated family for %s tasks (preset %s): %s is worth %.6f,"
        " %s is worth %.6f; its regret is below zero.",
        *(kind, preset, text, reward, best.workflow, best.expectation.reward),
    )


def regret_table(
    measured: Sequence[Regret], family: Family = FAMILY, *, is_assumed: bool
) -> tuple[Table, ...]:
    """One row for each; no table where there is none. `is_assumed` tells that nobody recorded how
    the environment was made.
    """
    if not measured:
        return ()
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            *(each.kind, each.phase, each.reward.of, each.reward.value),
            *(each.best.expectation.reward, each.regret, each.best.workflow),
        )
        for each in measured
    )
    columns = ("kind", "phase", "rollouts", "reward", "best of family", "regret", "best workflow")
    note = (
        "Reward: the mean of what the last valid workflow of each scored rollout is worth, run once"
        " and answered, luck taken out; a rollout without one counts with its own score. Best"
        f" workflow: the best of the stated family, which is {family}. The language has more, so a"
        " regret can be below zero."
        f" In brackets the 95 % interval of the mean. Preset: {measured[0].preset}."
    )
    better = {
        f"{each.kind}, {text} ({reward:.4f})" for each in measured for text, reward in each.better
    }
    if better:
        note += f" Better than the best of the stated family: {'; '.join(sorted(better))}."
    if is_assumed:
        note += " How the environment was made is not recorded here: its defaults are assumed."
    return (Table("regret", "Regret", columns, rows, note, is_key=True),)
