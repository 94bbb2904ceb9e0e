"""Where in a text the workflow stands.

A model wraps its workflow in prose, tags, fences, bullets. What surrounds it is overwritten with
blanks, never cut, so that every place in the rest is still a place in the text; each step is told
in a note. In this order: thoughts are left out; the last complete `<workflow>` tag, in it the last
fenced block, in it what follows the last label; then quotes, bullets and trailing punctuation.

Inside prose a workflow is the longest span that is one, with two conditions: it holds an arrow or a
bracket, or is a canonical name alone on its line, since `review` and `test` are words too; and it
ends where the workflow ends. A span that goes on in something unreadable is a faulty workflow, of
which no part is run.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass

from aflowgym.dsl.diagnostics import Diagnostic
from aflowgym.dsl.nodes import Node, size
from aflowgym.dsl.parsing import Parser
from aflowgym.dsl.reading import Syntax, opens
from aflowgym.dsl.tokens import Token, tokenize
from aflowgym.operators import DONE_WORDS, Registry

_THINK = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.S | re.I)
_TAG = re.compile(r"<workflow\b[^<>]*>((?:(?!<workflow\b).)*?)</workflow\s*>", re.S | re.I)
_FENCE = re.compile(r"```(?:[\w-]*[ \t]*\n)?(.*?)```", re.S)
_LABEL = re.compile(r"\b(?:dsl|workflow)\**[ \t]*:\**((?:(?!\n[ \t]*\n).)*)", re.S | re.I)
_MARKUP = (
    re.compile(r"`+"),
    re.compile(r"\*\*(?=\S)|(?<=\S)\*\*"),
    re.compile(r"^[ \t]*(?:[-•]|\*(?=[ \t]+[^0-9\s])|[0-9]+[.)])[ \t]+", re.M),
)
_STOP = re.compile(r"[.;,]")
#: Starting points tried in one text; prose of a thousand operators holds no workflow.
_MOST_STARTS = 400


@dataclass(frozen=True, slots=True)
class Region:
    """A text in which everything but the workflow is blank, and what was done to get there."""

    text: str
    notes: tuple[Diagnostic, ...] = ()


def _only(text: str, start: int, end: int) -> str:
    return " " * start + text[start:end] + " " * (len(text) - end)


def _blank(text: str, pattern: re.Pattern[str]) -> str:
    return pattern.sub(lambda found: " " * len(found[0]), text)


def _without_stops(text: str) -> str:
    """The text with its trailing punctuation blank, and what blanks stand in that.

    Looked for from the end: a pattern that starts at each mark and hopes that the text ends behind
    it goes through a long run of them once for each.
    """
    end = len(text)
    while end and (text[end - 1] in ".;," or text[end - 1].isspace()):
        end -= 1
    first = _STOP.search(text, end)
    return text if first is None else text[: first.start()] + " " * (len(text) - first.start())


def _narrowed(region: Region, pattern: re.Pattern[str], code: str, operators: Registry) -> Region:
    """The last match of a pattern that speaks of an operator, if there is one."""
    found = None
    for match in pattern.finditer(region.text):
        if code == "N-TAG" or _names_an_operator(match[1], operators):
            found = match
    if found is None:
        return region
    inside = found[1]
    start = found.start(1) + len(inside) - len(inside.lstrip())
    end = max(start, found.start(1) + len(inside.rstrip()))
    note = Diagnostic(code, _WHY[code], (start, end), inside.strip())
    return Region(_only(region.text, start, end), (*region.notes, note))


_WHY = {
    "N-TAG": "Taken from the last <workflow> tag.",
    "N-FENCE": "Taken from the last fenced block.",
    "N-LABEL": "Taken from behind the last label.",
}


def _names_an_operator(text: str, operators: Registry) -> bool:
    return any(operators.resolve(word) for word in re.findall(r"[A-Za-z][\w-]*", text))


def located(text: str, operators: Registry) -> Region:
    """The text without thoughts, narrowed to its last tag, fence and label."""
    unthought = _blank(text, _THINK)
    notes = []
    if unthought != text:
        spans = [found.span() for found in _THINK.finditer(text)]
        notes.append(Diagnostic("N-THINK", "Thoughts were not read.", (spans[0][0], spans[-1][1])))
    region = Region(unthought, tuple(notes))
    for pattern, code in ((_TAG, "N-TAG"), (_FENCE, "N-FENCE"), (_LABEL, "N-LABEL")):
        region = _narrowed(region, pattern, code, operators)
    return region


def unmarked(region: Region) -> Region:
    """The same without quotes, bullets, numbers and trailing punctuation."""
    text = region.text
    for pattern in _MARKUP:
        text = _blank(text, pattern)
    text = _without_stops(text)
    if text == region.text:
        return region
    places = [at for at, (old, new) in enumerate(zip(region.text, text, strict=True)) if old != new]
    span = (places[0], places[-1] + 1)
    note = Diagnostic("N-MARKUP", "Marks around the workflow were set aside.", span)
    return Region(text, (*region.notes, note))


@dataclass(frozen=True, slots=True)
class Found:
    """A span of prose that is a workflow of `size` operators; of size 0, one that is faulty."""

    syntax: Syntax
    size: int
    start: int
    end: int


def _starts(tokens: list[Token], operators: Registry) -> list[int]:
    """The tokens at which a workflow could begin."""
    return [
        at
        for at, token in enumerate(tokens)
        if token.kind in "[(" or (token.kind == "word" and operators.resolve(token.text))
    ][:_MOST_STARTS]


_LINKS = frozenset({"arrow", "times", "[", "(", "?"})


def _cut(text: str, tokens: list[Token], first: int, last: int, operators: Registry) -> bool:
    """Whether the tokens from `first` up to `last` are a piece of something larger."""
    if first and tokens[first - 1].kind in _LINKS:
        return True
    after = tokens[last]
    if after.kind in ("arrow", "times", "?", "]", ")"):
        return True
    if "\n" in text[tokens[last - 1].end : after.start]:
        return False
    if after.kind in ("[", "("):
        return opens(tokens[last + 1], operators) or tokens[last + 1].kind in ("[", "(", "string")
    return after.text in operators or after.text == ";"


def _one_span(parser: Parser, at: int) -> tuple[Found | None, int]:
    """The workflow that begins at a token, if one does, and the token to look on from."""
    text, tokens, operators = parser.text, parser.tokens, parser.operators
    syntax = parser.prefix(at)
    end = max(parser.at, at + 1)
    linked = any(token.kind in ("arrow", "[") for token in tokens[at:end])
    start, stop = tokens[at].start, tokens[end - 1].end
    sound = syntax.tree is not None and syntax.sound
    if not sound or _cut(text, tokens, at, end, operators):
        linked = linked or tokens[at - 1 if at else at].kind in _LINKS
        return (Found(syntax, 0, start, stop) if linked else None), end
    if syntax.tree is None or not (linked or _alone(text, start, stop, syntax.tree, operators)):
        return None, end
    return Found(syntax, size(syntax.tree)[0], start, stop), end


def _alone(text: str, start: int, end: int, tree: Node, operators: Registry) -> bool:
    """Whether a span without arrow or bracket is a canonical name alone on its line."""
    stop = text.find("\n", end)
    line = text[text.rfind("\n", 0, start) + 1 : start] + text[end : stop if stop >= 0 else None]
    return not line.strip(" \t.;,:!") and text[start:end] == str(tree)


def spans(text: str, operators: Registry) -> list[Found]:
    """Every workflow in a text of prose, in reading order; they do not overlap.

    A line on which something faulty links operators too gives none: it may be one faulty workflow.
    """
    parser = Parser(text, operators)
    found: list[Found] = []
    allowed = 0
    for at in _starts(parser.tokens, operators):
        if at >= allowed:
            span, allowed = _one_span(parser, at)
            found += [span] if span else []
    breaks = [each.start() for each in re.finditer("\n", text)]
    faulty: set[int] = set()
    for span in found:
        if not span.size:
            faulty |= _lines(breaks, span)
    return [span for span in found if span.size and not faulty & _lines(breaks, span)]


def _lines(breaks: list[int], span: Found) -> set[int]:
    """The numbers of the lines that a span stands on, by where the lines end."""
    return set(range(bisect_left(breaks, span.start), bisect_left(breaks, span.end) + 1))


def longest(found: list[Found]) -> list[Found]:
    """Those of the most operators, one per canonical form, the last of each."""
    most = max((span.size for span in found), default=0)
    return list({str(span.syntax.tree): span for span in found if span.size == most}.values())


def faulty_piece(text: str, operators: Registry) -> str | None:
    """The lines of a text that try to be a workflow, the others blank; None if none does.

    A line tries if it links operators by arrows or brackets, or if most of its words are operators.
    """
    if len(text.split()) == 1:
        return text  # a single word can only be meant as a name
    kept = [line if _tries(line, operators) else " " * len(line) for line in text.splitlines(True)]
    piece = "".join(kept)
    return piece if piece.strip() else None


def _tries(line: str, operators: Registry) -> bool:
    tokens, _ = tokenize(line)
    words = [token.text for token in tokens if token.kind == "word"]
    known = sum(operators.resolve(word) is not None or word in DONE_WORDS for word in words)
    linked = any(token.kind in ("arrow", "[", "]") for token in tokens)
    return linked or (known > 0 and 2 * known >= len(words))
