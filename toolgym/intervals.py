"""95 % intervals of a share, of a mean, and of a difference of paired shares; and pass@k.

Shares have Wilson's interval and differences of paired shares Newcombe's, which hold where a share
is 0 or 1. Means have Student's interval or that of the bootstrap.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolgym.errors import ConfigurationError

LEVEL: Final = 0.95
Z95: Final = 1.959963984540054
"""Standard errors that 95 % of a normal distribution lie within, to either side."""
_PARTS: Final = 400  # of Simpson's rule; an even number


def wilson_interval(successes: int, n: int) -> tuple[float, float]:
    """95 % Wilson score interval of a proportion (Wilson 1927).

    >>> [round(bound, 3) for bound in wilson_interval(8, 10)]
    [0.49, 0.943]
    """
    if n == 0:
        return 0.0, 1.0
    p, squared = successes / n, Z95 * Z95
    centre = p + squared / (2 * n)
    spread = Z95 * math.sqrt(p * (1 - p) / n + squared / (4 * n * n))
    scale = 1 + squared / n
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def pass_at(n: int, correct: int, k: int) -> float:
    """Chance that k of n tries hold a correct one: 1 - C(n - c, k) / C(n, k) (Chen et al. 2021).

    >>> pass_at(4, 1, 2)
    0.5
    """
    if not 1 <= k <= n:
        raise ConfigurationError(f"pass@k needs 1 <= k <= n, got k={k}, n={n}.")
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


@dataclass(frozen=True)
class Effect:
    """A measured value with its interval.

    Attributes:
        value: nan where nothing was measured.
        low: Lower end; -inf where the values do not bound it.
        high: Upper end.
    """

    value: float
    low: float
    high: float


def share(hits: int, of: int) -> Effect:
    """A share with Wilson's interval."""
    low, high = wilson_interval(hits, of)
    return Effect(hits / of if of else math.nan, low, high)


def paired_share_difference(both: int, one_only: int, other_only: int, neither: int) -> Effect:
    """One share less another of the same things, with the interval of Newcombe 1998, method 10.

    That is "Improved confidence intervals for the difference between binomial proportions based on
    paired data", Statistics in Medicine 17, 2635-2650: the intervals of the two shares, joined by
    how much they go together.

    Args:
        both: Things of which both hold.
        one_only: Those of which the first alone holds.
        other_only: Those of which the second alone holds.
        neither: Those of which none holds.

    >>> found = paired_share_difference(36, 12, 2, 0)
    >>> [round(each, 4) for each in (found.value, found.low, found.high)]
    [0.2, 0.0569, 0.3404]
    """
    count = both + one_only + other_only + neither
    if not count:
        return Effect(math.nan, -1.0, 1.0)
    one, other = share(both + one_only, count), share(both + other_only, count)
    margins = (both + one_only, other_only + neither, both + other_only, one_only + neither)
    excess = both * neither - one_only * other_only
    corrected = max(excess - count / 2, 0.0) if excess > 0 else float(excess)
    together = corrected / math.sqrt(math.prod(margins)) if all(margins) else 0.0
    value = (one_only - other_only) / count
    low = _joined(one.value - one.low, other.high - other.value, together)
    high = _joined(one.high - one.value, other.value - other.low, together)
    return Effect(value, max(-1.0, value - low), min(1.0, value + high))


def _joined(one: float, other: float, together: float) -> float:
    """The distance of a difference's bound, from those of its two sides."""
    return math.sqrt(max(0.0, one**2 - 2 * together * one * other + other**2))


def sign_test(more: int, fewer: int) -> float:
    """p-value of the exact two-sided sign test.

    For pairs of shares this is McNemar's exact test.

    >>> sign_test(5, 0), sign_test(3, 3)
    (0.0625, 1.0)
    """
    count, least = more + fewer, min(more, fewer)
    tail = sum(math.comb(count, k) for k in range(least + 1))
    return min(1.0, 2 * tail / int(2**count))


def bootstrap_mean(values: Sequence[float], rounds: int = 10_000) -> Effect:
    """A mean with the percentile interval of the bootstrap (Efron 1979), always the same draws.

    >>> found = bootstrap_mean([0.0, 0.5, 0.5, 1.0] * 10)
    >>> found.value, 0.35 < found.low < 0.45, 0.55 < found.high < 0.65
    (0.5, True, True)
    """
    count = len(values)
    if not count:
        return Effect(math.nan, -math.inf, math.inf)
    draw = random.Random("toolgym-bootstrap")
    ordered = sorted(values)  # the order in which they come decides nothing
    means = sorted(math.fsum(draw.choices(ordered, k=count)) / count for _ in range(rounds))
    cut = round(rounds * (1 - LEVEL) / 2)
    return Effect(math.fsum(ordered) / count, means[cut], means[rounds - 1 - cut])


def average(values: Sequence[float]) -> Effect:
    """A mean with Student's interval."""
    count = len(values)
    if count < 2:
        return Effect(values[0] if values else math.nan, -math.inf, math.inf)
    value = math.fsum(values) / count
    variance = math.fsum((each - value) ** 2 for each in values) / (count - 1)
    spread = math.sqrt(variance / count) * t_quantile(count - 1)
    return Effect(value, value - spread, value + spread)


@functools.lru_cache(maxsize=256)
def t_quantile(freedom: float) -> float:
    """The number of standard errors that Student's two-sided interval reaches.

    With t = sqrt(n) tan(a) the density of t with n degrees of freedom becomes cos(a)^(n - 1).

    >>> [round(t_quantile(n), 3) for n in (1, 2, 9, 100)]
    [12.706, 4.303, 2.262, 1.984]
    """
    whole = _area(math.pi / 2, freedom)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _area(middle, freedom) < LEVEL * whole else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _area(angle: float, freedom: float) -> float:
    """The integral of cos(a)^(freedom - 1) from 0, by Simpson's rule."""
    width = angle / _PARTS
    heights = [math.pow(max(math.cos(i * width), 0.0), freedom - 1) for i in range(_PARTS + 1)]
    inner = 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2])
    return (heights[0] + inner + heights[-1]) * width / 3
