"""The registry of shapes by name; `shape` adds one of your own.

    @shape("my-shape")
    def my_shape(draft: Draft) -> Candidate: ...

A shape drafts one question. It may raise `Unfit` as often as it likes, need not look at results,
and does not say how hard it is: that is measured.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlgym.synthesis.drafting import Candidate, Draft
from toolgym.errors import ConfigurationError

Shape = Callable[[Draft], Candidate]

SHAPES: dict[str, Shape] = {}
"""All shapes, in the order in which they were added."""


def shape(name: str) -> Callable[[Shape], Shape]:
    """Add a function as the shape of this name.

    Raises:
        ConfigurationError: There is one of this name already.
    """

    def add(function: Shape) -> Shape:
        if name in SHAPES:
            raise ConfigurationError(f"there is a shape {name!r} already; take another name.")
        SHAPES[name] = function
        return function

    return add
