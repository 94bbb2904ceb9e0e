"""The pictures of `kl`: drift while training, and drift, accuracy and tokens at the end.

Forms and prices that a scale does not have are left out.
"""

from __future__ import annotations

from typing import Final

from adapters.lab.cell_figures import lines, points
from adapters.lab.experiments.kl_runs import BETAS, EVERY, FORMS, RATES
from adapters.lab.figures import Figure
from adapters.lab.prediction import Cells

_LABELS: Final = {
    "reward": "in the reward",
    "k1": "k1, exact",
    "k2": "k2",
    "k3": "k3, exact",
    "plain-k1": "k1, plain",
    "plain-k3": "k3, plain",
}


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    found = [_while_training(cells, rate) for rate in RATES]
    found += [_ends(cells, rate, beta) for rate in RATES for beta in BETAS]
    return [*found, _tokens(cells), _hacked(cells)]


def _places(cells: Cells, rate: float, beta: float) -> dict[str, str]:
    names = {"none": f"none-lr{rate:g}"}
    names |= {_LABELS[form]: f"{form}-b{beta:g}-lr{rate:g}" for form in FORMS}
    return {label: cell for label, cell in names.items() if cells.get(cell)}


def _while_training(cells: Cells, rate: float) -> Figure:
    return lines(
        f"kl_drift_lr{rate:g}",
        f"Drift from the warm-up while training, rate {rate:g}",
        f"Nats per token, a penalty of {BETAS[0]:g}, mean over seeds.",
        cells,
        {text: cell for text, cell in _places(cells, rate, BETAS[0]).items() if text != "k2"},
        "drifts",
        unit="number",
        first=float(EVERY),
        every=float(EVERY),
    )


def _ends(cells: Cells, rate: float, beta: float) -> Figure:
    return points(
        f"kl_end_lr{rate:g}_b{beta:g}",
        f"At the end: a penalty of {beta:g}, rate {rate:g}",
        "Shares of other rollouts of the same tasks.",
        cells,
        _places(cells, rate, beta),
        {"right": "accuracy_end", "valid": "valid_end"},
    )


def _tokens(cells: Cells) -> Figure:
    return points(
        "kl_tokens",
        "Drift of signs and of operators",
        f"Nats per token at the end, rate {RATES[0]:g}, a penalty of {BETAS[0]:g}.",
        cells,
        _places(cells, RATES[0], BETAS[0]),
        {"signs of the language": "drift_structure", "operators": "drift_free"},
        unit="number",
    )


def _hacked(cells: Cells) -> Figure:
    return points(
        "kl_hacked",
        "A verifier that can be fooled, by the price of divergence",
        "At the end: what is right, and how much more the verifier calls right.",
        cells,
        {f"{beta:g}": f"hack-b{beta:g}" for beta in (0.0, *BETAS)},
        {"right": "accuracy_end", "wrong and called right": "fooled"},
    )
