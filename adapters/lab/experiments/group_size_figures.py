"""The pictures of `group_size`: collapses, groups that can teach, and validity while training.

Cells that a scale does not have are left out.
"""

from __future__ import annotations

from typing import Final

from adapters.lab.cell_figures import grid, lines
from adapters.lab.experiments.group_size_runs import RATE, ROLLOUTS
from adapters.lab.figures import Figure, Series
from adapters.lab.intervals import average
from adapters.lab.micro.group_tables import SIZES
from adapters.lab.prediction import Cells, values_of

_AT: Final = f"lr{RATE:g}"


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    return [_collapses(cells), _live(cells), _validity(cells)]


def _collapses(cells: Cells) -> Figure:
    sizes = [size for size in SIZES if f"k{size}-std-{_AT}" in cells]
    return grid(
        "group_size_collapse",
        "Trainings that collapse, by group size",
        f"At {ROLLOUTS} rollouts per update; less than a fifth of the last ten batches is valid.",
        cells,
        {
            f"{name}, {told}": [f"k{size}-{name}-{end}" for size in sizes]
            for end, told in ((_AT, "Adam"), ("matched", "steps of equal length"))
            for name in ("std", "none")
        },
        [f"K = {size}" for size in sizes],
        "collapsed",
        counted=True,
    )


def _live(cells: Cells) -> Figure:
    rows = {
        "measured": "mixed",
        "formula, one rate": "formula",
        "formula, rate of each task": "formula_by_task",
    }
    series = tuple(
        Series.of(
            label,
            [average(list(values_of(cells, "live", f"{key}_{s}").values())) for s in SIZES],
        )
        for label, key in rows.items()
    )
    note = "Right and wrong rollouts in one group, of the start. Tasks differ in their rate."
    title = "Groups that can teach, by group size"
    return Figure("group_size_live", title, note, series, tuple(f"K = {s}" for s in SIZES))


def _validity(cells: Cells) -> Figure:
    shown = {
        "K=2, 3 prompts": "p30",
        "the same, rate / 10": "p30-lr10",
        "the same, under guards": "p30-guarded",
        "K=8, 2 prompts": f"k8-std-{_AT}",
    }
    title = "Valid workflows while training"
    return lines("group_size_validity", title, "Mean over seeds.", cells, shown, "valid")
