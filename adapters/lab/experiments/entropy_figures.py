"""The pictures of `entropy`: what becomes of it while training, and at the end with each cure.

Cures that a scale does not have are left out.
"""

from __future__ import annotations

from adapters.lab.cell_figures import lines, points
from adapters.lab.experiments.entropy_runs import CURES, STARTS
from adapters.lab.figures import Figure
from adapters.lab.prediction import Cells


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    return [_while_training(cells), *(_cures(cells, start) for start in STARTS)]


def _while_training(cells: Cells) -> Figure:
    return lines(
        "entropy_training",
        "Entropy while training",
        "Nats per token, mean over seeds. The claimed threshold is 0.5.",
        cells,
        {start: start for start in STARTS},
        "entropy",
        unit="number",
    )


def _cures(cells: Cells, start: str) -> Figure:
    places = {"none": start} | {cure: f"{start}-{cure}" for cure in CURES}
    return points(
        f"entropy_{start}",
        f"With each cure, {start}",
        "At the end of training: entropy in nats per token, accuracy as a share.",
        cells,
        places,
        {"entropy": "entropy_end", "accuracy": "accuracy_end"},
        unit="number",
    )
