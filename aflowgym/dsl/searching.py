"""A workflow inside prose.

It is a span that is one, with three conditions: it holds an arrow or a bracket, or is a canonical
name alone on its line, since `review` and `test` are words too; what stands around it is prose, as
`aflowgym.dsl.prose` judges; and there is no second one beside it. A span that goes on in something
unreadable is a faulty workflow, of which no part is run.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from aflowgym.dsl.checking import accepted
from aflowgym.dsl.diagnostics import Diagnostic
from aflowgym.dsl.extraction import rest
from aflowgym.dsl.nodes import Node, Op, Span, operators_of, sequence, size
from aflowgym.dsl.parsing import Parser
from aflowgym.dsl.prose import follows, items_of, more_of_it
from aflowgym.dsl.tokens import Syntax, Token, opens, tokenize
from aflowgym.operators.operator import DONE_WORDS, Operators

#: Starting points tried in one text; prose of a thousand operators holds no workflow.
_MOST_STARTS = 400


@dataclass(frozen=True, slots=True)
class Found:
    """A span of prose that is a workflow of `size` operators; of size 0, one that is faulty."""

    syntax: Syntax
    size: int
    start: int
    end: int


def _starts(tokens: list[Token], operators: Operators) -> list[int]:
    """The tokens at which a workflow could begin."""
    return [
        at
        for at, token in enumerate(tokens)
        if token.kind in "[(" or (token.kind == "word" and operators.resolve(token.text))
    ][:_MOST_STARTS]


_LINKS = frozenset({"arrow", "times", "[", "(", "?"})


def _cut(text: str, tokens: list[Token], first: int, last: int, operators: Operators) -> bool:
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
    return after.text in operators


def _one_span(parser: Parser, at: int) -> tuple[Found | None, int]:
    """The workflow that begins at a token, if one does, and the token to look on from."""
    text, tokens, operators = parser.text, parser.tokens, parser.operators
    syntax = parser.prefix(at)
    end = max(parser.at, at + 1)
    # `then` alone links words of prose too.
    linked = any(
        token.kind == "[" or (token.kind == "arrow" and not token.text.isalpha())
        for token in tokens[at:end]
    )
    start, stop = tokens[at].start, tokens[end - 1].end
    # What stands behind a last arrow, or behind `a ? b` and a colon, is the rest of it.
    leads_on = tokens[end - 1].kind == "arrow" or (
        tokens[end].text in (":", "：", ";")
        and any(record.code == "W-COND-ELSE" for record in syntax.diagnostics)
    )
    sound = syntax.tree is not None and syntax.sound and not leads_on
    if not sound or _cut(text, tokens, at, end, operators):
        linked = linked or tokens[at - 1 if at else at].kind in _LINKS
        return (Found(syntax, 0, start, stop) if linked else None), end
    if syntax.tree is None or not (linked or _alone(text, start, stop, syntax.tree, operators)):
        return None, end
    return Found(syntax, size(syntax.tree)[0], start, stop), end


def _alone(text: str, start: int, end: int, tree: Node, operators: Operators) -> bool:
    """Whether a span without arrow or bracket is a canonical name alone on its line."""
    stop = text.find("\n", end)
    line = text[_line(text, start) : start] + text[end : stop if stop >= 0 else None]
    return not line.strip(" \t.;,:!") and text[start:end] == str(tree)


def spans(parser: Parser) -> list[Found]:
    """Every workflow in a text of prose, in reading order; they do not overlap.

    A line on which something faulty links operators too gives none: it may be one faulty workflow.
    """
    candidates: list[Found] = []
    allowed = 0
    for at in _starts(parser.tokens, parser.operators):
        if at >= allowed:
            span, allowed = _one_span(parser, at)
            candidates += [span] if span else []
    breaks = [each.start() for each in re.finditer("\n", parser.text)]
    faulty: set[int] = set()
    for span in candidates:
        if not span.size:
            faulty |= _lines(breaks, span)
    return [span for span in candidates if span.size and not faulty & _lines(breaks, span)]


def _lines(breaks: list[int], span: Found) -> set[int]:
    """The numbers of the lines that a span stands on, by where the lines end."""
    return set(range(bisect_left(breaks, span.start), bisect_left(breaks, span.end) + 1))


def _meant(candidates: list[Found], operators: Operators) -> list[Found]:
    """The spans that can be what is meant: not a piece of the longest that could not run alone.

    `Review -> Revise` in an explanation of `Custom -> Review -> Revise` is such a piece.
    """
    texts = [str(span.syntax.tree) for span in candidates]
    longest = max(texts, key=len, default="")
    return [
        span
        for span, text in zip(candidates, texts, strict=True)
        for tree in [span.syntax.tree]
        if text == longest or text not in longest or tree is None or accepted(tree, operators)
    ]


def only(text: str, operators: Operators) -> Syntax | None:
    """The one workflow in a text of prose; errors where there are more, None if there is none."""
    parser = Parser(text, operators, prose=True)
    candidates = spans(parser)
    meant = _meant(candidates, operators)
    if not meant:
        return None
    last, tree = meant[-1], meant[-1].syntax.tree
    if len({str(span.syntax.tree) for span in meant}) > 1:
        place = (meant[1].start, meant[1].end)
        message = "More than one workflow, and no sign which is meant; write one."
        two = Diagnostic("E-TWO-WORKFLOWS", message, place, text[slice(*place)])
        return Syntax(tree, [two])
    more = None if tree is None else _more(parser, candidates, meant, tree)
    if more is not None:
        return more
    place = (last.start, last.end)
    note = Diagnostic("N-SPAN", "Taken out of the text around it.", place, text[slice(*place)])
    return Syntax(tree, [*last.syntax.diagnostics, note])


def _more(parser: Parser, candidates: list[Found], meant: list[Found], tree: Node) -> Syntax | None:
    """The error that something beside the workflow looks like more of it, if something does."""
    text, operators = parser.text, parser.operators
    own = frozenset(each.name for each in operators_of(tree))
    starts = [None, *(span.end for span in meant)]
    ends = [*(span.start for span in meant), None]
    gaps = _gaps(parser.tokens, candidates, {id(span) for span in meant}, min(own))
    for tokens, start, end in zip(gaps, starts, ends, strict=True):
        more = more_of_it(items_of(tokens, text, operators), own, start, end, text)
        if more is not None:
            items, before = more
            named: list[Node] = [Op(item.name) for item in items if item.name in operators]
            works = sequence([*named, tree] if before else [tree, *named])
            return Syntax(works, [rest(items, text)])
    behind = [(each.start, each.end) for each in parser.comments if _beside(text, each, meant)]
    errors = _comment_errors(text, behind, operators)
    return Syntax(tree, errors) if errors else None


def _beside(text: str, comment: Token, spans: list[Found]) -> bool:
    """Whether a comment stands on the line of one of these, inside it or behind it."""
    at = bisect_right(spans, _line(text, comment.start), key=lambda span: span.end)
    return at < len(spans) and spans[at].start < comment.start


def _gaps(
    tokens: list[Token], candidates: list[Found], meant: set[int], name: str
) -> list[list[Token]]:
    """The tokens before, between and behind the spans that are meant; another span is a name."""
    gaps: list[list[Token]] = [[]]
    at = 0
    for token in tokens[:-1]:
        while at < len(candidates) and token.start >= candidates[at].end:
            at += 1
        if at == len(candidates) or token.start < candidates[at].start:
            gaps[-1].append(token)
        elif token.start == candidates[at].start:
            if id(candidates[at]) in meant:
                gaps.append([])
            else:
                gaps[-1].append(Token("word", name, token.start, candidates[at].end))
    return gaps


def check_comments(text: str, syntax: Syntax, operators: Operators) -> Syntax:
    """A reading, with an error for each comment behind a step that looks like another step."""
    spans = [record.span for record in syntax.diagnostics if record.code == "N-COMMENT"]
    behind = [span for span in spans if text[_line(text, span[0]) : span[0]].strip()]
    errors = _comment_errors(text, behind, operators)
    return Syntax(syntax.tree, [*syntax.diagnostics, *errors]) if errors else syntax


def _comment_errors(text: str, spans: list[Span], operators: Operators) -> list[Diagnostic]:
    errors = []
    for start, end in spans:
        at = end - len(text[start:end].lstrip("#/"))
        more = follows(text[at:end], operators)
        errors += [rest(more, text, at)] if more else []
    return errors


def _line(text: str, place: int) -> int:
    """Where the line of a place begins."""
    return text.rfind("\n", 0, place) + 1


def faulty_piece(text: str, operators: Operators) -> str | None:
    """The lines of a text that try to be a workflow, the others blank; None if none does.

    A line tries if it links operators by arrows or brackets, or if most of its words are operators.
    """
    if len(text.split()) == 1:
        return text  # a single word can only be meant as a name
    lines = [line if _tries(line, operators) else " " * len(line) for line in text.splitlines(True)]
    piece = "".join(lines)
    return piece if piece.strip() else None


def _tries(line: str, operators: Operators) -> bool:
    tokens, _ = tokenize(line)
    words = [token.text for token in tokens if token.kind == "word"]
    names = sum(operators.resolve(word) is not None or word in DONE_WORDS for word in words)
    linked = any(token.kind in ("arrow", "[", "]") for token in tokens)
    return linked or (names > 0 and 2 * names >= len(words))
