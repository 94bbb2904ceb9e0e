"""The final answer in what a model or an operator wrote.

In this order, and the last of its kind each time: `\\boxed{...}`, `<answer>...</answer>`,
`#### ...`, "the answer is ..." or "Answer: ...", the last line. Exactly one place is taken: an
answer is never searched for among all the numbers of a text, so hedging gains nothing and an error
message with the right number in it stays wrong. `statement_in` goes one step further, for one line
of prose: the text after its last "we get", "equals" or "=".
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from aflowgym.answers.latex import group_end
from aflowgym.remembering import remembered

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
# The blanks behind a marked answer are left to `bare`: a pattern that asks of each run of blanks
# whether the line ends there goes through it once for each of its blanks.
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
    """The final answer of a text, without the decoration around it, and its place."""

    text: str
    place: Place


@remembered(8192)
def final_answer(text: str) -> FinalAnswer:
    """The final answer that a text gives.

    >>> final_answer(r"So x = 3. Thus \\boxed{\\frac{1}{2}}.")
    FinalAnswer(text='\\\\frac{1}{2}', place='boxed')
    >>> final_answer("I think of 4. The answer is 5, since 2 + 3 = 5.").text
    '5, since 2 + 3 = 5'
    """
    text = text[-MAX_TEXT:]  # a pattern is tried only where what all its matches hold is there
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
    """Return what a line of prose states after its last link word; None if it states nothing.

    >>> statement_in("for n in the set we get 5"), statement_in("the sum is not 5")
    ('5', None)
    """
    link = _last(_LINKS.finditer(line))
    if link is None or _DENIED.search(line):
        return None
    return bare(line[link.end() :]) or None


def _last(matches: Iterator[re.Match[str]]) -> re.Match[str] | None:
    """The last match, without holding all the others, of which there may be a million."""
    last = deque(matches, 1)
    return last[0] if last else None


def bare(text: str) -> str:
    """The text without Markdown, dollar signs of formulas, quotes, and a full stop around it."""
    text = text.strip()
    if text.endswith("...") and _GOES_ON.search(text[-_LONGEST_DECIMAL:]):
        text = text[:-3] + "…"  # the dots of `0.333...` mean more decimals
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
