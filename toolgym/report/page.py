"""The page: everything about one run, or several side by side, in one file without scripts.

What a model or a database wrote is hostile until shown otherwise. The template escapes all of it,
the plots escape what they hold, and a content security policy in the page forbids scripts and
requests, so that even a mistake of ours could do nothing. The same run gives the same bytes: no
clock is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from toolgym.errors import ConfigurationError
from toolgym.report import seeds, tables, transcripts
from toolgym.report.charts import accuracy_chart, endings_chart, metric_charts
from toolgym.report.plots.axes import visible
from toolgym.report.plots.lines import swatch
from toolgym.report.tables import rows_of
from toolgym.report.view import RunView, views
from toolgym.runs.files import replace_file
from toolgym.runs.run import Run

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
        "runs": runs,
        "swatches": [Markup(swatch(run.style)) for run in runs],
        "headlines": [tables.headline(run) for run in runs],
        "gains": [tables.gain(run) for run in runs],
        "results": tables.results(runs),
        "measured_on": tables.measured_on(runs),
        "accuracy": accuracy_chart(runs),
        "charts": charts,
        "differences": tables.differences(runs),
        "together": seeds.together(runs),
        "endings": [endings_chart(run) for run in runs],
        "tasks": [
            transcripts.choose(run.episodes_before, run.episodes_after, run.family.picture)
            for run in runs
        ],
        "written": [_written(run) for run in runs],
        "settings": tables.settings([run.config for run in runs]),
        "reproducibility": tables.settings(records) if any(records) else [],
    }


def _written(run: RunView) -> dict[str, Any] | None:
    """What the family of a run counted, as the template shows it."""
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
    return f"{subject}: {runs[0].label}" if len(runs) == 1 else f"{subject}: {len(runs)} runs"
