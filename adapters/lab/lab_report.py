"""The page of the lab: what was claimed, what was measured, and what became of the claim.

One file without scripts or requests, in the style of the report of a run. All text passes through
the template's escaping; the plots escape what they hold.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from adapters.lab.intervals import Effect
from adapters.lab.results import Finding
from toolgym.report.plots.axes import visible
from toolgym.runs.files import replace_file

FILE: Final = "report.html"
_DASH: Final = "\N{EN DASH}"


def write_lab_report(findings: Sequence[Finding], out: Path) -> Path:
    """Write `report.html` into a folder, which is made; the file."""
    out.mkdir(parents=True, exist_ok=True)
    replace_file(out / FILE, [render(findings).encode("utf-8")])
    return out / FILE


def render(findings: Sequence[Finding]) -> str:
    """The page as text."""
    environment = Environment(
        loader=PackageLoader("adapters.lab", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        keep_trailing_newline=True,
    )
    environment.filters["coded"] = _coded
    style = files("toolgym.report").joinpath("page.css").read_text(encoding="utf-8")
    tally = Counter(verdict.outcome for each in findings for _, verdict in each.verdicts())
    template = environment.get_template("lab_report.html.j2")
    return template.render(
        style=Markup(style.rstrip()),
        tally=", ".join(f"{count} {name}" for name, count in sorted(tally.items())),
        findings=[_content(each) for each in findings],
    )


def _coded(text: str) -> Markup:
    """A text, with what stands between backticks as code."""
    parts = [str(escape(visible(part))) for part in text.split("`")]
    inside = [f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts)]
    return Markup("".join(inside))  # each part was escaped above


def _finalize(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _content(found: Finding) -> dict[str, Any]:
    statistics = found.statistics()
    keys = list(dict.fromkeys(key for cell in statistics.values() for key in cell))
    rows = [
        (cell, [*(_cell(each.get(key)) for key in keys), (f"{found.seconds[cell]:.1f}", "")])
        for cell, each in statistics.items()
    ]
    return {
        "experiment": found.experiment,
        "scale": found.scale,
        "done": found.done,
        "wanted": found.wanted,
        "failed": found.failed,
        "verdicts": found.verdicts(),
        "told": found.told(),
        "untold": found.untold(),
        "charts": [figure.chart() for figure in found.figures()],
        "columns": [*(key.replace("_", " ") for key in keys), "seconds of a core"],
        "rows": rows,
    }


def _cell(effect: Effect | None) -> tuple[str, str]:
    """A number, and its interval in small print."""
    if effect is None or not math.isfinite(effect.value):
        return _DASH, ""
    ends = (effect.low, effect.high)
    if not all(map(math.isfinite, ends)):
        return f"{effect.value:.3g}", ""
    return f"{effect.value:.3g}", f"[{ends[0]:.3g}, {ends[1]:.3g}]"
