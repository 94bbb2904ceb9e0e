"""Tables about rollouts, as a family returns them to `toolgym stats`.

A family counts what only it understands (workflows, queries) and returns tables; the command
knows how a table is printed and nothing of what is in it. A share carries its
counts, so that its 95 % interval comes from one place and no share is told without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolgym.intervals import wilson_interval
from toolgym.records import EpisodeRecord

Rollout = EpisodeRecord | Mapping[str, Any]
"""A finished episode: a record, or a line of a run's `rollouts.jsonl` with `phase` and `step`."""

NOTHING = "\N{EN DASH}"


@dataclass(frozen=True)
class Share:
    """A share as counts, with its 95 % Wilson interval.

    The interval takes what was counted for independent. Two things that one rollout wrote are not,
    and neither are rollouts of one task, so it is too narrow for them.

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


Cell = str | int | float | Share | None


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
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def to_json(self) -> list[dict[str, Any]]:
        """One object per row; what is nan becomes null."""
        return [dict(zip(self.columns, map(_plain, row), strict=True)) for row in self.rows]

    def is_text(self, column: int) -> bool:
        """Whether a column holds words, which stand to the left, and no numbers."""
        cells = [row[column] for row in self.rows if row[column] is not None]
        return all(isinstance(cell, str) for cell in cells)


def _plain(cell: Cell) -> Any:
    if isinstance(cell, Share):
        return cell.to_json()
    return None if isinstance(cell, float) and math.isnan(cell) else cell


@dataclass(frozen=True)
class Statistics:
    """The statistics of a set of rollouts, by their family."""

    tables: tuple[Table, ...]

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
