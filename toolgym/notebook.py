"""The table that a notebook shows of a run or of an evaluation.

Its texts may come from a model, a database or somebody's file. Each is escaped and cut, so a table
is small and holds no markup but its own. It has inline styles only, and no color but a transparent
gray for lines, so it fits light and dark notebooks. MathJax leaves it alone: two prices in a table
are no formula.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Final

from toolgym.sanitize import visible

MOST_CHARS: Final = 200
"""Characters of a text that are shown."""

_CELL = (
    "text-align:left;vertical-align:top;white-space:pre-wrap;max-width:60ch;"
    "border-bottom:1px solid rgba(128,128,128,.4)"
)
_TABLE = "border-collapse:collapse;overflow-wrap:break-word;margin:.4em 0"


def facts_table(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """A title in bold and a table of names and values, as HTML.

    Args:
        facts: Names and values, one pair a row; a value that is None has no row.
    """
    rows = "".join(
        f'<tr><th style="{_CELL}">{_text(name)}</th><td style="{_CELL}">{_text(value)}</td></tr>'
        for name, value in facts
        if value is not None
    )
    return (
        '<div class="tex2jax_ignore mathjax_ignore" style="overflow-x:auto">'
        f'<b>{_text(title)}</b><table style="{_TABLE}">{rows}</table></div>'
    )


def with_interval(value: float, low: float, high: float) -> str:
    """A share with its interval.

    >>> with_interval(0.5, 0.25, 0.75)
    '0.500, 95 % interval 0.250 to 0.750'
    """
    return f"{value:.3f}, 95 % interval {low:.3f} to {high:.3f}"


def _text(value: object) -> str:
    """A value as HTML: its first characters, escaped, and how many more there are."""
    whole = f"{value:.3f}" if isinstance(value, float) else str(value)
    rest = len(whole) - MOST_CHARS
    more = f"… {rest:,} more characters" if rest > 0 else ""
    return html.escape(visible(whole[:MOST_CHARS])) + more
