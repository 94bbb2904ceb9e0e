"""Numbers as a page shows them, with as many decimals as a reader can use."""

from __future__ import annotations

import math
from typing import Literal, TypeGuard

LARGEST = 1e150
"""Beyond this a number is treated as missing: differences of larger ones overflow."""

Unit = Literal["share", "number"]


def is_drawable(value: object) -> TypeGuard[float]:
    """A finite number of a size that can be drawn; nan, None and text are gaps."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < LARGEST  # False for nan too
    )


def number_text(value: float, step: float, unit: Unit) -> str:
    """A value with as many decimals as a step between two values needs.

    >>> number_text(0.25, 0.05, "number"), number_text(0.25, 0.05, "share")
    ('0.25', '25 %')
    """
    if unit == "share":
        value, step = value * 100, step * 100
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 0
    is_extreme = abs(value) >= 1e6 or decimals > 6
    text = f"{value:.3g}" if is_extreme else f"{value:.{decimals}f}"
    text = text.replace("-", "\N{MINUS SIGN}") if float(text) else text.replace("-", "")
    return f"{text} %" if unit == "share" else text


def exact_text(value: float | None, unit: Unit) -> str:
    """A value for a table: four digits, a share in percent with one decimal; a dash for none.

    >>> exact_text(0.0123456, "number"), exact_text(0.25, "share"), exact_text(None, "share")
    ('0.01235', '25.0 %', '\N{EN DASH}')
    """
    if not is_drawable(value):
        return "\N{EN DASH}"
    if unit == "share":
        return number_text(value, 0.001, "share")
    text = f"{value:,}" if isinstance(value, int) or float(value).is_integer() else f"{value:.4g}"
    return text.removesuffix(".0").replace("-", "\N{MINUS SIGN}", 1)
