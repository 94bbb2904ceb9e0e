"""`write_report` writes the report as one HTML file without external resources.

Text from models, databases and data sets is untrusted. The template escapes it, plots contain it as
data, and a content security policy allows only the two scripts of the page, by their hashes. On
this page, Vega uses its expression interpreter instead of `eval`. Reports of the same run are
identical, byte for byte.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from toolgym.cache import cache_folder
from toolgym.errors import ConfigurationError
from toolgym.report import tables
from toolgym.report.charts import Chart, accuracy_chart, curves
from toolgym.report.transcripts import transcripts
from toolgym.report.view import views
from toolgym.runs.files import replace_file
from toolgym.runs.run import Run
from toolgym.sanitize import visible

FILE: Final = "report.html"
EPISODES: Final = 100
"""Default number of tasks whose episodes a report shows."""


def write_report(
    runs: Run | Sequence[Run], out: Path | None = None, *, episodes: int = EPISODES
) -> Path:
    """Write the report of one or several runs, and return its path.

    Args:
        runs: Training runs or evaluations, in the order in which they are shown.
        out: A file, or a folder for `report.html`. The default is the folder of the run or, for
            several runs, the parent folder of the first run.
        episodes: Maximum number of tasks whose episodes are shown.

    Raises:
        ConfigurationError: `runs` is empty, or a file of a run is damaged.
    """
    shown = [runs] if isinstance(runs, Run) else list(runs)
    if not shown:
        raise ConfigurationError("a report needs at least one run.")
    if out is None:
        out = shown[0].path if len(shown) == 1 else shown[0].path.resolve().parent
    file = out / FILE if out.is_dir() else out
    page = _page(shown, episodes)
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, [page.encode("utf-8")])
    return file


def _page(shown: Sequence[Run], episodes: int) -> str:
    loader = PackageLoader("toolgym.report", ".")
    environment = Environment(
        loader=loader,
        autoescape=True,
        finalize=lambda v: visible(v) if isinstance(v, str) and not isinstance(v, Markup) else v,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = (loader.get_source(environment, f"page.{kind}")[0] for kind in ("css", "js"))
    scripts = [each for each in (plotting_script(), script) if each is not None]
    plots: list[dict[str, Any]] = []

    def plot(chart: Chart) -> str:
        """Collect the specification of a plot, which the script of the page draws."""
        plots.append(chart.spec)
        return ""

    runs = views(shown, episodes)
    settings = tables.settings(runs)
    kind = "evaluations" if all(run.is_evaluation for run in runs) else "runs"
    names = dict.fromkeys(dict(run.facts).get("environment", "") for run in runs)
    return environment.get_template("page.html.j2").render(
        title=f"{', '.join(filter(None, names)) or 'Unknown environment'}: "
        + (runs[0].label if len(runs) == 1 else f"{len(runs)} {kind}"),
        policy=_policy(scripts),
        style=Markup(style),
        scripts=[Markup(each) for each in scripts],
        has_plots=len(scripts) > 1,
        plot=plot,
        plots=lambda: embedded(plots),
        runs=runs,
        results=tables.results(runs),
        seeds=tables.seeds_together(runs),
        differences=tables.differences(settings),
        settings=settings,
        accuracy=accuracy_chart(runs),
        curves=curves(runs),
        transcripts=transcripts(runs),
    )


def plotting_script() -> str | None:
    """Return Vega, Vega-Lite and Vega-Embed as one script; None if vl-convert is not installed.

    The script is stored in the cache folder, since vl-convert takes seconds to bundle it.
    """
    try:
        import vl_convert
    except ImportError:
        return None
    cached = cache_folder() / "plots" / f"vega-embed-{version('vl-convert-python')}.js"
    with suppress(OSError):
        return cached.read_text("utf-8")
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("\r\n", "\n")
    # In a function, so that its names do not hide those of other scripts.
    script = f"(() => {{{bundle}\n}})();".replace("</script", "<\\/script").replace(
        "<!--", "<\\!--"
    )
    with suppress(OSError):  # without a cache, each report takes seconds longer
        cached.parent.mkdir(parents=True, exist_ok=True)
        replace_file(cached, [script.encode("utf-8")])
    return script


def _policy(scripts: Sequence[str]) -> str:
    """Return the content security policy of a page with these scripts."""
    digests = (hashlib.sha256(script.encode("utf-8")).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    rules = ["default-src 'none'", "style-src 'unsafe-inline'", f"script-src {allowed}"]
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def embedded(value: Any) -> Markup:
    """Return a value as JSON for an HTML page: in ASCII, without `<`, `>` and `&`.

    >>> print(embedded("</script> \\u2028 \\ud800"))
    "\\u003c/script\\u003e \\u2028 \\ud800"
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}))
