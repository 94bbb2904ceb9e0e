"""Renders Mermaid diagrams to SVG when the site is built.

A diagram is a block marked `mermaid`, which code hosts render themselves. Rendering at build time
saves readers three megabytes of JavaScript. The colors come from the style sheet of the site, so
diagrams follow its light and dark scheme.
"""

import hashlib
import re
from typing import Any

import mmdr

SMALLEST = 0.66
"""The smallest scale of a diagram, at which its text has nine pixels."""


def figure(source: str, *_: Any, **__: Any) -> str:
    """Return a diagram as HTML; called by `pymdownx.superfences` for each `mermaid` block.

    Raises:
        RuntimeError: The diagram is invalid.
    """
    try:
        drawn = mmdr.render(source).svg()
    except Exception as error:  # the library raises errors of its engine
        raise RuntimeError(f"This diagram cannot be drawn: {error}\n\n{source}") from error
    return f'<figure class="diagram">{_restyled(drawn, source)}</figure>'


def _restyled(svg: str, source: str) -> str:
    """Return the SVG without its style sheet, and with ids that are unique on a page."""
    bare = re.sub(r"<style>.*?</style>", "", svg, count=1, flags=re.DOTALL)
    bare = re.sub(r' (?:data-points|data-merman-source-classes)="[^"]*"', "", bare)
    bare = re.sub(r'(<text [^>]*) style="[^"]*"', r"\1", bare)
    # Wide diagrams are scrolled on narrow screens, so that their text stays readable.
    bare = re.sub(r"max-width:([\d.]+)px", _with_least_width, bare, count=1)
    own = f"diagram-{hashlib.sha256(source.encode()).hexdigest()[:8]}"
    return re.sub(r'((?:id="|#))merman', rf"\1{own}", bare).replace("\n", "")


def _with_least_width(found: re.Match[str]) -> str:
    return f"{found[0]};min-width:{SMALLEST * float(found[1]):.0f}px"
