"""A griffe extension that fences doctest sessions in docstrings.

Without a fence, Markdown reads the `>>>` of a session as a quotation.
"""

import re
from typing import Any

import griffe

SESSION = re.compile(r"(?:^(?P<indent> *)>>> .*\n(?:(?! *\n).*\n?)*(?:[ ]*\n(?= *>>> ))?)+", re.M)


class Sessions(griffe.Extension):
    """The griffe extension that `zensical.toml` lists."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence the sessions in the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Return a docstring with its sessions as code blocks.

    >>> fenced("Adds.\\n\\n>>> 1 + 1\\n2\\n")
    'Adds.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```\\n'
    """

    def fence(found: re.Match[str]) -> str:
        indent = found["indent"]
        return f"{indent}```pycon\n{found[0].rstrip()}\n{indent}```\n"

    return SESSION.sub(fence, text)
