"""Values in questions and SQL: numbers with units, and strings in quotes unless they are names."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from sqlgym.synthesis.schema import Field, Role

_PROPER = re.compile(
    r"[A-Z\u00c0-\u00de][\w'’.-]+"
    r"(?: (?:(?:[A-Z\u00c0-\u00de][\w'’.-]*)|of|the|and|de|la|von|van|in))*"
)

_NO_NAMES = frozenset(["any", "all", "none", "other", "both", "same", "each", "yes", "no"])


def amount(field: Field, value: float) -> str:
    """Return a number with its unit, if the column has one."""
    return f"{value:.10g} {field.noun.unit}".rstrip()


def quoted_text(value: str) -> str:
    """Return a string in quotes, or unquoted if it is spelled like a proper name.

    >>> quoted_text("New York"), quoted_text("on time"), quoted_text("O'Hara"), quoted_text("A")
    ('New York', "'on time'", "O'Hara", "'A'")
    """
    is_proper = _PROPER.fullmatch(value) and value.lower() not in _NO_NAMES
    if is_proper and not value.isupper() and not value.endswith("."):
        return value
    return f'"{value}"' if "'" in value else f"'{value}'"


def quoted_texts(values: Sequence[str]) -> list[str]:
    """Return several strings, either all quoted or all unquoted.

    >>> quoted_texts(["Audi", "BMW"])
    ["'Audi'", "'BMW'"]
    """
    said = [quoted_text(value) for value in values]
    if said == list(values):
        return said
    return [f'"{value}"' if "'" in value else f"'{value}'" for value in values]


def threshold(field: Field, rng: random.Random) -> float | None:
    """Return a number between the smallest and the greatest value of a column, or None."""
    numbers, every = field.distinct_numbers, field.numbers
    if len(numbers) < 3:
        return None
    chosen = every[int(len(every) * (0.15 + 0.7 * rng.random()))]
    if field.role is Role.YEAR:
        return chosen
    rounded = _rounded(chosen, numbers[-1] - numbers[0])
    inside = (
        n
        for n in (rounded, float(f"{chosen:.1g}"), float(f"{chosen:.4g}"))
        if numbers[0] < n < numbers[-1]
    )
    return next(inside, None)


def _rounded(value: float, spread: float) -> float:
    """Round to a step of about a twentieth of the range: 1, 5, 10, 50, ..."""
    step = 10.0 ** (len(str(int(spread))) - 2) if spread >= 10 else 0.1 if spread < 3 else 0.5
    if spread / step > 20:
        step *= 5
    return round(round(value / step) * step, 4)


def number_sql(value: float) -> str:
    """Return a number as an SQL literal; a whole number has no decimal point."""
    return str(int(value)) if value.is_integer() else repr(round(value, 6))
