"""Plain text from the LaTeX and the Unicode that answers are written in.

Words and signs of plain text, `sqrt`, `pi`, `<=`, become the same as LaTeX's commands.
Only what changes no value is rewritten: sizes of brackets and fractions, spacing, signs that look
different and mean the same. `\\frac`, `\\sqrt`, `\\overline` and
unknown commands, which the reader of expressions refuses, are kept.
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
    "\\{": "⦃", "\\}": "⦄", "\\lbrace": "⦃", "\\rbrace": "⦄",
    "²": "^2 ", "³": "^3 ", "½": "\\frac12", "⅓": "\\frac13", "⅔": "\\frac23",
    "¼": "\\frac14", "¾": "\\frac34", "⅕": "\\frac15", "⅛": "\\frac18", "{,}": ",",
    "\\le": "≤", "\\leq": "≤", "\\ge": "≥", "\\geq": "≥", "\\ne": "≠", "\\neq": "≠",
    "\\lt": "<", "\\gt": ">", "\\pm": "±", "\\cup": "∪", "\\cap": "∩", "\\in": "∈",
    "\\approx": "≈", "\\emptyset": "∅", "\\varnothing": "∅", "\\ldots": "…", "\\dots": "…",
    "⁴": "^4 ", "⁵": "^5 ", "⁻¹": "^{-1}", "<=": "≤", ">=": "≥",
}  # fmt: skip
_COMMAND: Final = re.compile(
    "|".join(
        re.escape(text) + (r"(?![A-Za-z])" if text[0] == "\\" and text[-1].isalpha() else "")
        for text in sorted(_SAME, key=len, reverse=True)
    )
)
_THOUSANDS: Final = re.compile(r",\s*\\!\s*(?=\d)")  # the `,\!` of `11,\! 111`
_ROOT: Final = re.compile(
    r"(?P<cube>∛|(?<![A-Za-z\\])cbrt(?![A-Za-z]))\s*(?P<of>\d+(?:\.\d+)?)?"
    r"|(?:√|(?<![A-Za-z\\])sqrt(?![A-Za-z]))\s*(?P<within>\d+(?:\.\d+)?)?"
)
_PI: Final = re.compile(r"(?<![A-Za-z\\])[Pp]i(?![A-Za-z])")
_INFINITY: Final = re.compile(r"(?<![A-Za-z\\])(?:infinity|infty)(?![A-Za-z])")
_TEXT: Final = r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox|operatorname|rm)(?![A-Za-z])\s*"
_TEXT_GROUP: Final = re.compile(_TEXT + r"\{([^{}]*)\}")
_TEXT_COMMAND: Final = re.compile(_TEXT)
_DEEPEST: Final = 3
_SPECIAL: Final = frozenset("=\\~{")
_BRACE: Final = re.compile(r"[{}]")
_SPACES: Final = re.compile(r"\s+")


def plain(text: str) -> str:
    """The text without LaTeX that only says how it looks; `\\text{cm}` becomes ` cm `.

    >>> plain(r"\\left( \\dfrac{1}{2}, 3\\,\\text{cm} \\right)")
    '( \\\\frac{1}{2}, 3 cm )'
    """
    if "√" in text or "∛" in text or "rt" in text:
        text = _ROOT.sub(_root_command, text)
    if "pi" in text.lower():
        text = _PI.sub("π", text)
    if "inf" in text:
        text = _INFINITY.sub("∞", text)
    text = _THOUSANDS.sub(",", text) if "\\!" in text else text
    if text.isascii() and _SPECIAL.isdisjoint(text):
        return _SPACES.sub(" ", text).strip()
    text = _COMMAND.sub(lambda match: _SAME[match[0]], text)
    for _ in range(_DEEPEST if "\\" in text else 0):  # the innermost groups first
        text = _TEXT_GROUP.sub(r" \1 ", text)
    return _SPACES.sub(" ", _TEXT_COMMAND.sub(" ", text)).strip()


def _root_command(match: re.Match[str]) -> str:
    """A root in LaTeX; all digits after `√` are under it."""
    command = "\\sqrt[3]" if match["cube"] else "\\sqrt"
    digits = match["of"] or match["within"]
    return f"{command}{{{digits}}}" if digits else command


def group_end(text: str, start: int) -> int:
    """The index of the brace that closes the one at `start`; -1 if none does."""
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.start()
    return -1
