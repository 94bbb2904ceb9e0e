"""What a run's metrics are as curves: one value a step, smoothed, with the spread around it.

A metric that is missing, null or no number in some step leaves a gap there. A step that was logged
twice counts as it was logged last, since that is what a resumed run went on from.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolgym.report.axes import is_drawable
from toolgym.report.plot import Values


@dataclass(frozen=True)
class Curve:
    """One metric of one run; all sequences are as long as `steps`."""

    steps: tuple[int, ...]
    values: tuple[float | None, ...]

    @property
    def known(self) -> list[float]:
        """The values that exist, in order."""
        return [value for value in self.values if value is not None]


def curve(records: Sequence[dict[str, Any]], key: str) -> Curve | None:
    """One metric over the steps of one phase; None where no step has it."""
    by_step = {record["step"]: record.get(key) for record in records}
    steps = tuple(sorted(by_step))
    found = (by_step[step] for step in steps)
    values = tuple(float(value) if is_drawable(value) else None for value in found)
    return Curve(steps, values) if any(value is not None for value in values) else None


def window(steps: int) -> int:
    """Over how many steps a curve is smoothed: a tenth of them, 1 to 25.

    >>> window(60), window(5)
    (6, 1)
    """
    return min(25, max(1, steps // 10))


def running_mean(values: Values, width: int) -> list[float | None]:
    """Mean of the last `width` values that exist among the last `width`; None where there is none.

    >>> running_mean([1.0, 3.0, None, 5.0], 2)
    [1.0, 2.0, 3.0, 5.0]
    """
    latest: deque[float | None] = deque(maxlen=width)
    means: list[float | None] = []
    for value in values:
        latest.append(value)
        known = [item for item in latest if item is not None]
        means.append(math.fsum(known) / len(known) if known else None)
    return means


def band(middle: Values, spread: Values) -> tuple[list[float | None], list[float | None]]:
    """Lower and upper edge of middle plus and minus spread; None in both where one is missing."""
    pairs = [
        (None, None) if m is None or s is None else (m - s, m + s)
        for m, s in zip(middle, spread, strict=True)
    ]
    return [low for low, _ in pairs], [high for _, high in pairs]
