"""The rows of a counted table as a page shows them: what is large, what small, what to the left.

A share or a mean comes with its interval, which stands under it in smaller type.
"""

from __future__ import annotations

from toolgym.statistics import Mean, Share, Table, cell_text


def rows_of(table: Table) -> list[list[tuple[str, str, bool]]]:
    """Of each cell its text, the smaller text under it, and whether it stands to the left."""
    words = [table.is_text(column) for column in range(len(table.columns))]
    rows = []
    for row in table.rows:
        cells = []
        for cell, is_word in zip(row, words, strict=True):
            text, _, interval = (
                cell_text(cell).partition(" [")
                if isinstance(cell, Share | Mean)
                else (cell_text(cell), "", "")
            )
            cells.append((text, f"[{interval}" if interval else "", is_word))
        rows.append(cells)
    return rows
