"""95 % confidence intervals for shares, means over tasks, differences and means over seeds; pass@k.

Attempts at one task are correlated, so sixteen attempts at each of thirty tasks are less
informative than one attempt at each of 480 tasks. `mean_over_tasks` and `paired_difference` compute
the effective number of independent attempts and return Wilson's interval for this number, which is
also valid for shares of 0 and 1. These intervals generalize to other tasks from the same source,
but not to another training seed, another prompt, or tasks of another kind.

For means over seeds, `average` computes Student's interval.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolgym.errors import ConfigurationError

LEVEL: Final = 0.95
Z95: Final = 1.959963984540054
"""Half the width of the central 95 % interval of a normal distribution, in standard errors."""
LEAST_SEEDS: Final = 3
"""Minimum number of values for a mean with an interval. With two values, the interval would extend
12.7 standard errors to either side; with one value, it would be undefined.
"""
_PARTS: Final = 400  # number of intervals of Simpson's rule; even


def wilson_interval(successes: int, n: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a share of n independent outcomes (Wilson 1927).

    >>> [round(bound, 3) for bound in wilson_interval(8, 10)]
    [0.49, 0.943]
    """
    return _wilson(successes / n, n) if n else (0.0, 1.0)


def _wilson(p: float, n: float) -> tuple[float, float]:
    squared = Z95 * Z95
    center = p + squared / (2 * n)
    spread = Z95 * math.sqrt(p * (1 - p) / n + squared / (4 * n * n))
    scale = 1 + squared / n
    return max(0.0, (center - spread) / scale), min(1.0, (center + spread) / scale)


def pass_at(n: int, correct: int, k: int) -> float:
    """Return pass@k for n attempts, c of them correct.

    The value is 1 - C(n - c, k) / C(n, k) (Chen et al. 2021).

    >>> pass_at(4, 1, 2)
    0.5
    """
    if not 1 <= k <= n:
        raise ConfigurationError(f"pass@k needs 1 <= k <= n, got k={k}, n={n}.")
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


@dataclass(frozen=True)
class Effect:
    """A measured value with its 95 % interval.

    Attributes:
        value: The value; nan if there are no data.
        low: Lower end.
        high: Upper end.
    """

    value: float
    low: float
    high: float


def share(hits: int, of: int) -> Effect:
    """Return a share of independent outcomes with Wilson's interval."""
    return Effect(hits / of if of else math.nan, *wilson_interval(hits, of))


def mean_over_tasks(values: Sequence[float], tries: Sequence[int]) -> Effect:
    """Return the mean over attempts at several tasks, with an interval for similar tasks.

    The interval is Wilson's interval for the effective number of attempts (`_independent_tries`).
    The effective number of attempts is the number of tasks if there is one attempt per task, or if
    all attempts have the same outcome.

    Args:
        values: The mean of each task, between 0 and 1.
        tries: The number of attempts at each task, which is the weight of the task.

    >>> found = mean_over_tasks([1.0, 1.0, 0.0, 0.0], [8, 8, 8, 8])
    >>> [round(each, 3) for each in (found.value, found.low, found.high)]
    [0.5, 0.15, 0.85]
    """
    if not tries:
        return Effect(math.nan, 0.0, 1.0)
    total = sum(tries)
    value = math.fsum(map(math.prod, zip(values, tries, strict=True))) / total
    return Effect(value, *_wilson(value, _independent_tries([values], tries, total)))


def paired_difference(first: Sequence[float], second: Sequence[float], tries: int) -> Effect:
    """Return the second mean over tasks minus the first, with an interval for similar tasks.

    The difference is the mean gain minus the mean loss. Wilson's interval for the effective number
    of attempts is computed for the gain and for the loss. The two intervals are combined using the
    correlation of gain and loss.

    Args:
        first: The mean of the attempts at each task, between 0 and 1; at least one task.
        second: The same means for the other evaluation, with the tasks in the same order.
        tries: The total number of attempts at all tasks.

    >>> found = paired_difference([1.0] * 36 + [0.0] * 12 + [1.0] * 2, [1.0] * 48 + [0.0] * 2, 50)
    >>> [round(each, 3) for each in (found.value, found.low, found.high)]
    [0.2, 0.057, 0.34]
    """
    pairs = list(zip(first, second, strict=True))
    gains = [max(b - a, 0.0) for a, b in pairs]
    losses = [max(a - b, 0.0) for a, b in pairs]
    size = _independent_tries([losses, gains], [1] * len(pairs), tries)
    lost, gained = (math.fsum(each) / len(pairs) for each in (losses, gains))
    spreads = (
        math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(pairs))
        for values, mean in ((losses, lost), (gains, gained))
    )
    # No task has both a gain and a loss, so the covariance is that of two means whose product is 0.
    together = -lost * gained / math.prod(spreads) if lost and gained else 0.0
    return difference(
        Effect(lost, *_wilson(lost, size)), Effect(gained, *_wilson(gained, size)), together
    )


