"""Text and numbers as a page shows them: what cannot be printed made visible, markup escaped.

What a model, a database or a stranger's file wrote may hold control characters, halves of
characters and tags. `toolgym.sanitize.visible` gives each of the first two a sign, `element` here
escapes the third; nothing else in reports writes markup in Python. Numbers get as many decimals as
a reader can use.
"""

from __future__ import annotations

import math
from html import escape
from typing import Literal, TypeGuard

from toolgym.sanitize import visible

LARGEST = 1e150
"""Beyond this a number is treated as missing: differences of larger ones overflow."""

Unit = Literal["share", "number"]


def element(name: str, *children: str, text: str = "", **attributes: str | float) -> str:
    """One element of SVG or HTML.

    Args:
        children: Markup made by this function.
        text: Plain text, escaped here.
        attributes: A trailing underscore is dropped (`class_`), others become hyphens; numbers are
            rounded to a tenth of a unit.
    """
    pairs = (
        f' {key.rstrip("_").replace("_", "-")}="{escape(_attribute(value))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{''.join(pairs)}>{escape(visible(text))}{''.join(children)}</{name}>"


def _attribute(value: str | float) -> str:
    return visible(value) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


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
