"""Runs that differ in nothing but their seed, taken together.

One run of a training says little about its settings: another seed moves the result by several
points. So where a page shows several seeds of the same settings, one row tells what they reached
together, and how far apart they lie.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolgym.report.plots.axes import is_drawable, number_text
from toolgym.report.tables import NOTHING, settings
from toolgym.report.view import Measured, Record, RunView

SEED: Final = "seed"
_LONGEST: Final = 3  # settings that name a group; the table of differences has all


@dataclass(frozen=True)
class Together:
    """One row: what the seeds of the same settings reached.

    Attributes:
        name: What sets the group apart from the others, or the labels of its runs.
        styles: Numbers of its runs' colours.
        before: Mean accuracy before, and its standard error.
        after: The same after.
        gain: The same of what each run gained.
        each: The accuracies after, run by run.
    """

    name: str
    styles: tuple[int, ...]
    before: str
    after: str
    gain: str
    each: str


def together(runs: Sequence[RunView]) -> list[Together]:
    """A row for each set of runs that differ by their seed only; none where every run is alone."""
    groups: dict[str, list[RunView]] = {}
    for run in runs:
        groups.setdefault(json.dumps(_unseeded(run.config), sort_keys=True), []).append(run)
    if all(len(group) == 1 for group in groups.values()):
        return []
    names = _names([group[0] for group in groups.values()])
    return [row for pair in zip(names, groups.values(), strict=True) for row in _rows(*pair)]


def _unseeded(value: Any) -> Any:
    """A config without its seeds, at any depth."""
    if isinstance(value, Mapping):
        return {key: _unseeded(inner) for key, inner in value.items() if key != SEED}
    return value


def _names(first: Sequence[RunView]) -> list[str]:
    """What sets each group apart: the settings on which the groups do not agree."""
    if len(first) == 1:
        return ["all runs"]
    rows = [row for row in settings([_unseeded(run.config) for run in first]) if row.differs]
    rows = [row for row in rows if not any(row.is_told_by(other) for other in rows)]
    rows = [row for row in rows if not row.is_partial] or rows
    return [
        ", ".join(f"{row.key.rpartition('.')[2]} {row.values[place]}" for row in rows[:_LONGEST])
        for place in range(len(first))
    ]


def _rows(name: str, runs: Sequence[RunView]) -> Iterator[Together]:
    """A row for each evaluation that all of the runs have."""
    for evaluations in zip(*(run.evaluations for run in runs), strict=False):
        on = {each.name for each in evaluations}
        told = f"{name}, {on.pop()}" if len(on) == 1 and all(on) else name
        yield _row(told, runs, evaluations)


def _row(name: str, runs: Sequence[RunView], evaluations: Sequence[Measured]) -> Together:
    before = [_accuracy(each.before) for each in evaluations]
    after = [_accuracy(each.after) for each in evaluations]
    gains = [
        late - early
        for early, late in zip(before, after, strict=True)
        if early is not None and late is not None
    ]
    return Together(
        name=name,
        styles=tuple(run.style for run in runs),
        before=_mean([value for value in before if value is not None]),
        after=_mean([value for value in after if value is not None]),
        gain=_mean(gains, sign="+"),
        each=", ".join(NOTHING if value is None else _points(value) for value in after),
    )


def _accuracy(evaluation: Record) -> float | None:
    accuracy = evaluation.get("accuracy")
    return float(accuracy) if is_drawable(accuracy) else None


def _mean(values: Sequence[float], sign: str = "") -> str:
    """A mean with its standard error, in percent."""
    if not values:
        return NOTHING
    mean = statistics.fmean(values)
    told = f"{sign if mean > 0 else ''}{_points(mean)}"
    if len(values) == 1:
        return f"{told} %"
    error = statistics.stdev(values) / math.sqrt(len(values))
    return f"{told} ± {_points(error)} %"


def _points(share: float) -> str:
    return number_text(share, 0.001, "share").removesuffix(" %")
