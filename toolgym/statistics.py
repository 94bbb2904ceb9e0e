"""Tables about rollouts, as a family returns them to `toolgym stats`.

A family counts what only it understands (workflows, queries) and returns tables and charts; the
command and the page know how a table is printed and nothing of what is in it. A share carries its
counts, so that its 95 % interval comes from one place and no share is told without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from markupsafe import Markup

from toolgym.intervals import Z95, wilson_interval
from toolgym.records import EpisodeRecord

Rollout = EpisodeRecord | Mapping[str, Any]
"""A finished episode: a record, or a line of a run's `rollouts.jsonl` with `phase` and `step`."""

NOTHING = "\N{EN DASH}"


@dataclass(frozen=True)
class Share:
    """A share as counts, with its 95 % Wilson interval.

    The interval takes what was counted for independent. Two things that one rollout wrote are not,
    and rollouts of one task not quite, so it is a little too narrow for them.

    >>> str(Share(115, 326)), str(Share(0, 0))
    ('35.3 % [30.3, 40.6]', '\N{EN DASH}')
    """

    count: int
    of: int

    @property
    def value(self) -> float | None:
        """The share in [0, 1]; None of nothing."""
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float]:
        """Its 95 % Wilson interval."""
        return wilson_interval(self.count, self.of)

    def __str__(self) -> str:
        if self.value is None:
            return NOTHING
        low, high = self.interval
        return f"{100 * self.value:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"

    def to_json(self) -> dict[str, Any]:
        """The counts, the share (null of nothing) and the interval."""
        bounds = list(self.interval) if self.of else None
        return {"count": self.count, "of": self.of, "share": self.value, "interval": bounds}


@dataclass(frozen=True)
class Mean:
    """A mean with the 95 % interval that its standard error gives.

    Attributes:
        error: Its standard error; nan for fewer than two.
        of: Over how many.

    >>> str(Mean.of_counts({0.5: 2, 0.7: 2})), str(Mean.of_counts({0.5: 1}))
    ('0.600 [0.487, 0.713]', '0.500')
    """

    value: float
    error: float
    of: int

    @classmethod
    def of_counts(cls, counts: Mapping[float, int]) -> Mean:
        """The mean of numbers, each as often as it is counted; nan of nothing."""
        of = sum(counts.values())
        if not of:
            return cls(math.nan, math.nan, 0)
        ordered = sorted(counts.items())  # so that no order of counting changes a digit
        value = math.fsum(number * count for number, count in ordered) / of
        squares = math.fsum((number - value) ** 2 * count for number, count in ordered)
        return cls(value, math.sqrt(squares / (of - 1) / of) if of > 1 else math.nan, of)

    @property
    def interval(self) -> tuple[float, float]:
        """Its 95 % interval, by the normal distribution; nan for fewer than two."""
        return self.value - Z95 * self.error, self.value + Z95 * self.error

    def __str__(self) -> str:
        if not self.of:
            return NOTHING
        low, high = (f"{_number_text(end)}" for end in self.interval)
        return _number_text(self.value) + (f" [{low}, {high}]" if self.of > 1 else "")

    def to_json(self) -> dict[str, Any]:
        """The mean, its interval (null for fewer than two) and the count."""
        value = None if math.isnan(self.value) else self.value
        return {
            "mean": value,
            "interval": list(self.interval) if self.of > 1 else None,
            "of": self.of,
        }


def _number_text(number: float) -> str:
    """Three decimals; a zero has no sign."""
    return f"{0.0 if abs(number) < 5e-4 else number:.3f}"


Cell = str | int | float | Share | Mean | None


def cell_text(cell: Cell) -> str:
    """A cell as a person reads it; a dash for what is none.

    >>> [cell_text(cell) for cell in ("a -> b", 1234, 0.25, None)]
    ['a -> b', '1,234', '0.250', '\N{EN DASH}']
    """
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return NOTHING
    if isinstance(cell, float):
        return f"{cell:.3f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        name: Its key in JSON.
        columns: Their names.
        rows: As long as `columns` each.
        note: How to read it, if the columns do not say it.
        is_key: A report shows it at once, where it folds the others.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    is_key: bool = False

    def to_json(self) -> list[dict[str, Any]]:
        """One object per row; what is nan becomes null."""
        return [dict(zip(self.columns, map(_plain, row), strict=True)) for row in self.rows]

    def is_text(self, column: int) -> bool:
        """Whether a column holds words, which stand to the left, and no numbers."""
        cells = [row[column] for row in self.rows if row[column] is not None]
        return all(isinstance(cell, str) for cell in cells)


def _plain(cell: Cell) -> Any:
    if isinstance(cell, Share | Mean):
        return cell.to_json()
    return None if isinstance(cell, float) and math.isnan(cell) else cell


@dataclass(frozen=True)
class LegendEntry:
    """One series of a plot.

    Attributes:
        key: Names it inside the plot's data.
        style: The number of its colour and dashes.
        run: The number of the run that it is of, where a page shows several; else None.
        mark: How its key looks in a legend.
    """

    key: str
    label: str
    style: int
    run: int | None = None
    mark: Literal["line", "bar", "point"] = "line"


@dataclass(frozen=True)
class Drawing:
    """A plot as data: a specification for the library that draws it, and a table for who reads.

    Attributes:
        spec: A Vega-Lite specification with its data in it.
        words: What it shows, in a sentence or a few.
        entries: Its series.
        columns: Names of the columns of its table; the first says what a row is of.
        rows: What it shows in numbers, as text.
        axis: Plots with the same name of an axis are zoomed together; empty for none.
        is_share: Values are shares, and written in percent.
    """

    spec: dict[str, Any]
    words: str
    entries: tuple[LegendEntry, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    axis: str = ""
    is_share: bool = False


@dataclass(frozen=True)
class Chart:
    """What a page shows under a title: a plot, or a picture that is markup already.

    Attributes:
        has_legend: The title does not say by itself what is drawn.
        picture: All text in it escaped.
    """

    title: str
    note: str
    drawing: Drawing | None = None
    has_legend: bool = False
    picture: Markup = field(default_factory=Markup)


@dataclass(frozen=True)
class Statistics:
    """The statistics of a set of rollouts, by their family.

    Attributes:
        charts: Plots of them, for a page.
        pictures: Of what was written, such as of the favourites.
    """

    tables: tuple[Table, ...]
    charts: tuple[Chart, ...] = ()
    pictures: tuple[Chart, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The rows of each table, by its name."""
        return {table.name: table.to_json() for table in self.tables}

    def __getitem__(self, name: str) -> Table:
        """A table by its name.

        Raises:
            KeyError: There is none of that name.
        """
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(name)


def recorded_kwargs(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """The environment's arguments in a run's `config.json`; None if it has none."""
    settings = config.get("settings")
    kwargs = settings.get("env_kwargs") if isinstance(settings, Mapping) else None
    return dict(kwargs) if isinstance(kwargs, Mapping) else None
