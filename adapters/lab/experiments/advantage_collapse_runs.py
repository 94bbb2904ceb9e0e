"""What `advantage_collapse` does: trainings on too hard and too easy tasks, up to a budget.

Work is counted and not timed, so that a record is the same on every machine: a token that is
written costs 1, one that is learnt from costs 3 (forward, and backward at twice its price). A batch
is learnt from whole, dead groups included, as trainers do; one without any difference is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.lab.experiment import Config, Scale
from adapters.lab.micro.exams import PLAYS
from adapters.lab.micro.loop import History, MicroConfig, Trainer, start_of
from adapters.lab.micro.measure import accuracy, examined

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
