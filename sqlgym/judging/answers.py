"""Typed comparison of an answer with the gold result of a query.

The gold result is a number, a string, a date, a list (one column), a row or a table. An answer is
parsed in every way that uses the entire answer (`sqlgym.judging.answer_parsing`). An answer is
correct if one of its interpretations has the shape of the gold result and all cells are correct
(`sqlgym.judging.cells`). Rows can be in any order unless the gold query has a top-level ORDER BY.
Columns must be in the order of the gold result. The gold result is never searched for in a longer
string, so a superset, a subset, two alternative numbers, a dump of a table and an error message are
all incorrect.

A gold result that cannot be used as an answer is rejected; see `refusal`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlgym.database.database import QueryResult
from sqlgym.database.render import MAX_CHARS, MAX_ROWS, is_readable
from sqlgym.judging.answer_parsing import readings
from sqlgym.judging.cells import Cell, same_cell
from sqlgym.judging.results import Verdict, spans
from sqlgym.judging.units import Units, units_of

Cells = list[list[Cell]]
MATCHED_EXACTLY: Final = 100
"""Maximum number of unordered rows that are matched exactly. An observation shows at most this many
rows.
"""


@dataclass(frozen=True)
class GoldAnswer:
    """The correct answer to a question: the result of the gold query.

    Attributes:
        columns: Names of the columns, which an answer can repeat; empty if unknown.
        rows: Its rows, at least one.
        runs: If the order of rows matters, the lengths of the runs of tied rows
            (`sqlgym.judging.ties.free_runs`). The value is empty if the rows can be in any order.
        question: The question in words; an answer can use the units that the question names.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    runs: tuple[int, ...] = ()
    question: str = ""

    @property
    def units(self) -> tuple[Units, ...]:
        """The units that an answer can use, for each column."""
        columns = zip(*self.rows, strict=True)
        numeric = tuple(any(isinstance(cell, int | float) for cell in each) for each in columns)
        return units_of(self.question, self.columns, numeric)


def matches(gold: GoldAnswer, value: Any) -> Verdict:
    """Return whether a value answers the question. This function never raises an exception.

    >>> gold = GoldAnswer(("name",), (("Joe",), ("Ann",)))
    >>> matches(gold, "Ann, Joe").equal, matches(gold, ["Joe"]).equal, matches(gold, "Joe").reason
    (True, False, 'not 2 rows of 1 value')
    """
    rows, columns = len(gold.rows), len(gold.rows[0])
    has_shape = False
    gold_cells = [list(map(Cell, row, gold.units)) for row in gold.rows]
    for grid in readings(value, gold.columns):
        if len(grid) == rows and all(len(row) == columns for row in grid):
            has_shape = True
            cells = [list(map(Cell, row)) for row in grid]
            parts = spans(gold.runs, rows) if gold.runs else [(0, rows)]
            if all(_same_rows(gold_cells[start:end], cells[start:end]) for start, end in parts):
                return Verdict(True)
    if has_shape:
        return Verdict(False, "value differs")
    shape = f"{rows} row{'s'[: rows > 1]} of {columns} value{'s'[: columns > 1]}"
    return Verdict(False, f"not {shape}")


def refusal(
    result: QueryResult, max_rows: int = MAX_ROWS, max_chars: int = MAX_CHARS
) -> tuple[str, str] | None:
    """Return why the result of a gold query cannot be used as an answer (a code and a reason), or
    None."""
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


def _same_rows(gold: Cells, rows: Cells) -> bool:
    """Return whether two lists of rows are equal in any order.

    The rows are compared in their original order, then in sorted order. Sorting does not find every
    match, since the tolerance of a number depends on how it is written. Therefore up to
    `MATCHED_EXACTLY` rows are also matched by augmenting paths (Kuhn's algorithm).
    """
    if all(map(_same_row, gold, rows)):
        return True
    if all(map(_same_row, sorted(gold, key=_sort_key), sorted(rows, key=_sort_key))):
        return True
    if len(gold) > MATCHED_EXACTLY:
        return False
    choices = [[j for j, row in enumerate(rows) if _same_row(each, row)] for each in gold]
    owner: dict[int, int] = {}

    def assign(i: int, tried: set[int]) -> bool:
        for j in choices[i]:
            if j not in tried:
                tried.add(j)
                if j not in owner or assign(owner[j], tried):
                    owner[j] = i
                    return True
        return False

    return all(choices[i] and assign(i, set()) for i in range(len(gold)))


def _same_row(gold: Sequence[Cell], row: Sequence[Cell]) -> bool:
    return all(map(same_cell, gold, row))


def _sort_key(row: Sequence[Cell]) -> list[str]:
    return [cell.sort_key for cell in row]
