"""The pictures of `fallback`: what is written at the end and on the way, and single updates.

Cells that are not done yet are left out.
"""

from __future__ import annotations

from typing import Final

from adapters.lab.cell_figures import grid, lines, points
from adapters.lab.experiments.fallback_runs import ESTIMATORS, RATES
from adapters.lab.figures import Figure
from adapters.lab.prediction import Cells

_UPDATE: Final = f"lr{RATES[0]:g}"
PAID: Final = {"0": "zero-std", "Custom": "custom-std", "the typical one": "typical-std"}
TRAININGS: Final = {
    "paid as Custom": "custom-std",
    "paid as what is typical": "typical-std",
    "paid 0": "zero-std",
    "typical, batches skipped": "typical-std-skip",
}


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    prose = lines(
        "fallback_prose",
        "Prose while training",
        "Share of completions that begin as prose, mean over seeds.",
        cells,
        TRAININGS,
        "prose",
    )
    valid = lines(
        "fallback_valid",
        "Workflows while training",
        "Share of completions that are a workflow, mean over seeds.",
        cells,
        TRAININGS,
        "valid",
    )
    return [_ends(cells), prose, valid, _updates(cells)]


def _ends(cells: Cells) -> Figure:
    return points(
        "fallback_ends",
        "What is written at the end, by what other text is paid",
        "Of the last ten batches. What is neither is text that no longer reads as a workflow.",
        cells,
        PAID,
        {"workflows": "valid_end", "prose": "prose_end"},
    )


def _updates(cells: Cells) -> Figure:
    signs = {"with negative advantages": "both", "without": "positive"}
    return grid(
        "fallback_update",
        "Probability of prose: change by one update",
        "Three groups of two valid workflows, paid 1, 1 | 1, 0.2 | 0.2, 0.2.",
        cells,
        {
            label: [f"step4-{name}-{sign}-{_UPDATE}" for name in ESTIMATORS]
            for label, sign in signs.items()
        },
        list(ESTIMATORS),
        "prose_change",
    )
