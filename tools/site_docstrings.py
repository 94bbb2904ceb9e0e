"""Docstrings as the reference shows them: a session at the prompt becomes a block of code.

In a source a session stands by itself, where `doctest` and a reader find it; in Markdown its `>>>`
would be a quotation. The extension goes over each docstring that griffe has read and puts a fence
around every session in it.
"""

import re
from typing import Any

import griffe

SESSION = re.compile(r"(?:^(?P<indent> *)>>> .*\n(?:(?! *\n).*\n?)*(?:[ ]*\n(?= *>>> ))?)+", re.M)


class Sessions(griffe.Extension):
    """The extension of griffe that is named in `zensical.toml`."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence the sessions in the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A docstring with its sessions as blocks of code.

    >>> fenced("Adds.\\n\\n>>> 1 + 1\\n2\\n")
    'Adds.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```\\n'
    """

    def fence(found: re.Match[str]) -> str:
        indent = found["indent"]
        return f"{indent}```pycon\n{found[0].rstrip()}\n{indent}```\n"

    return SESSION.sub(fence, text)
