"""Tables of statistics on rollouts, which a task family returns and `toolgym stats` prints.

For example, a family counts the operators of workflows or the clauses of queries. `toolgym stats`
prints the tables of any family. A `Share` contains its counts, so every share can be printed with
its 95 % interval.
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
    """A share with its counts and its 95 % Wilson interval.

    The interval assumes independent outcomes. It is too narrow if several outcomes come from one
    rollout, or from rollouts of the same task.

    >>> str(Share(115, 326)), str(Share(0, 0))
    ('35.3 % [30.3, 40.6]', '\N{EN DASH}')
    """

    count: int
    of: int

    @property
    def value(self) -> float | None:
        """The share, between 0 and 1, or None if `of` is 0."""
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of the share."""
        return wilson_interval(self.count, self.of)

    def __str__(self) -> str:
        if self.value is None:
            return NOTHING
        low, high = self.interval
        return f"{100 * self.value:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"

    def to_json(self) -> dict[str, Any]:
        """Return the counts, the share and the interval.

        The share and the interval are None if `of` is 0.
        """
        bounds = list(self.interval) if self.of else None
        return {"count": self.count, "of": self.of, "share": self.value, "interval": bounds}


Cell = str | int | float | Share | None


def cell_text(cell: Cell) -> str:
    """Return a cell as text; None and nan become a dash.

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
    """A table of statistics.

    Attributes:
        name: The key of the table in JSON.
        title: The title above the table.
        columns: The names of the columns.
        rows: The rows, each with one cell per column.
        note: An explanation below the table; may be empty.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def to_json(self) -> list[dict[str, Any]]:
        """Return one dict per row; nan becomes None."""
        return [dict(zip(self.columns, map(_plain, row), strict=True)) for row in self.rows]

    def is_text(self, column: int) -> bool:
        """Return whether a column contains only strings, which are left-aligned."""
        cells = [row[column] for row in self.rows if row[column] is not None]
        return all(isinstance(cell, str) for cell in cells)


def _plain(cell: Cell) -> Any:
    if isinstance(cell, Share):
        return cell.to_json()
    return None if isinstance(cell, float) and math.isnan(cell) else cell


@dataclass(frozen=True)
class Statistics:
    """Statistics of a set of rollouts, as tables that a task family defines."""

    tables: tuple[Table, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the rows of each table, by table name."""
        return {table.name: table.to_json() for table in self.tables}

    def __getitem__(self, name: str) -> Table:
        """Return a table by its name.

        Raises:
            KeyError: The table does not exist.
        """
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(name)


def recorded_kwargs(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the environment's arguments from a run's `config.json`, or None if there are none."""
    settings = config.get("settings")
    kwargs = settings.get("env_kwargs") if isinstance(settings, Mapping) else None
    return dict(kwargs) if isinstance(kwargs, Mapping) else None
