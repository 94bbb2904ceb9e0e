"""Prompts that are too hard or too easy: is it better to draw others, or to play more of each?

Document 002 says that most groups are then alike and teach nothing, and that dynamic sampling
mends it for less than larger groups do. Trainings on such tasks go up to a budget.

Work is counted and not timed, so that a record is the same on every machine: a token that is
written costs 1, one that is learnt from costs 3 (forward, and backward at twice its price). A batch
is learnt from whole, dead groups included, as trainers do; one without any difference is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.lab.cell_figures import lines, points
from adapters.lab.experiment import Config, Experiment, Scale
from adapters.lab.figures import Figure
from adapters.lab.micro.loop import History, MicroConfig, Trainer, start_of
from adapters.lab.micro.measure import PLAYS, accuracy, examined
from adapters.lab.prediction import Cells, Prediction, mean_above

BUDGETS: Final = {"rollouts": 1920, "work": 24_000}
"""Rollouts as 60 steps of 4 groups of 8 play them; work in tokens written, about as much as those
steps come to where half of them learn."""
RATE: Final = 1e-4
"""Low, or a single group that differs would be all that is needed."""
EXAMS: Final = 8
"""Examinations on the way, at equal distances."""
FIRST: Final = 10
"""Steps whose groups are those of the start."""
LEARNING: Final = 3
MOST: Final = 400
"""Steps at most."""
PROMPTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "hard": {"play": "always", "tasks": [9, 10, 11, 13, 14, 15]},
    "easy": {"play": "ever", "tasks": [0, 7, 8, 10, 11, 12, 14, 15]},
    "usual": {"play": "once"},
}
"""`hard`: one shown workflow in forty is right; `easy`: nearly every workflow is."""
METHODS: Final[Mapping[str, Mapping[str, Any]]] = {
    "plain": {"group_size": 8, "prompts": 4},
    "dynamic": {"group_size": 8, "prompts": 4, "draws": 3.0},
    "doubled": {"group_size": 16, "prompts": 4},
    "wider": {"group_size": 8, "prompts": 8},
    "dynamic6": {"group_size": 8, "prompts": 4, "draws": 6.0},
}
"""`wider` has the rollouts of `doubled` in twice as many groups."""
_LEAST: Final = {"hard": 0.1, "easy": 0.02}
"""Smaller where there is little room above."""


def _mostly_dead(prompts: str) -> Prediction:
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
    *(_mostly_dead(prompts) for prompts in _LEAST),
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


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train until both budgets are spent; the accuracy on the way, by what was spent."""
    settings = MicroConfig.of(config)
    trainer = Trainer(settings, start_of(settings, seed), seed, play=PLAYS[config["play"]])
    budgets = config["budgets"]
    start = accuracy(examined(trainer, seed))
    curves: dict[str, list[float]] = {name: [start] for name in budgets}
    history: History = []
    learnt = 0.0
    while len(history) < MOST and any(len(row) <= EXAMS for row in curves.values()):
        history.append(trainer.step())
        learnt += _learnt(settings, history[-1])
        spent = {"rollouts": trainer.played, "work": trainer.written + LEARNING * learnt}
        due = {name: _due(spent[name], budgets[name], row) for name, row in curves.items()}
        if any(due.values()):
            right = accuracy(examined(trainer, seed))
            for name, row in curves.items():
                row += [right] * due[name]
    first = history[:FIRST]
    return {
        "accuracy_start": start,
        **{f"accuracy_over_{name}": _average(row) for name, row in curves.items()},
        **{f"accuracy_after_{name}": row[-1] for name, row in curves.items() if len(row) > EXAMS},
        "dead_first": sum(map(_dead, first)) / len(first),
        "idle_first": sum(1 - step["updated"] for step in first) / len(first),
        "work_per_rollout": spent["work"] / spent["rollouts"],
        **{f"by_{name}": row for name, row in curves.items()},
    }


def _due(spent: float, budget: float, row: list[float]) -> int:
    """How many examinations a curve, which has the start's already, still wants now."""
    return min(int(spent / budget * EXAMS), EXAMS) + 1 - len(row)


def _average(row: list[float]) -> float:
    """Over the budget, the start left out."""
    return sum(row[1:]) / max(len(row) - 1, 1)


def _learnt(config: MicroConfig, step: Mapping[str, float]) -> float:
    """The tokens that a step has learnt from."""
    return step["updated"] * config.passes * step["length"] * config.group_size * config.prompts


def _dead(step: Mapping[str, float]) -> float:
    """The share of dead groups among those that were drawn."""
    if "drawn_groups" in step:
        return step["dropped_groups"] / step["drawn_groups"]
    return step["dead_groups"]


def cells(scale: Scale) -> dict[str, Config]:
    """Hard and easy prompts by three methods; at `full` usual ones too, and two methods more."""
    everything = scale == "full"
    names = list(METHODS) if everything else ["plain", "dynamic", "doubled"]
    return {
        f"{prompts}-{name}": {
            **PROMPTS[prompts],
            **METHODS[name],
            "estimator": "group_normalized",
            "learning_rate": RATE,
            "budgets": BUDGETS,
        }
        for prompts in (PROMPTS if everything else ("hard", "easy"))
        for name in names
    }


_LABELS: Final = {
    "plain": "plain, K=8",
    "dynamic": "dynamic sampling, K=8",
    "doubled": "K=16",
    "wider": "K=8, twice the groups",
    "dynamic6": "dynamic sampling, up to 6 times",
}


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    return [
        each
        for prompts in PROMPTS
        for each in (*(_curve(cells, prompts, name) for name in BUDGETS), _over(cells, prompts))
    ]


def _curve(cells: Cells, prompts: str, budget: str) -> Figure:
    shown = {_LABELS[name]: f"{prompts}-{name}" for name in METHODS if f"{prompts}-{name}" in cells}
    return lines(
        f"advantage_collapse_{prompts}_{budget}",
        f"Accuracy by {budget}, {prompts} prompts",
        "Of 16 other rollouts of each task, mean over seeds.",
        cells,
        shown,
        f"by_{budget}",
        label="rollouts" if budget == "rollouts" else "tokens written and learnt from",
        first=0.0,
        every=BUDGETS[budget] / EXAMS,
    )


def _over(cells: Cells, prompts: str) -> Figure:
    return points(
        f"advantage_collapse_{prompts}",
        f"Accuracy over equal budgets, {prompts} prompts",
        f"Over {BUDGETS['rollouts']:,} rollouts, and over {BUDGETS['work']:,} units of work.",
        cells,
        {_LABELS[name]: f"{prompts}-{name}" for name in METHODS},
        {"equal rollouts": "accuracy_over_rollouts", "equal work": "accuracy_over_work"},
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
