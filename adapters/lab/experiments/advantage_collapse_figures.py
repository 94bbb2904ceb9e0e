"""The pictures of `advantage_collapse`: accuracy by what was spent, and on average over it.

Methods and prompts that a scale does not have are left out.
"""

from __future__ import annotations

from typing import Final

from adapters.lab.cell_figures import lines, points
from adapters.lab.experiments.advantage_collapse_runs import BUDGETS, EXAMS, METHODS, PROMPTS
from adapters.lab.figures import Figure
from adapters.lab.prediction import Cells

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
