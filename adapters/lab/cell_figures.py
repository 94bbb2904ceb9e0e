"""Figures of the records of cells: lines over updates, and points with their intervals.

Each has a name (of its file), a title above it and a note that says what is to be seen. Cells that
are not done, and numbers that a record does not have, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapters.lab.figures import Figure, Series
from adapters.lab.prediction import Cells, Key, values_of
from toolgym.intervals import average, share
from toolgym.report.markup import Unit


def lines(
    name: str,
    title: str,
    note: str,
    cells: Cells,
    shown: Mapping[str, str],
    key: str,
    *,
    unit: Unit = "share",
    label: str = "update",
    first: float = 1.0,
    every: float = 1.0,
) -> Figure:
    """One line per cell: the mean over seeds of a list of each record.

    Args:
        shown: By label, the cell.
        key: Of the list.
        label: What the places count.
        every: From one place to the next.
    """
    rows = {
        text: [record[key] for _, record in sorted(cells.get(cell, {}).items()) if key in record]
        for text, cell in shown.items()
    }
    steps = max((len(row) for each in rows.values() for row in each), default=0)
    series = tuple(
        Series(text, [_mean([row[i] for row in each if i < len(row)]) for i in range(steps)])
        for text, each in rows.items()
    )
    places = tuple(first + every * step for step in range(steps))
    return Figure(name, title, note, series, places, label, unit)


def points(
    name: str,
    title: str,
    note: str,
    cells: Cells,
    places: Mapping[str, str],
    keys: Mapping[str, Key],
    *,
    unit: Unit = "share",
) -> Figure:
    """One point with its interval per cell and number.

    Args:
        places: By label, the cell.
        keys: By label of a row, its number.
    """
    done = {text: cell for text, cell in places.items() if cells.get(cell)}
    series = tuple(
        Series.of(
            text, [average(list(values_of(cells, cell, key).values())) for cell in done.values()]
        )
        for text, key in keys.items()
    )
    return Figure(name, title, note, series, tuple(done), unit=unit)


def grid(
    name: str,
    title: str,
    note: str,
    cells: Cells,
    rows: Mapping[str, Sequence[str]],
    places: Sequence[str],
    key: Key,
    *,
    unit: Unit = "share",
    counted: bool = False,
) -> Figure:
    """One row of points per kind of cell, all of one number.

    Args:
        rows: By label, the cell at each place.
        places: Labels below.
        counted: It is true or false, and its share has Wilson's interval.
    """
    series = []
    for text, row in rows.items():
        values = [list(values_of(cells, cell, key).values()) for cell in row]
        effects = [share(int(sum(v)), len(v)) if counted else average(v) for v in values]
        series.append(Series.of(text, effects))
    return Figure(name, title, note, tuple(series), tuple(places), unit=unit)


def _mean(values: Sequence[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured else None