def difference(first: Effect, second: Effect, together: float = 0.0) -> Effect:
    """Return the second value minus the first, with an interval that combines the two intervals.

    The method is the square-and-add method of Newcombe 1998 (Statistics in Medicine 17, 2635-2650).

    Args:
        together: The correlation of the two values; 0 if they are independent.
    """
    value = second.value - first.value
    low = _joined(second.value - second.low, first.high - first.value, together)
    high = _joined(second.high - second.value, first.value - first.low, together)
    return Effect(value, max(-1.0, value - low), min(1.0, value + high))


def _joined(one: float, other: float, together: float) -> float:
    """Return the distance from a difference to its bound, given the corresponding distances of the
    two values."""
    return math.sqrt(max(0.0, one**2 - 2 * together * one * other + other**2))


def _independent_tries(
    columns: Sequence[Sequence[float]], weights: Sequence[int], most: int
) -> float:
    """Return the effective number of attempts: the number of independent attempts with the same
    variance.

    The variance of a mean of n independent attempts is p (1 - p) / n. The variance of a mean over
    tasks is estimated from the spread of the tasks. The effective number is the n for which the two
    variances are equal, the effective sample size of Korn and Graubard (1998), reduced for a small
    number of tasks. Fully correlated attempts at a task count as a single attempt, so the result is
    at least the number of tasks if all weights are equal.

    Args:
        columns: Values by task; the variances of several columns are added.
        weights: The weight of each task.
        most: The total number of attempts.
    """
    count, whole = len(weights), sum(weights)
    least = whole**2 / math.fsum(weight**2 for weight in weights)
    independent = clustered = 0.0
    for values in columns:
        pairs = list(zip(values, weights, strict=True))
        mean = math.fsum(value * weight for value, weight in pairs) / whole
        independent += mean * (1 - mean)
        clustered += math.fsum(((value - mean) * weight / whole) ** 2 for value, weight in pairs)
    if count < 2 or not independent:  # the correlation of attempts at the same task is unknown
        return least
    few = (Z95 / t_quantile(count - 1)) ** 2 * (count - 1) / count
    return max(least, independent / max(clustered, independent / most) * few)


def sign_test(more: int, fewer: int) -> float:
    """Return the p-value of the exact two-sided sign test.

    For paired proportions, this is McNemar's exact test.

    >>> sign_test(5, 0), sign_test(3, 3)
    (0.0625, 1.0)
    """
    count, least = more + fewer, min(more, fewer)
    tail = sum(math.comb(count, k) for k in range(least + 1))
    return min(1.0, 2 * tail / int(2**count))


def average(values: Sequence[float]) -> Effect:
    """Return a mean with Student's 95 % interval, for example over several seeds.

    Raises:
        ConfigurationError: The number of values is less than three.
    """
    count = len(values)
    if count < LEAST_SEEDS:
        raise ConfigurationError(
            f"a mean with an interval needs at least {LEAST_SEEDS} values, got {count}: run more"
            " seeds, or show the values themselves."
        )
    value = math.fsum(values) / count
    variance = math.fsum((each - value) ** 2 for each in values) / (count - 1)
    spread = math.sqrt(variance / count) * t_quantile(count - 1)
    return Effect(value, value - spread, value + spread)


@functools.lru_cache(maxsize=256)
def t_quantile(freedom: float) -> float:
    """Return half the width of Student's two-sided 95 % interval, in standard errors.

    With t = sqrt(n) sinh(u), the density of t with n degrees of freedom becomes cosh(u)^-n, which
    is smooth for every real n.

    >>> [round(t_quantile(n), 3) for n in (1, 1.5, 2, 9, 100)]
    [12.706, 6.017, 4.303, 2.262, 1.984]
    """
    ratio = math.lgamma(freedom / 2) - math.lgamma((freedom + 1) / 2)
    wanted = LEVEL * math.sqrt(math.pi) / 2 * math.exp(ratio)
    low, high = 0.0, 1 / math.sqrt(freedom)
    while _area(high, freedom) < wanted:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _area(middle, freedom) < wanted else (low, middle)
    return math.sqrt(freedom) * math.sinh(low)


def _area(end: float, freedom: float) -> float:
    """Return the integral of cosh(u)^-freedom from 0 to `end`, by Simpson's rule."""
    width = end / _PARTS
    heights = [math.pow(math.cosh(i * width), -freedom) for i in range(_PARTS + 1)]
    inner = 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2])
    return (heights[0] + inner + heights[-1]) * width / 3
