"""The shapes of questions, a file for each family.

Whoever imports this has all of them in `SHAPES`; `shape` adds one of your own.
"""

from sqlgym.synthesis.drafting import SHAPES, Shape, shape
from sqlgym.synthesis.shapes import (
    aggregates,
    bands,
    comparing,
    dates,
    filters,
    groups,
    joins,
    nested,
    orders,
    per_parent,
    ranked,
    self_references,
    sets,
    two_references,
    universal,
    yearly,
)

__all__ = ["FAMILIES", "SHAPES", "Shape", "shape"]

FAMILIES = (
    filters,
    aggregates,
    groups,
    joins,
    nested,
    orders,
    per_parent,
    sets,
    comparing,
    yearly,
    ranked,
    universal,
    self_references,
    two_references,
    dates,
    bands,
)
"""The modules with shapes."""
