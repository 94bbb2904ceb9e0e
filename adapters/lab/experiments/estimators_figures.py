"""The pictures of `estimators`: score at the end, failures, and score while training.

Conditions that a scale does not have stay empty.
"""

from __future__ import annotations

from typing import Final

from adapters.lab.cell_figures import grid, lines
from adapters.lab.experiments.estimators_runs import CONDITIONS, METHODS
from adapters.lab.figures import Figure
from adapters.lab.prediction import Cells

LABELS: Final = {
    "grpo": "GRPO",
    "dr-grpo": "Dr. GRPO",
    "reinforce++": "REINFORCE++",
    "reinforce++-baseline": "REINFORCE++ with baseline",
    "rloo": "RLOO",
    "gspo": "GSPO",
    "dapo": "DAPO",
    "cispo": "CISPO",
}
_LINES: Final = ("grpo", "dr-grpo", "reinforce++", "gspo", "dapo", "cispo")
"""Six, since there are no more colours that everybody can tell apart."""


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    return [_scores(cells), _failures(cells), *(_training(cells, each) for each in CONDITIONS)]


def _rows() -> dict[str, list[str]]:
    return {each: [f"{each}-{name}" for name in METHODS] for each in CONDITIONS}


def _scores(cells: Cells) -> Figure:
    return grid(
        "estimators_score",
        "Score at the end",
        "Of 16 other rollouts of each task.",
        cells,
        _rows(),
        list(LABELS.values()),
        "score_end",
        unit="number",
    )


def _failures(cells: Cells) -> Figure:
    return grid(
        "estimators_failures",
        "Trainings that end with hardly anything valid",
        "Less than a fifth of what is written can be run.",
        cells,
        _rows(),
        list(LABELS.values()),
        "collapsed",
        counted=True,
    )


def _training(cells: Cells, condition: str) -> Figure:
    return lines(
        f"estimators_{condition}",
        f"Score while training, {condition}",
        "Mean over seeds. What DAPO keeps of its draws is no fair sample of them.",
        cells,
        {LABELS[name]: f"{condition}-{name}" for name in _LINES},
        "score",
        unit="number",
    )
