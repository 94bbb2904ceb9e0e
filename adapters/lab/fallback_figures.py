"""The pictures of `fallback`: what is written at the end and on the way, and single updates.

Cells that are not done yet are left out.
"""

from __future__ import annotations

from typing import Any, Final

from adapters.lab.cell_figures import lines
from adapters.lab.fallback_runs import ESTIMATORS, RATES
from adapters.lab.figures import Figure, Series
from adapters.lab.intervals import average
from adapters.lab.prediction import Cells, values_of

_UPDATE: Final = f"lr{RATES[0]:g}"
PAID: Final = {"zero-std": "0", "custom-std": "Custom", "typical-std": "the typical one"}
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
    rows = {"workflows": "valid_end", "prose": "prose_end"}
    series = tuple(
        Series.of(label, [average(list(values_of(cells, c, key).values())) for c in PAID])
        for label, key in rows.items()
    )
    title = "What is written at the end, by what other text is paid"
    note = "Of the last ten batches. What is neither is text that no longer reads as a workflow."
    return Figure("fallback_ends", title, note, series, tuple(PAID.values()))


def _updates(cells: Cells) -> Figure:
    def change(name: str, key: str) -> Any:
        return average(list(values_of(cells, name, key).values()))

    series = tuple(
        Series.of(
            label, [change(f"step4-{name}-{sign}-{_UPDATE}", "prose_change") for name in ESTIMATORS]
        )
        for label, sign in (("with negative advantages", "both"), ("without", "positive"))
    )
    title = "Probability of prose: change by one update"
    note = "Three groups of two valid workflows, paid 1, 1 | 1, 0.2 | 0.2, 0.2."
    return Figure("fallback_update", title, note, series, tuple(ESTIMATORS))
