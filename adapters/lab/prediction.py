"""A claim as something that numbers can confirm or refute, and the verdict on it.

A prediction names a direction and a size before anything is run. The verdict is the interval's:

    A is above B by at least s     confirmed: all of the interval lies above s
                                   refuted:   all of it lies below s
    nothing changes by s or more   confirmed: all of it lies inside (-s, s)
                                   refuted:   all of it lies outside
    otherwise                      inconclusive: more seeds are needed

A refuted claim is a result and no error. What was run at smoke size is inconclusive by design,
unless it is arithmetic and has no chance in it.

Every prediction has a name, its key in `results.json`, and a claim in a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from toolgym.intervals import (
    Effect,
    average,
    paired_difference,
    share,
    share_difference,
    welch_difference,
)

Record = Mapping[str, Any]
Cells = Mapping[str, Mapping[int, Record]]
"""By cell, by seed: what the units that are done have recorded."""
Outcome = Literal["confirmed", "refuted", "inconclusive"]
Key = str | Callable[[Record], float | None]
"""A key of a record, or what to make of one; None leaves the seed out."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on a prediction.

    Attributes:
        sentence: It in words, with the numbers.
    """

    outcome: Outcome
    effect: Effect
    sentence: str


@dataclass(frozen=True)
class Prediction:
    """A checked claim. Made by the functions below.

    Attributes:
        effect: Measures it.
        size: See the module.
        within: Whether nothing is to change by `size`, instead of something to lie above it.
        unit: Whether the effect is a share, told in percent, or a number.
    """

    name: str
    claim: str
    effect: Callable[[Cells], Effect]
    size: float
    within: bool = False
    unit: Literal["share", "number"] = "number"

    def verdict(self, cells: Cells, *, smoke: bool = False) -> Verdict:
        """Measure, and judge.

        Args:
            smoke: It was run only to see that it runs.
        """
        effect = self.effect(cells)
        outcome = _outcome(effect, self.size, self.within)
        why = ""
        if smoke and not effect.exact:
            outcome, why = "inconclusive", " Smoke size: inconclusive by design."
        elif math.isnan(effect.value):
            why = " Nothing was measured yet."
        return Verdict(outcome, effect, self._told(effect) + why)

    def _told(self, effect: Effect) -> str:
        size = self._text(self.size)
        size = f"less than {size} either way" if self.within else f"at least {size}"
        if math.isnan(effect.value):
            return f"Predicted: {size}."
        value = f"{self._text(effect.value)}"
        if effect.exact:
            return f"Predicted: {size}. Computed: {value}."
        ends = ", ".join(self._number(end) for end in (effect.low, effect.high))
        seeds = "1 seed" if effect.seeds == 1 else f"{effect.seeds} seeds"
        return f"Predicted: {size}. Measured: {value} [{ends}], {seeds}."

    def _text(self, value: float) -> str:
        return self._number(value) + (" points" if self.unit == "share" else "")

    def _number(self, value: float) -> str:
        if not math.isfinite(value):
            return "unbounded"
        return f"{100 * value:.1f}" if self.unit == "share" else f"{value:.3g}"


def _outcome(effect: Effect, size: float, within: bool) -> Outcome:
    """The rule of the module; an exact effect may lie on the bound."""
    if math.isnan(effect.value):
        return "inconclusive"
    low, high = effect.low, effect.high
    if effect.exact:
        holds = abs(effect.value) < size if within else effect.value >= size
        return "confirmed" if holds else "refuted"
    if within:
        if -size < low and high < size:
            return "confirmed"
        return "refuted" if low > size or high < -size else "inconclusive"
    if low > size:
        return "confirmed"
    return "refuted" if high < size else "inconclusive"


def values_of(cells: Cells, cell: str, key: Key) -> dict[int, float]:
    """A number of each seed of a cell, those left out that have none."""
    values = {}
    for seed, record in sorted(cells.get(cell, {}).items()):
        value = key(record) if callable(key) else record.get(key)
        if value is not None and math.isfinite(value):
            values[seed] = float(value)
    return values


def share_above(
    name: str, claim: str, cell: str, key: Key, *, than: str | None = None, by: float
) -> Prediction:
    """The share of seeds of which something is true is larger in a cell than in another.

    Args:
        than: The other cell; None: than 0.
    """

    def effect(cells: Cells) -> Effect:
        hits, of = _counted(cells, cell, key)
        if than is None:
            return share(hits, of)
        return share_difference(hits, of, *_counted(cells, than, key))

    return Prediction(name, claim, effect, by, unit="share")


def share_unchanged(
    name: str, claim: str, cell: str, key: Key, *, than: str, within: float
) -> Prediction:
    """The share of seeds of which something is true differs by less than `within`."""
    other = share_above(name, claim, cell, key, than=than, by=within)
    return Prediction(name, claim, other.effect, within, within=True, unit="share")


def mean_above(
    name: str,
    claim: str,
    cell: str,
    key: Key,
    *,
    than: str | None = None,
    by: float,
    paired: bool = True,
    unit: Literal["share", "number"] = "number",
) -> Prediction:
    """The mean of a number over seeds is larger in a cell than in another, or than 0.

    Args:
        than: The other cell; None: than 0.
        paired: Both cells begin alike with one seed, so that seeds are compared with themselves.
    """

    def effect(cells: Cells) -> Effect:
        own = values_of(cells, cell, key)
        measured = average(list(own.values())) if than is None else _difference(cells, own)
        return measured if unit == "number" else _as_share(measured)

    def _difference(cells: Cells, own: dict[int, float]) -> Effect:
        others = values_of(cells, than or "", key)
        if not paired:
            return welch_difference(list(own.values()), list(others.values()))
        both = sorted(own.keys() & others.keys())
        return paired_difference([own[s] for s in both], [others[s] for s in both])

    return Prediction(name, claim, effect, by, unit=unit)


def mean_unchanged(
    name: str,
    claim: str,
    cell: str,
    key: Key,
    *,
    than: str | None = None,
    within: float,
    paired: bool = True,
    unit: Literal["share", "number"] = "number",
) -> Prediction:
    """The mean of a number differs by less than `within`; arguments as for `mean_above`."""
    other = mean_above(name, claim, cell, key, than=than, by=within, paired=paired, unit=unit)
    return Prediction(name, claim, other.effect, within, within=True, unit=unit)


def exact(
    name: str,
    claim: str,
    value: Callable[[Cells], float],
    *,
    at_least: float | None = None,
    within: float | None = None,
) -> Prediction:
    """Arithmetic: a number without chance is at least so much, or nearer to 0 than so much.

    Args:
        value: The number, from any one seed; nan where it is not there yet.

    Raises:
        ValueError: Not exactly one of the two is given.
    """
    if (at_least is None) == (within is None):
        raise ValueError("give at_least or within, and not both.")

    def effect(cells: Cells) -> Effect:
        number = value(cells)
        return Effect(number, number, number, 1, exact=True)

    size = at_least if at_least is not None else within
    return Prediction(name, claim, effect, float(size or 0.0), within=within is not None)


def _as_share(effect: Effect) -> Effect:
    """The effect with its interval cut off where shares, and differences of them, end."""
    return replace(effect, low=max(effect.low, -1.0), high=min(effect.high, 1.0))


def first_record(cells: Cells, cell: str) -> Record:
    """Any record of a cell, for arithmetic; empty where none is there yet."""
    records: Sequence[Record] = [record for _, record in sorted(cells.get(cell, {}).items())]
    return records[0] if records else {}


def first_number(cells: Cells, cell: str, key: str) -> float:
    """A number of any record of a cell, for arithmetic; nan where none is there yet."""
    return float(first_record(cells, cell).get(key, math.nan))


def _counted(cells: Cells, cell: str, key: Key) -> tuple[int, int]:
    values = values_of(cells, cell, key)
    return sum(bool(value) for value in values.values()), len(values)
