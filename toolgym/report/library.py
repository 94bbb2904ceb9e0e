"""The library that draws plots, Vega, on a page that needs no network.

vl-convert carries Vega's JavaScript. `plotting_script` asks it for one script with all that a page
needs, which takes seconds and is kept in the cache folder. It belongs to the extra `report`, and
without it a page shows tables.

A page allows its scripts by their hashes and forbids whatever else could run or ask for anything.
Vega would compile the expressions of a plot with `eval`; it interprets them instead, so the page
can forbid that, too. What is embedded as data cannot end the element that it stands in.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from itertools import count
from typing import Any, Final

from markupsafe import Markup

from toolgym.cache import cache_folder
from toolgym.report.plots.vega import CONFIG, Chart, Drawing
from toolgym.runs.files import replace_file

INSTALL: Final = "pip install 'toolgym[report]'"
_SNIPPET: Final = "window.toolgymPlots = vegaEmbed;"
_UNSAFE: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


@cache
def plotting_script() -> str | None:
    """Vega as one script that may stand inside a page; None where vl-convert is not installed."""
    try:
        import vl_convert
    except ImportError:
        return None
    kept = cache_folder() / "plots" / f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError):
        return kept.read_text("utf-8")
    bundle = vl_convert.javascript_bundle(_SNIPPET).replace("\r\n", "\n")
    # In a function of its own, since it declares names that would hide those of other scripts.
    script = f"(() => {{{bundle}\n}})();".replace("</script", "<\\/script").replace(
        "<!--", "<\\!--"
    )
    with suppress(OSError):  # a cache that cannot be written costs time, and nothing else
        kept.parent.mkdir(parents=True, exist_ok=True)
        replace_file(kept, [script.encode("utf-8")])
    return script


@cache
def page_script() -> str:
    """The page's own script."""
    return files("toolgym.report").joinpath("page.js").read_text("utf-8")


def policy(scripts: Sequence[str]) -> str:
    """The content security policy of a page with these scripts."""
    sources = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    rules = ["default-src 'none'", "style-src 'unsafe-inline'", f"script-src {sources}"]
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def embedded(value: Any) -> Markup:
    """A value as JSON inside a page.

    Everything beyond ASCII is escaped, so half a character and the separators that JavaScript takes
    for ends of lines are, too; and no tag can begin in it.

    >>> print(embedded("</script> \\u2028 \\ud800"))
    "\\u003c/script\\u003e \\u2028 \\ud800"
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_UNSAFE))


class PageData:
    """What the page's script draws, collected while a template is rendered."""

    def __init__(self) -> None:
        self._charts: dict[str, dict[str, Any]] = {}

    def add(self, chart: Chart) -> str:
        """The name of the element that a chart is drawn in; it depends on titles alone."""
        words = re.sub(r"[^a-z0-9]+", "-", chart.title.lower())[:60].strip("-")
        names = (f"plot-{words}-{number}" if number else f"plot-{words}" for number in count())
        name = next(each for each in names if each not in self._charts)
        self._charts[name] = _drawn(chart.drawing)
        return name

    @property
    def json(self) -> Markup:
        """All of it, for an element of the page."""
        return embedded({"config": CONFIG, "charts": self._charts})


def _drawn(drawing: Drawing) -> dict[str, Any]:
    return {
        "spec": drawing.spec,
        "axis": drawing.axis,
        "share": drawing.is_share,
        "series": [
            {"key": entry.key, "label": entry.label, "style": entry.style, "run": entry.run}
            for entry in drawing.entries
        ],
    }
