"""How much worse than the best the workflows are that rollouts ended with.

With the simulated backend it is known exactly what a workflow is worth, so luck can be taken out:
each rollout counts with the expected reward of its last valid workflow, run once and answered, and
one that has none with the score that it got. Regret is what the best workflow of the family is
worth more. Where the backend is another one, or answers are free, nothing is known and no regret
told; nor where operators are called one by one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aflowgym.backends.presets import PRESETS
from aflowgym.expectation import expected
from aflowgym.optimum_cache import Best, best_workflow
from aflowgym.statistics_tally import Gathered, Tally
from aflowgym.tasks import KINDS, Kind
from toolgym.rewards import RewardConfig
from toolgym.statistics import Cell, Mean, Table

FAMILY = 4
"""Most operators in a workflow that regret is measured against, its list counted as one."""


@dataclass(frozen=True)
class Regret:
    """Of the rollouts of one phase on one kind of task.

    Attributes:
        kind: Of the tasks.
        phase: As it was recorded.
        reward: The mean exact reward of what they ended with.
        best: What it is measured against.
        preset: The skills of the operators.
    """

    kind: Kind
    phase: str
    reward: Mean
    best: Best
    preset: str

    @property
    def regret(self) -> Mean:
        """What the best workflow is worth more."""
        lost = self.best.expectation.reward - self.reward.value
        return Mean(lost, self.reward.error, self.reward.of)


def regrets(
    found: Gathered,
    env_kwargs: Mapping[str, Any],
    family: int = FAMILY,
) -> tuple[Regret, ...]:
    """The regret of each kind and phase that whole workflows were submitted in.

    Args:
        found: What was counted.
        env_kwargs: How the environment was made.
        family: Most operators in a workflow that it is measured against.

    Raises:
        ConfigurationError: The weights of the score are none.
    """
    preset = simulated_preset(env_kwargs)
    if preset is None:
        return ()
    rewards = RewardConfig.of(env_kwargs.get("rewards"))
    told = []
    for kind in KINDS:
        for phase in found.phases:
            tally = found.composed.get((kind, phase))
            if tally is None or not tally.scored:
                continue
            best = best_workflow(kind, preset, rewards, operators=family)
            reward = _reward(tally, kind, preset, rewards)
            told.append(Regret(kind, phase, reward, best, preset))
    return tuple(told)


def simulated_preset(env_kwargs: Mapping[str, Any]) -> str | None:
    """The preset that decides what a workflow is worth; None where that is not known.

    >>> simulated_preset({}), simulated_preset({"backend": "simulated:paper"})
    ('teaching', 'paper')
    >>> simulated_preset({"backend": "replay:answers.jsonl"}) is None
    True
    """
    backend = env_kwargs.get("backend", "simulated")
    what, _, preset = backend.partition(":") if isinstance(backend, str) else ("", "", "")
    known = what == "simulated" and (preset or "teaching") in PRESETS
    return (preset or "teaching") if known and not env_kwargs.get("free_answer") else None


def _reward(tally: Tally, kind: Kind, preset: str, rewards: RewardConfig) -> Mean:
    """The mean over the scored rollouts."""
    worth: Counter[float] = Counter()
    for text, count in tally.ended.items():
        if text:
            worth[expected(text, kind, preset, rewards=rewards).reward] += count
    worth.update({score: count for score, count in tally.lost.items() if not math.isnan(score)})
    return Mean.of_counts(worth)


def regret_table(
    told: Sequence[Regret], family: int = FAMILY, *, is_assumed: bool
) -> tuple[Table, ...]:
    """One row for each; no table where there is none.

    Args:
        told: From `regrets`.
        family: Most operators in a workflow that it is measured against.
        is_assumed: It is not known how the environment was made.
    """
    if not told:
        return ()
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            *(each.kind, each.phase, each.reward.of, each.reward.value),
            *(each.best.expectation.reward, each.regret, each.best.workflow),
        )
        for each in told
    )
    columns = ("kind", "phase", "rollouts", "reward", "optimum", "regret", "best workflow")
    note = (
        "Reward: the mean of what the last valid workflow of each scored rollout is worth, run once"
        " and answered, luck taken out; a rollout without one counts with its own score. Optimum:"
        f" the best of all chains of up to {family} operators with a list, a condition and a loop."
        f" In brackets the 95 % interval of the mean. Preset: {told[0].preset}."
    )
    if is_assumed:
        note += " How the environment was made is not recorded here: its defaults are assumed."
    return (Table("regret", "Regret", columns, rows, note, is_key=True),)
