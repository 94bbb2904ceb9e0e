"""The limits of a run's guards, as lines that a plot can show.

A trainer's guards compare most metrics with the run's own first steps, so a threshold is no number
of the config but has to be worked out from the run: the median of its first steps, times what the
config says. The config is read from wherever in `config.json` the trainer keeps it; without one no
line is drawn, since a threshold that nothing acted upon would mislead.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolgym.report.plots.axes import is_drawable

Thresholds = Mapping[str, Any]


@dataclass(frozen=True)
class Limit:
    """A value that a guard acts below or above.

    Attributes:
        name: What it is, as a reader knows it.
        value: In the units of the metric.
        since: The step from which it holds.
    """

    name: str
    value: float
    since: int


def thresholds(config: Any) -> Thresholds:
    """The guards' settings in a config, at whatever depth; empty where there are none.

    >>> thresholds({"settings": {"guards": {"entropy_floor": 0.1}}})
    {'entropy_floor': 0.1}
    """
    if not isinstance(config, Mapping):
        return {}
    own = config.get("guards")
    if isinstance(own, Mapping) and "entropy_floor" in own:
        return own
    return next((found for inner in config.values() if (found := thresholds(inner))), {})


def limits(
    key: str, steps: Sequence[int], values: Sequence[float | None], guards: Thresholds
) -> list[Limit]:
    """The limits of one metric in one run.

    Args:
        key: The metric.
        steps: Those that were logged.
        values: Of the metric, as many.
        guards: From `thresholds`.
    """
    first, since = _first_steps(key, steps, values, guards.get("baseline_steps"))
    told = {"entropy": _entropy, "validity": _validity, "kl": _kl}.get(key)
    if told is None or not steps:
        return []
    switched_off = {name for name, actions in _actions(guards) if not actions}
    return [
        Limit(name, value, steps[0] if first is None or key == "kl" else since)
        for guard, name, value in told(guards, first)
        if guard not in switched_off
    ]


def _first_steps(
    key: str, steps: Sequence[int], values: Sequence[float | None], count: Any
) -> tuple[float | None, int]:
    """The median of the first steps, and the step after them; None while there are too few."""
    # A step without a single valid turn is no measure of what was healthy.
    counted = [
        place for place, v in enumerate(values) if v is not None and (v or key != "validity")
    ]
    if not isinstance(count, int) or count < 1 or len(counted) < count:
        return None, 0
    last = counted[count - 1]
    median = statistics.median(v for place in counted[:count] if (v := values[place]) is not None)
    return median, steps[min(last + 1, len(steps) - 1)]


Found = Iterator[tuple[str, str, float]]
"""The guard's name, the limit's name and its value."""


def _entropy(guards: Thresholds, first: float | None) -> Found:
    floors = [*_times(guards, "entropy_floor", first), *_plain(guards, "entropy_floor_nats")]
    ceilings = [*_times(guards, "entropy_ceiling", first), *_plain(guards, "entropy_ceiling_nats")]
    if floors:
        yield "entropy_floor", "floor", max(floors)
    if ceilings:
        yield "entropy_ceiling", "ceiling", min(ceilings)


def _validity(guards: Thresholds, first: float | None) -> Found:
    for floor in _times(guards, "min_validity", first):
        yield "validity", "floor", floor


def _kl(guards: Thresholds, first: float | None) -> Found:
    for ceiling in _plain(guards, "kl_ceiling"):
        yield "kl", "ceiling", ceiling


def _times(guards: Thresholds, key: str, first: float | None) -> list[float]:
    return [] if first is None else [share * first for share in _plain(guards, key)]


def _plain(guards: Thresholds, key: str) -> list[float]:
    value = guards.get(key)
    return [float(value)] if is_drawable(value) else []


def _actions(guards: Thresholds) -> Iterator[tuple[str, Sequence[Any]]]:
    actions = guards.get("actions")
    if isinstance(actions, Mapping):
        for name, listed in actions.items():
            if isinstance(listed, Sequence):
                yield str(name), listed
