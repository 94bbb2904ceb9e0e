"""Extract final answers from text; `Verdict` is the verdict on an answer.

`final_answer` tries these forms in order and returns the last match of the first form that occurs:
`\\boxed{...}`, `<answer>...</answer>`, `#### ...`, "the answer is ..." or "Answer: ...", the last
line. `final_answer` never searches the entire text for numbers. Therefore a list of several answers
is not accepted, and an error message that contains the correct number is still wrong.

`statement_in` returns the text after the last "we get", "equals" or "=" in a line of prose. `plain`
converts LaTeX and Unicode to plain text. `plain` makes only changes that preserve the value, and
keeps `\\frac`, `\\sqrt`, `\\overline` and unknown commands.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from aflowgym.remembering import remembered


@dataclass(frozen=True)
class Verdict:
    """The verdict on one answer.

    Attributes:
        correct: Whether the answer is fully correct; None if the gold answer cannot be parsed.
        progress: Progress from 0 to 1; it is 1 if and only if the answer is correct.
        reason: Why the answer is not correct, as a phrase that completes a sentence; empty if the
            answer is correct.
    """

    correct: bool | None
    progress: float = 0.0
    reason: str = ""


RIGHT = Verdict(True, 1.0)


def wrong(reason: str, progress: float = 0.0) -> Verdict:
    """Return the verdict on a wrong answer, with progress below 1."""
    return Verdict(False, min(progress, 0.999), reason)


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
    """Remove the LaTeX commands that affect only the layout of text.

    For example, `\\text{cm}` becomes ` cm `.

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
    """Convert a root to LaTeX. All digits after `√` belong to the radicand."""
    command = "\\sqrt[3]" if match["cube"] else "\\sqrt"
    digits = match["of"] or match["within"]
    return f"{command}{{{digits}}}" if digits else command


def group_end(text: str, start: int) -> int:
    """Return the index of the brace that closes the one at `start`, or -1 if there is none."""
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.start()
    return -1


Place = Literal["boxed", "tag", "mark", "said", "last_line", "nothing"]
MAX_TEXT: Final = 100_000

_BOXED: Final = re.compile(r"\\(?:boxed|fbox)\s*(?=\{)")
_TAG_END: Final = re.compile(r"</(answer|final_answer|solution)>")
_LAST_BOXES: Final = 8
_LONGEST: Final = 20_000
_LONGEST_DECIMAL: Final = 60
_MOST_LAYERS: Final = 10
_AROUND: Final = (
    ("**", "**"), ("__", "__"), ("$$", "$$"), ("$", "$"), ("`", "`"), ('"', '"'), ("“", "”"),
    ("\\(", "\\)"), ("\\[", "\\]"),
)  # fmt: skip
# The spaces after a marked answer are left to `bare`. A pattern that checks after each run of
# spaces whether the line ends there would scan the run once for each of its spaces.
_MARK: Final = re.compile(r"^####[ \t]*(.+)$", re.MULTILINE)
_SAID: Final = re.compile(
    r"\b(?:the\s+)?(?:final\s+|correct\s+|right\s+)?answer(?:\s+is|\s*[:=]|\s+would\s+be)[ \t*:]*",
    re.IGNORECASE,
)
_CLOSE: Final = re.compile(r"(?<=[^\s.])[.!](?=\s+[A-Z(]|\s*$)|\n")
_LINKS: Final = re.compile(
    r"(?:\bwe (?:get|have|obtain|find)\b|\b(?:gives|equals|is|are|was|were|yields|leaves|makes"
    r"|costs|becomes)\b|=|≈)\s*:?\s*",
    re.IGNORECASE,
)
_DENIED: Final = re.compile(
    r"\b(?:not|never|n't|no longer|cannot|no one|nobody|neither|nor|hardly|doubt\w*|unclear"
    r"|maybe|perhaps)\b|n[’']t\b",
    re.IGNORECASE,
)
_GOES_ON: Final = re.compile(r"\d\.\d{2,}\.{3}\Z")


@dataclass(frozen=True)
class FinalAnswer:
    """The final answer in a model's output, without markup, and the form in which it was given."""

    text: str
    place: Place


@remembered(8192)
def final_answer(text: str) -> FinalAnswer:
    """Return the final answer in a model's output.

    >>> final_answer(r"So x = 3. Thus \\boxed{\\frac{1}{2}}.")
    FinalAnswer(text='\\\\frac{1}{2}', place='boxed')
    >>> final_answer("I think of 4. The answer is 5, since 2 + 3 = 5.").text
    '5, since 2 + 3 = 5'
    """
    # A pattern is only used if the text contains the parts that all its matches have.
    text = text[-MAX_TEXT:]
    if "\\" in text and (boxed := _last_boxed(text)) is not None:
        return FinalAnswer(bare(boxed), "boxed")
    if "</" in text and (tagged := _last_tagged(text)) is not None:
        return FinalAnswer(bare(tagged), "tag")
    if "####" in text and (marks := _MARK.findall(text)):
        return FinalAnswer(bare(marks[-1]), "mark")
    if "answer" in text.casefold() and (answer := _last_said(text)):
        return FinalAnswer(answer, "said")
    lines = [line for line in text.splitlines() if line.strip(" `*\t")]
    if not lines:
        return FinalAnswer("", "nothing")
    return FinalAnswer(bare(lines[-1]), "last_line")


def statement_in(line: str) -> str | None:
    """Return the statement after the last linking word in a line of prose, or None.

    >>> statement_in("for n in the set we get 5"), statement_in("the sum is not 5")
    ('5', None)
    """
    link = _last(_LINKS.finditer(line))
    if link is None or _DENIED.search(line):
        return None
    return bare(line[link.end() :]) or None


def _last(matches: Iterator[re.Match[str]]) -> re.Match[str] | None:
    """Return the last match without storing the others, of which there may be a million."""
    last = deque(matches, 1)
    return last[0] if last else None


def bare(text: str) -> str:
    """Strip surrounding Markdown, math dollar signs, quotes and a final full stop from text."""
    text = text.strip()
    if text.endswith("...") and _GOES_ON.search(text[-_LONGEST_DECIMAL:]):
        text = text[:-3] + "…"  # the dots of `0.333...` stand for more decimals
    for _ in range(_MOST_LAYERS):
        before = text
        text = text.removesuffix(".").strip()
        for opening, closing in _AROUND:
            longer = len(text) > len(opening + closing)
            if longer and text.startswith(opening) and text.endswith(closing):
                text = text[len(opening) : -len(closing)].strip()
        if text.count("**") == 1:
            text = text.removeprefix("**").removesuffix("**").strip()
        if text == before:
            break
    return text


def _last_boxed(text: str) -> str | None:
    for match in reversed(deque(_BOXED.finditer(text), _LAST_BOXES)):
        end = group_end(text[: match.end() + _LONGEST], match.end())
        if end > 0:
            return text[match.end() + 1 : end]
    return None


def _last_tagged(text: str) -> str | None:
    for match in reversed(deque(_TAG_END.finditer(text), _LAST_BOXES)):
        opening = f"<{match[1]}>"
        start = text.rfind(opening, 0, match.start())
        if start >= 0:
            return text[start + len(opening) : match.start()]
    return None


def _last_said(text: str) -> str | None:
    match = _last(_SAID.finditer(text))
    if match is None:
        return None
    rest = text[match.end() :].lstrip()
    close = _CLOSE.search(rest)
    return bare(rest[: close.start()] if close else rest) or None
