"""The report of a run on a terminal: where it stands, its curves in a line each, what guards did.

A curve is a row of blocks, the lowest for its least value and the highest for its greatest, with
the first and the last value beside it. It shows the metrics that a page draws, in that order, as
many as the terminal has lines for. All text from outside is shown as text, without control
characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from toolgym.notebook import visible
from toolgym.report import tables
from toolgym.report.catalogue import ACTIONS, SECTIONS, SEVERITY, Plot, Series
from toolgym.report.charts import STEP_NAMES, curve, running_mean, window
from toolgym.report.markup import exact_text, is_drawable
from toolgym.report.plots.points import Incidents
from toolgym.report.view import RunView

BLOCKS: Final = "▁▂▃▄▅▆▇█"
WIDEST: Final = 60
_AROUND: Final = 12
"""Lines of a frame that are no curves."""


def frame(run: RunView, width: int, height: int) -> RenderableType:
    """What a terminal of this size shows of a run.

    Args:
        width: Columns of it.
        height: Lines of it.
    """
    lines = [_text(run.label, "bold"), _text(tables.headline(run)), _text(_standing(run), "dim")]
    if run.before or run.after or any(on.after for on in run.evaluations):
        lines.append(_text(tables.gain(run)))
    curves = list(_curves(run))[: max(height - _AROUND, 3)]
    if not curves:
        lines.append(_text("There are no metrics yet.", "dim"))
    grid = Table(box=None, pad_edge=False, header_style="dim")
    for name, justify in (("metric", "left"), ("", "left"), ("first", "right"), ("last", "right")):
        grid.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    blocks = max(8, min(WIDEST, width - 58))
    for plot, series, values in curves:
        known = [value for value in values if value is not None]
        ends = (exact_text(known[0], plot.unit), exact_text(known[-1], plot.unit))
        grid.add_row(series.name, _text(sparkline(values, blocks), "cyan"), *ends)
    guards = _guards(run)
    return Group(*lines, Text(), *([grid] if curves else []), *([_text(guards)] if guards else []))


def _text(text: str, style: str = "") -> Text:
    return Text(visible(text), style=style)


def _standing(run: RunView) -> str:
    """How far the run is."""
    if run.is_complete:
        return "Complete."
    return run.where_it_stands


def _curves(run: RunView) -> Iterator[tuple[Plot, Series, list[float | None]]]:
    """The metrics that were logged and change, or of which a change would matter."""
    for section in SECTIONS:
        for plot in section.plots:
            records = run.metrics(plot.phase)
            for series in plot.series:
                data = curve(records, series.key)
                if data is None or (series.is_quiet and len(set(data.known)) == 1):
                    continue
                width = window(len(data.steps)) if plot.is_smoothed else 1
                yield plot, series, running_mean(data.values, width)


def sparkline(values: Sequence[float | None], width: int) -> str:
    """A curve as a row of blocks; a gap is a space.

    >>> sparkline([0, 1, None, 2, 4], 5)
    '▁▃ ▅█'
    >>> len(sparkline(range(100), 20))
    20
    """
    known = [value for value in values if is_drawable(value)]
    if not known:
        return ""
    low, span = min(known), max(known) - min(known)
    places = min(width, len(values))
    row = []
    for place in range(places):
        part = values[place * len(values) // places : (place + 1) * len(values) // places]
        inside = [value for value in part if is_drawable(value)]
        if not inside:
            row.append(" ")
            continue
        share = (sum(inside) / len(inside) - low) / span if span else 0.0
        row.append(BLOCKS[min(int(share * len(BLOCKS)), len(BLOCKS) - 1)])
    return "".join(row)


def _guards(run: RunView) -> str:
    """A sentence on what the guards did; empty where nothing was logged of them."""
    data = curve(run.metrics("grpo"), SEVERITY)
    if data is None:
        return ""
    pairs = [(step, v) for step, v in zip(data.steps, data.values, strict=True) if v is not None]
    acted = {step: min(round(v), len(ACTIONS) - 1) for step, v in pairs if round(v) > 0}
    words = Incidents(run.label, run.style, len(pairs), acted).in_words(ACTIONS)
    return f"Guards acted {words} ({STEP_NAMES['grpo']}s)"
