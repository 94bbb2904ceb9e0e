"""A page about the rollouts of a run: the tables and pictures that its family makes of them.

One file without scripts or requests, in the style of the report of a run. What is counted was
written by a model: everything is escaped by the template and by the plots.
"""

from __future__ import annotations

from pathlib import Path

from toolgym.json_files import replace_file
from toolgym.report.page import template_of
from toolgym.statistics import Share, Statistics, Table, cell_text


def write_statistics_page(name: str, subject: str, statistics: Statistics, out: Path) -> Path:
    """Write the page and return its path.

    Args:
        name: What the rollouts are called, such as a run's name.
        subject: One sentence on which they are.
        statistics: What was counted.
        out: The file.

    Raises:
        OSError: It cannot be written.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    replace_file(out, [render(name, subject, statistics).encode("utf-8")])
    return out


def render(name: str, subject: str, statistics: Statistics) -> str:
    """The page as text."""
    return template_of("statistics.html.j2").render(
        name=name,
        subject=subject,
        charts=statistics.charts,
        tables=[(table, _rows(table)) for table in statistics.tables],
    )


def _rows(table: Table) -> list[list[tuple[str, str, bool]]]:
    """Of each cell its text, the smaller text under it, and whether it stands to the left."""
    words = [table.is_text(column) for column in range(len(table.columns))]
    rows = []
    for row in table.rows:
        cells = []
        for cell, is_word in zip(row, words, strict=True):
            text, _, interval = (
                cell_text(cell).partition(" [")
                if isinstance(cell, Share)
                else (cell_text(cell), "", "")
            )
            cells.append((text, f"[{interval}" if interval else "", is_word))
        rows.append(cells)
    return rows
