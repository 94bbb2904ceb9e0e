"""A page about the rollouts of a run: the tables and pictures that its family makes of them.

One file without scripts or requests, in the style of the report of a run. What is counted was
written by a model: everything is escaped by the template and by the plots.
"""

from __future__ import annotations

from pathlib import Path

from toolgym.json_files import replace_file
from toolgym.report.page import template_of
from toolgym.report.statistics_rows import rows_of
from toolgym.statistics import Statistics


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
        pictures=statistics.pictures,
        tables=[(table, rows_of(table)) for table in statistics.tables],
    )
