"""Mermaid diagrams as pictures in the page, drawn when the site is built.

A diagram stands in a page as a block marked `mermaid`, which a code host draws by itself. A browser
would need three megabytes of JavaScript for it; here the drawing is made once, by a library without
a browser, and its colours come from the style sheet of the site, so they follow light and dark.
"""

import hashlib
import re
from typing import Any

import mmdr

SMALLEST = 0.66
"""Of its own size, what a diagram is shrunk to at most, where its text has nine pixels."""


def figure(source: str, *_: Any, **__: Any) -> str:
    """A diagram as HTML; what `pymdownx.superfences` calls for each block marked `mermaid`.

    Raises:
        RuntimeError: The library cannot read the diagram; the message shows it.
    """
    try:
        drawn = mmdr.render(source).svg()
    except Exception as error:  # the library raises what its engine reports
        raise RuntimeError(f"This diagram cannot be drawn: {error}\n\n{source}") from error
    return f'<figure class="diagram">{_restyled(drawn, source)}</figure>'


def _restyled(svg: str, source: str) -> str:
    """The drawing without its own style sheet, and with names that no other of a page has."""
    bare = re.sub(r"<style>.*?</style>", "", svg, count=1, flags=re.DOTALL)
    bare = re.sub(r' (?:data-points|data-merman-source-classes)="[^"]*"', "", bare)
    bare = re.sub(r'(<text [^>]*) style="[^"]*"', r"\1", bare)
    # No smaller than can be read: a wide diagram is scrolled on a narrow screen.
    bare = re.sub(r"max-width:([\d.]+)px", _with_least_width, bare, count=1)
    own = f"diagram-{hashlib.sha256(source.encode()).hexdigest()[:8]}"
    return re.sub(r'((?:id="|#))merman', rf"\1{own}", bare).replace("\n", "")


def _with_least_width(found: re.Match[str]) -> str:
    return f"{found[0]};min-width:{SMALLEST * float(found[1]):.0f}px"
