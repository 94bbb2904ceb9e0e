"""Stand-in."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlgym.synthesis.drafting import Candidate, Draft
from sqlgym.synthesis.shapes import SHAPES


@dataclass(frozen=True)
class Template:
    name: str
    weight: float
    draft: Callable[[Draft], Candidate]


TEMPLATES = {name: Template(name, 1.0, draft) for name, draft in SHAPES.items()}
