"""Typed comparison of an answer with the gold result of a query.

The gold is a number, a text, a date, a list (one column), a row (one row) or a table. An answer is
read in every way that uses all of it (`sqlgym.judging.answer_parsing`), and is right if one reading
has the gold's shape and each of its cells is right (`sqlgym.judging.cells`). Rows may come in any
order unless the gold query orders at top level; columns keep theirs. Nothing is ever searched for
in a longer text, so that a superset, a subset, two numbers to choose from, a dumped table and an
error message are all wrong.

A gold that cannot be a fair answer is refused: see `refusal`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlgym.database.database import QueryResult
from sqlgym.database.render import MAX_CHARS, MAX_ROWS, is_readable
from sqlgym.judging.answer_parsing import Grid, readings
from sqlgym.judging.cells import Cell, is_date, read_number, same_cell
from sqlgym.judging.results import MATCHED_EXACTLY, Verdict, pair_up, spans
from sqlgym.judging.units import Units, units_of

Cells = list[list[Cell]]
Kind = Literal["number", "text", "date", "list", "row", "table"]


@dataclass(frozen=True)
class GoldAnswer:
    """The right answer to a question, as the gold query gave it.

    Attributes:
        columns: The names of its columns; an answer may repeat them.
        rows: Its rows; at least one.
        ordered: The order of the rows counts.
        runs: With `ordered`, the sizes of the runs of rows that tie and may change places.
        question: The question in words; an answer may use the units that it names.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    ordered: bool
    runs: tuple[int, ...] = ()
    question: str = ""

    @classmethod
    def of(
        cls,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        ordered: bool,
        runs: Sequence[int] = (),
        question: str = "",
    ) -> GoldAnswer:
        """The gold answer of a query result.

        Raises:
            ValueError: The result has no rows or no columns; such a task is to be refused.
        """
        if not rows or not rows[0]:
            raise ValueError("an empty result is no answer; refuse the task")
        return cls(tuple(columns), tuple(map(tuple, rows)), ordered, tuple(runs), question)

    @property
    def units(self) -> tuple[Units, ...]:
        """The units that an answer may use, by column."""
        columns = zip(*self.rows, strict=True)
        numeric = tuple(any(isinstance(cell, int | float) for cell in each) for each in columns)
        return units_of(self.question, self.columns, numeric)

    @property
    def kind(self) -> Kind:
        """What sort of thing the answer is."""
        if len(self.rows) > 1:
            return "list" if len(self.rows[0]) == 1 else "table"
        if len(self.rows[0]) > 1:
            return "row"
        value = self.rows[0][0]
        if isinstance(value, int | float):
            return "number"
        return "date" if isinstance(value, str) and is_date(value) else "text"


def matches(gold: GoldAnswer, value: Any) -> Verdict:
    """Whether a value answers the question. Never raises.

    >>> gold = GoldAnswer.of(["name"], [("Joe",), ("Ann",)], ordered=False)
    >>> matches(gold, "Ann, Joe").equal, matches(gold, ["Joe"]).equal, matches(gold, "Joe").reason
    (True, False, 'not 2 rows of 1 value')
    """
    shape = len(gold.rows), len(gold.rows[0])
    shaped = False
    units = gold.units
    gold_cells = [list(map(Cell, row, units)) for row in gold.rows]
    for grid in readings(value, gold.columns):
        if len(grid) == shape[0] and all(len(row) == shape[1] for row in grid):
            shaped = True
            if _same_grid(gold, gold_cells, grid):
                return Verdict(True)
    if shaped:
        return Verdict(False, "value differs")
    rows, cells = (
        f"{n} {word}{'' if n == 1 else 's'}"
        for n, word in zip(shape, ("row", "value"), strict=True)
    )
    return Verdict(False, f"not {rows} of {cells}")


def refusal(
    result: QueryResult, max_rows: int = MAX_ROWS, max_chars: int = MAX_CHARS
) -> tuple[str, str] | None:
    """Why the result of a gold query cannot be a fair answer: code and reason; None if it can."""
    if not result.rows:
        return "empty_gold", "its gold SQL finds no rows."
    if all(value is None for row in result.rows for value in row):
        return "null_gold", "its gold SQL finds nothing but NULL."
    if result.truncated or not is_readable(result.columns, result.rows, max_rows, max_chars):
        size = f"{len(result.rows):,}{' or more' if result.truncated else ''} rows"
        limit = f"{max_rows:,} rows and {max_chars:,} characters"
        return (
            "result_too_large",
            f"its gold result, {size}, does not fit into an observation of {limit}.",
        )
    return None


def _same_grid(gold: GoldAnswer, gold_cells: Cells, grid: Grid) -> bool:
    """Are the values of a grid of the gold's shape right, in its order or, if free, in any?"""
    cells = [list(map(Cell, row)) for row in grid]
    if all(map(_same_row, gold_cells, cells)):
        return True
    if not gold.ordered:
        return _same_rows(gold_cells, cells)
    parts = spans(gold.runs, len(grid))
    return all(_same_rows(gold_cells[start:end], cells[start:end]) for start, end in parts)


def _same_rows(gold: Cells, rows: Cells) -> bool:
    """Are the rows the same, in any order?

    Rows are told apart by what can be looked up; those that look alike are paired, up to
    `MATCHED_EXACTLY` of them exactly. More of them (an observation never shows so many) are right
    if they are the same in the order of what they read as, and else wrong.
    """
    columns = zip(zip(*gold, strict=True), zip(*rows, strict=True), strict=True)
    marks = [mark for column in columns for mark in [_marks(*column)] if mark is not None]
    groups: dict[Any, tuple[Cells, Cells]] = defaultdict(lambda: ([], []))
    for side, cells in enumerate((gold, rows)):
        for place, row in enumerate(cells):
            groups[tuple(mark[side][place] for mark in marks)][side].append(row)
    sides = groups.values()
    return all(len(g) == len(r) for g, r in sides) and all(_paired(g, r) for g, r in sides)


def _paired(gold: Cells, rows: Cells) -> bool:
    if len(gold) > MATCHED_EXACTLY:
        return all(map(_same_row, sorted(gold, key=_sort_key), sorted(rows, key=_sort_key)))
    return pair_up(len(gold), lambda i, j: _same_row(gold[i], rows[j]))


def _marks(gold: Sequence[Cell], cells: Sequence[Cell]) -> tuple[list[Any], list[Any]] | None:
    """What the right cells of a column have in common with the gold's; None if nothing simple."""
    if all(isinstance(cell.value, str) and not cell.is_day for cell in gold):
        if all(isinstance(cell.value, str) for cell in cells):
            return [cell.text for cell in gold], [cell.text for cell in cells]
    elif all(type(cell.value) is int for cell in gold):
        read = [cell.number if isinstance(cell.value, str) else None for cell in cells]
        numbers = [number.value for number in read if number is not None and not number.unit]
        if len(numbers) == len(cells):
            return [cell.value for cell in gold], numbers
    return None


def _same_row(gold: Sequence[Cell], row: Sequence[Cell]) -> bool:
    return all(map(same_cell, gold, row))


def _sort_key(row: Sequence[Cell]) -> list[str]:
    return [_cell_key(cell) for cell in row]


def _cell_key(cell: Cell) -> str:
    value = cell.value
    if isinstance(value, str):
        read = read_number(value)
        return f"{float(read.value):.6g}" if read else cell.text
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
        return f"{float(value):.6g}"
    return ""
