"""The shapes of questions, a file for each family.

Whoever imports this has all of them in `SHAPES`; `shape` adds one of your own.
"""

from sqlgym.synthesis.drafting import SHAPES, Shape, shape
from sqlgym.synthesis.shapes import (
    aggregates,
    filters,
    groups,
    joins,
    nested,
    orders,
    per_parent,
    sets,
)

__all__ = ["FAMILIES", "SHAPES", "Shape", "shape"]

FAMILIES = (filters, aggregates, groups, joins, nested, orders, per_parent, sets)
"""The modules with shapes; the seed draws from `SHAPES` in the order in which they add to it."""
