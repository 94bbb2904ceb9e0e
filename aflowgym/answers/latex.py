"""Plain text from the LaTeX and the Unicode that answers are written in.

Only what changes no value is rewritten: sizes of brackets and fractions, spacing, signs that look
different and mean the same. What is left of LaTeX afterwards is `\\frac`, `\\sqrt`, `\\overline`,
and commands that the reader of expressions does not know and refuses.
"""

from __future__ import annotations

import re
from typing import Final

_SAME: Final = {
    "\\dfrac": "\\frac", "\\tfrac": "\\frac", "\\cfrac": "\\frac",
    "\\left": "", "\\right": "", "\\big": "", "\\Big": "", "\\bigl": "", "\\bigr": "",
    "\\displaystyle": "", "\\limits": "", "\\!": "", "\\,": " ", "\\;": " ", "\\:": " ", "\\ ": " ",
    "\\quad": " ", "\\qquad": " ", "~": " ", "\u00a0": " ", "\u2009": " ", "\u202f": " ",
    "\\(": "", "\\)": "", "\\[": "", "\\]": "",
    "\\cdot": "*", "\\times": "*", "\\ast": "*", "\\div": "/", "×": "*", "·": "*", "⋅": "*",
    "÷": "/", "−": "-", "–": "-", "\\pi": "π", "\\infty": "∞", "\\imath": "i",
    "\\$": "$", "\\%": "%", "^\\circ": "°", "^{\\circ}": "°", "\\circ": "°", "\\degree": "°",
    "\\{": "⦃", "\\}": "⦄", "\\lbrace": "⦃", "\\rbrace": "⦄", "√": "\\sqrt",
    "²": "^2 ", "³": "^3 ", "½": "\\frac12", "⅓": "\\frac13", "⅔": "\\frac23",
    "¼": "\\frac14", "¾": "\\frac34", "⅕": "\\frac15", "⅛": "\\frac18", "{,}": ",",
    "\\le": "≤", "\\leq": "≤", "\\ge": "≥", "\\geq": "≥", "\\ne": "≠", "\\neq": "≠",
    "\\lt": "<", "\\gt": ">",
}  # fmt: skip
_COMMAND: Final = re.compile(
    "|".join(
        re.escape(text) + (r"(?![A-Za-z])" if text[0] == "\\" and text[-1].isalpha() else "")
        for text in sorted(_SAME, key=len, reverse=True)
    )
)
_TEXT: Final = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox|operatorname|rm)\s*")
_SPACES: Final = re.compile(r"\s+")


def plain(text: str) -> str:
    """The text without LaTeX that only says how it looks; `\\text{cm}` becomes ` cm `.

    >>> plain(r"\\left( \\dfrac{1}{2}, 3\\,\\text{cm} \\right)")
    '( \\\\frac{1}{2}, 3 cm )'
    """
    if text.isascii() and "\\" not in text and "~" not in text and "{" not in text:
        return _SPACES.sub(" ", text).strip()
    text = _COMMAND.sub(lambda found: _SAME[found[0]], text)
    return _SPACES.sub(" ", _without_text_commands(text)).strip()


def group_end(text: str, start: int) -> int:
    """The index of the brace that closes the one at `start`; -1 if none does."""
    depth = 0
    for index in range(start, len(text)):
        if text[index] == "{":
            depth += 1
        elif text[index] == "}":
            depth -= 1
            if not depth:
                return index
    return -1


def _without_text_commands(text: str) -> str:
    while found := _TEXT.search(text):
        end = group_end(text, found.end()) if text[found.end() : found.end() + 1] == "{" else -1
        if end < 0:
            text = f"{text[: found.start()]} {text[found.end() :]}"
        else:
            inside = text[found.end() + 1 : end]
            text = f"{text[: found.start()]} {inside} {text[end + 1 :]}"
    return text
