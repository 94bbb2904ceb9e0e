"""The pictures of `length`: tokens of a text while training and at the end, world by world.

Cells that are not done yet stay empty.
"""

from __future__ import annotations

from adapters.lab.cell_figures import grid, lines
from adapters.lab.experiments.length_runs import NORMS, WORLDS
from adapters.lab.figures import Figure
from adapters.lab.prediction import Cells


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    return [*(_while_training(cells, world) for world in WORLDS), _lengths(cells), _long(cells)]


def _while_training(cells: Cells, world: str) -> Figure:
    return lines(
        f"length_{world}",
        f"Tokens of a text while training, world {world}",
        "Mean over seeds.",
        cells,
        {f"per {norm}" if norm != "constant" else norm: f"{world}-{norm}" for norm in NORMS},
        "lengths",
        unit="number",
    )


def _lengths(cells: Cells) -> Figure:
    return grid(
        "length_end",
        "Tokens of a text at the end",
        "Of other rollouts of the same tasks.",
        cells,
        {norm: [f"{world}-{norm}" for world in WORLDS] for norm in NORMS},
        list(WORLDS),
        "length_end",
        unit="number",
    )


def _long(cells: Cells) -> Figure:
    return grid(
        "length_long",
        "Probability of the longest known workflow at the end",
        "Exact, mean over tasks. In the world qa it is the best of those that are shown.",
        cells,
        {norm: [f"{world}-{norm}" for world in WORLDS] for norm in NORMS},
        list(WORLDS),
        "long_end",
    )
