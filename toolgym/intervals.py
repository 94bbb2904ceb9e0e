"""95 % intervals of a share, of a mean, and of differences of each; and pass@k.

Shares have Wilson's interval and their differences Newcombe's, of two samples or of pairs, which
hold where a share is 0 or 1, as shares of collapsed trainings often are. Means have Student's: of
the differences where two samples are paired, as cells of an experiment that share their seeds
(start and order of tasks are then the same in both), else Welch's; or that of the bootstrap.
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
    """A measured value with its interval, over some seeds.

    Attributes:
        value: nan where nothing was measured.
        low: Lower end; -inf where the seeds do not bound it.
        high: Upper end.
        seeds: Of the smaller cell.
        exact: There is no chance in it, so the interval has no width.
    """

    value: float
    low: float
    high: float
    seeds: int
    exact: bool = False


def share(hits: int, of: int) -> Effect:
    """A share with Wilson's interval."""
    low, high = wilson_interval(hits, of)
    return Effect(hits / of if of else math.nan, low, high, of)


def share_difference(hits: int, of: int, other_hits: int, other_of: int) -> Effect:
    """One share less another, with Newcombe's interval (Newcombe 1998, method 10).

    >>> found = share_difference(9, 10, 3, 10)
    >>> [round(each, 3) for each in (found.value, found.low, found.high)]
    [0.6, 0.171, 0.809]
    """
    one, other = share(hits, of), share(other_hits, other_of)
    value = one.value - other.value
    low = math.hypot(one.value - one.low, other.high - other.value)
    high = math.hypot(one.high - one.value, other.value - other.low)
    if not of or not other_of:
        return Effect(math.nan, -1.0, 1.0, 0)
    return Effect(value, max(-1.0, value - low), min(1.0, value + high), min(of, other_of))


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
        return Effect(math.nan, -1.0, 1.0, 0)
    one, other = share(both + one_only, count), share(both + other_only, count)
    margins = (both + one_only, other_only + neither, both + other_only, one_only + neither)
    excess = both * neither - one_only * other_only
    corrected = max(excess - count / 2, 0.0) if excess > 0 else float(excess)
    together = corrected / math.sqrt(math.prod(margins)) if all(margins) else 0.0
    value = (one_only - other_only) / count
    low = _joined(one.value - one.low, other.high - other.value, together)
    high = _joined(one.high - one.value, other.value - other.low, together)
    return Effect(value, max(-1.0, value - low), min(1.0, value + high), count)


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
        return Effect(math.nan, -math.inf, math.inf, 0)
    draw = random.Random("toolgym-bootstrap")
    ordered = sorted(values)  # the order in which they come decides nothing
    means = sorted(math.fsum(draw.choices(ordered, k=count)) / count for _ in range(rounds))
    cut = round(rounds * (1 - LEVEL) / 2)
    return Effect(math.fsum(ordered) / count, means[cut], means[rounds - 1 - cut], count)


def average(values: Sequence[float]) -> Effect:
    """A mean with Student's interval."""
    count = len(values)
    if count < 2:
        return Effect(values[0] if values else math.nan, -math.inf, math.inf, count)
    value = math.fsum(values) / count
    spread = math.sqrt(_variance(values) / count) * t_quantile(count - 1)
    return Effect(value, value - spread, value + spread, count)


def paired_difference(values: Sequence[float], others: Sequence[float]) -> Effect:
    """The mean difference of two cells, seed by seed; as long as each other."""
    return average([one - other for one, other in zip(values, others, strict=True)])


def welch_difference(values: Sequence[float], others: Sequence[float]) -> Effect:
    """The difference of two means of seeds that have nothing in common (Welch 1947)."""
    count = min(len(values), len(others))
    if count < 2:
        return Effect(math.nan, -math.inf, math.inf, count)
    value = math.fsum(values) / len(values) - math.fsum(others) / len(others)
    parts = [_variance(each) / len(each) for each in (values, others)]
    total = sum(parts)
    if not total:
        return Effect(value, value, value, count)
    below = sum(
        part**2 / (len(each) - 1) for part, each in zip(parts, (values, others), strict=True)
    )
    spread = math.sqrt(total) * t_quantile(total**2 / below)
    return Effect(value, value - spread, value + spread, count)


def _variance(values: Sequence[float]) -> float:
    centre = math.fsum(values) / len(values)
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)


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
