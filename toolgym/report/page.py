"""The pages: one run or several side by side, the rollouts of a run, the tasks of a data set.

Each is one file without scripts. What a model, a database or a data set wrote is hostile until
shown otherwise: the template escapes all of it, the plots escape what they hold, and a content
security policy in the page forbids scripts and requests, so that even a mistake of ours could do
nothing. The same run gives the same bytes: no clock is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from toolgym.errors import ConfigurationError
from toolgym.inspection import TOTAL, TaskStats
from toolgym.report import tables, transcripts
from toolgym.report.charts import accuracy_chart, endings_chart, metric_charts
from toolgym.report.plots.axes import WIDTH, element, visible
from toolgym.report.plots.categories import Bars, bar_plot
from toolgym.report.plots.lines import style_class, swatch
from toolgym.report.tables import rows_of
from toolgym.report.view import RunView, views
from toolgym.runs.files import replace_file
from toolgym.runs.run import Run
from toolgym.statistics import Statistics

FILE = "report.html"


def write_report(runs: Run | Sequence[Run], out: Path | None = None) -> Path:
    """Write the report of one run, or of several laid over each other, and return its path.

    Args:
        runs: What is shown, in this order. Whatever a run has not is said in words.
        out: A file, or a folder to put `report.html` into; by default the run's folder, or for
            several runs the folder that the first lies in.

    Raises:
        ConfigurationError: There is no run, or a file of a run is damaged.
    """
    shown = [runs] if isinstance(runs, Run) else list(runs)
    if not shown:
        raise ConfigurationError("A report needs at least one run.")
    if out is None:
        out = shown[0].path if len(shown) == 1 else shown[0].path.resolve().parent
    file = out / FILE if out.is_dir() else out
    page = render(views(shown))
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, [page.encode("utf-8")])
    return file


def render(runs: Sequence[RunView]) -> str:
    """The page as text."""
    return template_of("page.html.j2").render(**_content(runs))


def template_of(name: str) -> Template:
    """A page's template by its file's name, with the style sheet that all pages share."""
    environment = Environment(
        loader=PackageLoader("toolgym.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        keep_trailing_newline=True,
    )
    style = environment.loader.get_source(environment, "page.css")[0] if environment.loader else ""
    return environment.get_template(name, globals={"style": Markup(style.rstrip())})


def _finalize(value: Any) -> Any:
    """Plain text passes through `visible`; markup that we made is left as it is."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _content(runs: Sequence[RunView]) -> dict[str, Any]:
    charts = metric_charts(runs)
    records = [run.reproducibility for run in runs]
    return {
        "title": _title(runs),
        "only_evaluations": all(run.is_evaluation for run in runs),
        "runs": runs,
        "swatches": [Markup(swatch(run.style)) for run in runs],
        "headlines": [tables.headline(run) for run in runs],
        "gains": [tables.gain(run) for run in runs],
        "results": tables.results(runs),
        "measured_on": tables.measured_on(runs),
        "accuracy": accuracy_chart(runs),
        "charts": charts,
        "differences": tables.differences(runs),
        "together": tables.together(runs),
        "endings": [endings_chart(run) for run in runs],
        "tasks": [
            transcripts.choose(run.episodes_before, run.episodes_after, run.family.picture)
            for run in runs
        ],
        "written": [_statistics(run) for run in runs],
        "settings": tables.settings([run.config for run in runs]),
        "reproducibility": tables.settings(records) if any(records) else [],
    }


def _statistics(run: RunView) -> dict[str, Any] | None:
    """The statistics of a run's family, as the template shows them."""
    if run.written is None:
        return None
    tables = [(table, rows_of(table)) for table in run.written.tables]
    return {
        "charts": run.written.charts,
        "pictures": run.written.pictures,
        "shown": [each for each in tables if each[0].is_key],
        "folded": [each for each in tables if not each[0].is_key],
    }


def _title(runs: Sequence[RunView]) -> str:
    names = list(dict.fromkeys(run.fact("env_id") for run in runs if run.fact("env_id")))
    subject = ", ".join(names) or "Unnamed environment"
    what = "evaluations" if all(run.is_evaluation for run in runs) else "runs"
    return f"{subject}: {runs[0].label}" if len(runs) == 1 else f"{subject}: {len(runs)} {what}"


def write_statistics_page(name: str, subject: str, statistics: Statistics, out: Path) -> Path:
    """Write the page and return its path.

    Args:
        name: What the rollouts are called, such as a run's name.
        subject: One sentence on which they are.

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


_ROW, _NAMES, _NUMBERS = 22.0, 150.0, 44.0
_LONGEST_NAME = 22


def write_task_page(stats: TaskStats, out: Path) -> Path:
    """Write the page and return its path.

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
    description = ", ".join(f"{value}: {stats.total(fact, value)}" for value in values)
    return bar_plot(series, values, f"Tasks by {fact}", description)


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
    description = f"{len(rows)} lines; the table below has the numbers."
    texts = element("title", text=f"Tasks by {fact}") + element("desc", text=description)
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
