"""The pictures of `null-wall`: rewards step by step, and what becomes of the nulls.

Cells that are not done yet are left out.
"""

from __future__ import annotations

from typing import Final

from adapters.lab.cell_figures import lines
from adapters.lab.figures import Figure
from adapters.lab.prediction import Cells

WALL: Final = {
    "padded, strict tools": "padded-strict",
    "padded, lenient tools": "padded-lenient",
    "safe export, strict tools": "export-strict",
}
PRICE: Final = {
    "half padded, repairs cost": "half-priced",
    "half padded, repairs are free": "half-free",
    "all padded, repairs cost": "padded-priced",
}


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    wall = lines(
        "null_wall_reward",
        "Reward after a padded warm-up",
        "Mean over seeds. With strict tools every rollout earns the same.",
        cells,
        WALL,
        "reward",
        unit="number",
    )
    price = lines(
        "null_wall_nulls",
        "Calls that write a null",
        "Share of calls, mean over seeds. A price can only choose among what is tried.",
        cells,
        PRICE,
        "nulls",
    )
    return [wall, price]
