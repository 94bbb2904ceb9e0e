"""Shares of things with long names, as bars that lie: the name above, the 95 % interval at the end.

`category_plots` has room for names of a word or two. A workflow or a query needs a line of its
own, so here each name stands over its bars, one bar for each series; what is too long even so is
cut, and told whole to the pointer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolgym.report.axes import WIDTH, element, number_text
from toolgym.report.plot import style_class
from toolgym.statistics import Share

LONGEST_NAME = 66
_NAME, _BAR, _GAP = 18.0, 14.0, 8.0
_NUMBER = 60.0


@dataclass(frozen=True)
class ShareBars:
    """One bar for each name.

    Attributes:
        label: Its name in the legend.
        style: Number of its colour.
        shares: As many as there are names; a share of nothing has no bar.
    """

    label: str
    style: int
    shares: Sequence[Share]


def share_bars(
    series: Sequence[ShareBars], names: Sequence[str], title: str, description: str
) -> str:
    """The bars as SVG, from the first name down.

    Args:
        series: What to draw.
        names: What the shares are of.
        title: For who cannot see it.
        description: What it shows, in words; for the same reader.
    """
    highest = max(
        (one.interval[1] for each in series for one in each.shares if one.of), default=1.0
    )
    scale = (WIDTH - _NUMBER) / highest
    row = _NAME + _BAR * len(series) + _GAP
    parts = []
    for place, name in enumerate(names):
        top = place * row
        short = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
        whole = element("title", text=name)
        parts.append(element("text", whole, x=0, y=top + 13, text=short))
        for number, each in enumerate(series):
            parts.append(_bar(each, each.shares[place], top + _NAME + number * _BAR, scale))
    texts = element("title", text=title) + element("desc", text=description)
    box = f"0 0 {WIDTH:g} {max(len(names), 1) * row:g}"
    return element("svg", texts, *parts, class_="plot", viewBox=box, role="img", aria_label=title)


def _bar(series: ShareBars, share: Share, y: float, scale: float) -> str:
    if share.value is None:
        return ""
    title = element("title", text=f"{series.label}: {share} ({share.count:,} of {share.of:,})")
    width, height = max(share.value * scale, 0.5), _BAR - 2
    low, high = (end * scale for end in share.interval)
    middle = y + height / 2
    bar = element("rect", title, class_="bar", x=0, y=y, width=width, height=height)
    error = element("line", class_="error", x1=low, x2=high, y1=middle, y2=middle)
    shown = number_text(share.value, 0.001, "share")
    value = element("text", class_="value", x=high + 6, y=y + 10, text=shown)
    return element("g", bar, error, value, class_=style_class(series.style))
