"""Pages about the rollouts of a run, and about a data set.

The first shows the tables and pictures that a family makes of rollouts.

One file without scripts or requests, in the style of the report of a run. What is counted was
written by a model: everything is escaped by the template and by the plots.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from toolgym.inspection import TOTAL, TaskStats
from toolgym.report.page import template_of
from toolgym.report.plots.axes import WIDTH, element
from toolgym.report.plots.categories import Bars, bar_plot
from toolgym.report.plots.lines import style_class, swatch
from toolgym.report.tables import rows_of
from toolgym.runs.files import replace_file
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
    replace_file(out, [statistics_page(name, subject, statistics).encode("utf-8")])
    return out


def statistics_page(name: str, subject: str, statistics: Statistics) -> str:
    """The page as text."""
    return template_of("statistics.html.j2").render(
        name=name,
        subject=subject,
        charts=statistics.charts,
        pictures=statistics.pictures,
        tables=[(table, rows_of(table)) for table in statistics.tables],
    )


# A page about a data set: how many tasks of each kind, as plots and as the table behind them.
#
# One file without scripts or requests, in the style of the report of a run. Names of databases are
# other people's text: everything is escaped by the template and by the plots.

_ROW, _NAMES, _NUMBERS = 22.0, 150.0, 44.0
_LONGEST_NAME = 22


def write_task_page(stats: TaskStats, out: Path) -> Path:
    """Write the page and return its path.

    Args:
        stats: What was counted.
        out: The file.

    Raises:
        OSError: It cannot be written.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    replace_file(out, [task_page(stats).encode("utf-8")])
    return out


def task_page(stats: TaskStats) -> str:
    """The page as text."""
    others = stats.facts[1:]
    rows = list(stats.rows())
    values = [value for fact in others for value in stats.values(fact)]
    return template_of("tasks.html.j2").render(
        name=stats.name,
        tasks=stats.tasks,
        refused=sorted(stats.refused_by.items()),
        refusals=stats.refused,
        splits=stats.splits,
        item=stats.facts[0] if stats.facts else "item",
        values=values,
        rows=[[r.split, r.item, r.tasks, *(r.counts.get(v, 0) for v in values)] for r in rows],
        plots=[(fact.capitalize(), Markup(_by_split(stats, fact))) for fact in others],
        legend=[(Markup(swatch(n, bar=True)), split) for n, split in enumerate(stats.splits)],
        stacks=[
            (fact.capitalize(), Markup(_stack(stats, fact)), _legend(stats, fact))
            for fact in others
        ],
    )


def _by_split(stats: TaskStats, fact: str) -> str:
    """Bars: the values of a fact, in each of them one bar for each split."""
    values = stats.values(fact)
    series = [
        Bars(split, style, [stats.total(fact, value, split=split) for value in values])
        for style, split in enumerate(stats.splits)
    ]
    told = ", ".join(f"{value}: {stats.total(fact, value)}" for value in values)
    return bar_plot(series, values, f"Tasks by {fact}", told)


def _legend(stats: TaskStats, fact: str) -> list[tuple[Markup, str]]:
    return [
        (Markup(swatch(style, bar=True)), value) for style, value in enumerate(stats.values(fact))
    ]


def _stack(stats: TaskStats, fact: str) -> str:
    """One line for each item, its tasks laid end to end by the values of a fact."""
    rows = [row for row in stats.rows() if row.item != TOTAL]
    values = stats.values(fact)
    longest = max((row.tasks for row in rows), default=1)
    scale = (WIDTH - _NAMES - _NUMBERS) / longest
    parts = []
    for place, row in enumerate(rows):
        y = place * _ROW
        short = row.item if len(row.item) <= _LONGEST_NAME else row.item[: _LONGEST_NAME - 1] + "…"
        parts.append(element("text", class_="end", x=_NAMES - 8, y=y + 15, text=short))
        counts = [row.counts.get(value, 0) for value in values]
        parts.append(_pieces(f"{row.item} ({row.split})", values, counts, scale, y))
        end = _NAMES + row.tasks * scale + 6
        parts.append(element("text", class_="value", x=end, y=y + 15, text=f"{row.tasks:,}"))
    told = f"{len(rows)} lines; the table below has the numbers."
    texts = element("title", text=f"Tasks by {fact}") + element("desc", text=told)
    box = f"0 0 {WIDTH:g} {max(len(rows), 1) * _ROW:g}"
    return element("svg", texts, *parts, class_="plot", viewBox=box, role="img")


def _pieces(name: str, values: Sequence[str], counts: Sequence[int], scale: float, y: float) -> str:
    x, parts = _NAMES, []
    for style, (value, count) in enumerate(zip(values, counts, strict=True)):
        if count:
            title = element("title", text=f"{name}: {count:,} {value}")
            width = max(count * scale - 1, 0.5)
            bar = element("rect", title, class_="bar", x=x, y=y + 3, width=width, height=_ROW - 6)
            parts.append(element("g", bar, class_=style_class(style)))
            x += count * scale
    return "".join(parts)
