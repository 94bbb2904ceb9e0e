"""The page: one run or several side by side.

It is one file that asks nobody for anything. What a model, a database or a data set wrote is
hostile until shown otherwise: the template escapes all of it, plots get it as data, and a content
security policy in the page allows the page's own scripts by their hashes and no others, nor any
request, so that even a mistake of ours could do nothing. The same run gives the same bytes: no
clock is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from toolgym.errors import ConfigurationError
from toolgym.report import tables, transcripts
from toolgym.report.charts import accuracy_chart, endings_chart, metric_charts
from toolgym.report.library import INSTALL, PageData, page_script, plotting_script, policy
from toolgym.report.tables import rows_of
from toolgym.report.view import RunView, views
from toolgym.runs.files import replace_file
from toolgym.runs.run import Run
from toolgym.sanitize import visible
from toolgym.statistics import Table

FILE: Final = "report.html"
EPISODES: Final = 100
"""Tasks whose episodes a report shows."""


def write_report(
    runs: Run | Sequence[Run], out: Path | None = None, *, episodes: int = EPISODES
) -> Path:
    """Write the report of one run, or of several laid over each other, and return its path.

    Args:
        runs: What is shown, in this order. Whatever a run has not is said in words.
        out: A file, or a folder to put `report.html` into; by default the run's folder, or for
            several runs the folder that the first lies in.
        episodes: Tasks whose episodes are shown, at most.

    Raises:
        ConfigurationError: There is no run, or a file of a run is damaged.
    """
    shown = [runs] if isinstance(runs, Run) else list(runs)
    if not shown:
        raise ConfigurationError("A report needs at least one run.")
    if out is None:
        out = shown[0].path if len(shown) == 1 else shown[0].path.resolve().parent
    file = out / FILE if out.is_dir() else out
    page = _page(views(shown), episodes)
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, [page.encode("utf-8")])
    return file


def _page(runs: Sequence[RunView], episodes: int) -> str:
    """The page as text."""
    library = plotting_script()
    scripts = [script for script in (library, page_script()) if script is not None]
    return _template().render(
        policy=policy(scripts),
        scripts=[Markup(script) for script in scripts],
        install="" if library is not None else INSTALL,
        page_data=PageData(),
        **_content(runs, episodes),
    )


@cache
def _template() -> Template:
    """The page's template, with its style sheet."""
    loader = PackageLoader("toolgym.report", ".")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        keep_trailing_newline=True,
    )
    style = loader.get_source(environment, "page.css")[0]
    return environment.get_template("page.html.j2", globals={"style": Markup(style.rstrip())})


def _finalize(value: Any) -> Any:
    """Plain text passes through `visible`; markup that we made is left as it is."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _content(runs: Sequence[RunView], episodes: int) -> dict[str, Any]:
    charts = metric_charts(runs)
    records = [run.reproducibility for run in runs]
    return {
        "title": _title(runs),
        "only_evaluations": all(run.is_evaluation for run in runs),
        "runs": runs,
        "headlines": [tables.headline(run) for run in runs],
        "gains": [tables.gain(run) for run in runs],
        "results": tables.results(runs),
        "measured_on": tables.measured_on(runs),
        "accuracy": accuracy_chart(runs),
        "charts": charts,
        "differences": tables.differences(runs),
        "together": tables.together(runs),
        "endings": [(run, chart) for run in runs if (chart := endings_chart(run)) is not None],
        "episodes": transcripts.transcripts(runs, episodes),
        "written": [_statistics(run) for run in runs],
        "settings": tables.settings([run.config for run in runs]),
        "reproducibility": tables.settings(records) if any(records) else [],
    }


def _statistics(run: RunView) -> list[tuple[Table, Any]]:
    """The tables of a run's family that have rows, with their rows as the template shows them."""
    tables = [] if run.written is None else run.written.tables
    return [(table, rows) for table in tables if (rows := rows_of(table))]


def _title(runs: Sequence[RunView]) -> str:
    names = list(dict.fromkeys(run.fact("env_id") for run in runs if run.fact("env_id")))
    subject = ", ".join(names) or "Unnamed environment"
    what = "evaluations" if all(run.is_evaluation for run in runs) else "runs"
    return f"{subject}: {runs[0].label}" if len(runs) == 1 else f"{subject}: {len(runs)} {what}"
