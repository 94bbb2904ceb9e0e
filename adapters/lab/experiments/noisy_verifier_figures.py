"""The pictures of `noisy_verifier`: what is paid, and by the rate of errors what comes of it.

Rates of errors that a scale does not have stay empty.
"""

from __future__ import annotations

from typing import Final

from adapters.lab.cell_figures import grid, lines
from adapters.lab.experiments.noisy_verifier_runs import NOISE
from adapters.lab.figures import Figure
from adapters.lab.prediction import Cells

_KINDS: Final = {
    "false positives": ("fp", ""),
    "false negatives": ("fn", ""),
    "both": ("both", ""),
    "false positives, lasting": ("fp", "-fixed"),
    "false negatives, lasting": ("fn", "-fixed"),
}
_ROWS: Final = {
    label: ["clean", *(f"{name}{round(100 * rate)}{ending}" for rate in NOISE)]
    for label, (name, ending) in _KINDS.items()
}
_PLACES: Final = [f"{rate:.0%}" for rate in (0.0, *NOISE)]


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    return [_rewards(cells), _ends(cells), _dead(cells), _audits(cells)]


def _rewards(cells: Cells) -> Figure:
    shown = {"clean": "clean", "20% false positives": "fp20", "the same, lasting": "fp20-fixed"}
    return lines(
        "noisy_verifier_rewards",
        "What the verifier pays while training",
        "Share of rollouts that it calls right, mean over seeds.",
        cells,
        shown,
        "rewards",
    )


def _ends(cells: Cells) -> Figure:
    title, note = "True accuracy at the end, by the rate of errors", "Judged without noise."
    return grid("noisy_verifier_end", title, note, cells, _ROWS, _PLACES, "accuracy_end")


def _dead(cells: Cells) -> Figure:
    title = "Dead groups in the first ten steps, by the rate of errors"
    note = "All rollouts of the group have the same verdict."
    return grid("noisy_verifier_dead", title, note, cells, _ROWS, _PLACES, "dead_first")


def _audits(cells: Cells) -> Figure:
    title = "How often the second rule agrees, by the rate of errors"
    note = "In an audit of each training. Only wrong rollouts can be false positives."
    return grid("noisy_verifier_audit", title, note, cells, _ROWS, _PLACES, "audit_agreement")
