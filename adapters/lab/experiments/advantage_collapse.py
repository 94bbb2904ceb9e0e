"""Prompts that are too hard or too easy: is it better to draw others, or to play more of each?

Document 002 says that most groups are then alike and teach nothing, and that dynamic sampling
mends it for less than larger groups do. What is done stands in `advantage_collapse_runs`.
"""

from __future__ import annotations

from typing import Final

from adapters.lab.experiment import Experiment
from adapters.lab.experiments.advantage_collapse_figures import figures
from adapters.lab.experiments.advantage_collapse_runs import (
    BUDGETS,
    EXAMS,
    FIRST,
    LEARNING,
    cells,
    run,
)
from adapters.lab.prediction import Prediction, mean_above

_LEAST: Final = {"hard": 0.1, "easy": 0.02}
"""Smaller where there is little room above."""


def _dead(prompts: str) -> Prediction:
    return mean_above(
        f"{prompts}_dead",
        f"On {prompts} prompts more than half of the groups of 8 are dead in the first"
        f" {FIRST} steps.",
        f"{prompts}-plain",
        "dead_first",
        by=0.5,
        unit="share",
    )


def _better(prompts: str, than: str, budget: str) -> Prediction:
    other = {"plain": "plain groups of 8", "doubled": "groups of 16"}[than]
    return mean_above(
        f"{prompts}_{than}_{budget}",
        f"On {prompts} prompts dynamic sampling is above {other} at equal {budget}, by"
        f" {100 * _LEAST[prompts]:g} points of accuracy over the whole budget.",
        f"{prompts}-dynamic",
        f"accuracy_over_{budget}",
        than=f"{prompts}-{than}",
        by=_LEAST[prompts],
        unit="share",
    )


PREDICTIONS: Final[tuple[Prediction, ...]] = (
    *(_dead(prompts) for prompts in _LEAST),
    mean_above(
        "hard_idle",
        "On hard prompts a quarter of the first plain steps have no gradient at all.",
        "hard-plain",
        "idle_first",
        by=0.25,
        unit="share",
    ),
    *(
        _better(prompts, than, budget)
        for budget in BUDGETS
        for than in ("plain", "doubled")
        for prompts in _LEAST
    ),
)


EXPERIMENT: Final = Experiment(
    name="advantage-collapse",
    document="002",
    title="Prompts that are too hard or too easy",
    claim=(
        "On very hard or very easy prompts all rollouts of a group earn the same, and the gradient"
        " is gone. Dropping such groups and drawing others is more efficient than larger groups."
    ),
    setting=(
        "The workflow micro-model, paid 1 or 0. Hard: right is what is right with every luck;"
        " easy: what is right with any. Groups of 8, with and without dynamic sampling (up to three"
        f" times the groups), and groups of 16, 4 groups a step, until {BUDGETS['rollouts']:,}"
        f" rollouts are played, and until {BUDGETS['work']:,} units of work are done: 1 for a token"
        f" written, {LEARNING} for one learnt from. {EXAMS} examinations on the way are averaged,"
        " since all methods get there in the end. No clock decides anything."
    ),
    prevention=(
        "Dynamic sampling is on by default and draws at most a given multiple; `dead_groups` is"
        " logged, a guard watches it, and `toolgym preflight` tells for groups of 2 to 16 how many"
        " can teach."
    ),
    cells=cells,
    seeds={"smoke": 1, "quick": 24, "full": 48},
    run=run,
    predictions=PREDICTIONS,
    figures=figures,
    seconds=lambda config: 1.4,
)
