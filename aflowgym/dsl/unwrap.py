"""Remove the text around a workflow in a model completion.

`unwrap` finds the workflow after `<think>` blocks, in one `<workflow>` tag, in one fenced block, or
after a label such as `DSL:`. The workflow can be surrounded by quotation marks and similar
characters. All other text is replaced with spaces, so that positions in the result are also
positions in the original text. The text around a tag, fence or label must be prose. Any other text
that could be part of a workflow is an error.
"""

from __future__ import annotations

import re

from aflowgym.dsl.diagnostics import Diagnostic
from aflowgym.dsl.parsing import Syntax, read
from aflowgym.dsl.tokens import Token, tokenize
from aflowgym.operators.operator import DONE_WORDS, Operators

# Instructions are hidden from the search for tags, fences and labels.
_INSTRUCTION = re.compile(r'[(（]\s*"(?:[^"\\\n]|\\[^\n])*+"(?=\s*[)）])')
_THOUGHT = re.compile(r".*</think(?:ing)?>", re.S | re.I)
_AROUND = (
    (
        "N-TAG",
        "Taken from the <workflow> tag.",
        re.compile(r"<workflow\b[^<>]*>", re.I),
        re.compile(r"</workflow\s*>", re.I),
    ),
    (
        "N-FENCE",
        "Taken from the fenced block.",
        re.compile(r"```(?:[\w-]*[ \t]*\n)?"),
        re.compile("```"),
    ),
    (
        "N-LABEL",
        "Taken from after the label.",
        re.compile(
            r"^[ \t]*\**(?:here(?: is|'s) )?(?:(?:my|the) )?(?:final )?(?:dsl|workflow)\**[ \t]*"
            r"(?:[:：]|=(?![=>]))\**",
            re.M | re.I,
        ),
        re.compile(r"\Z"),
    ),
)
_MARKER = re.compile(r"```|</?(?:workflow|think)\b[^<>\n]*>?", re.I)
_SIGNS = frozenset("+|&\\^~=<>@%{}[]*×")
_PAIRS = {'"': '"', "'": "'", "`": "`", "*": "*", "“": "”", "‘": "’", "«": "»", "「": "」"}
_BULLET = re.compile(r"(?:[-•>]|\*(?=[ \t]+[^0-9\s])|[0-9]+[.)])[ \t]+")
_STOPS = ".;,。"


def is_prose(text: str, operators: Operators) -> bool:
    """Return whether all lines of a string are prose, none of which could be part of a workflow.

    A line is prose under the following conditions. It has no arrow. For each operator name in it,
    the line has more than two other words; for a lower-case name, which can be an ordinary word,
    one other word is enough. A line with a number or a symbol has at least three words.
    """
    if _MARKER.search(text) or re.search(r'[(（]\s*"', text):
        return False
    for line in text.splitlines():
        plain = named = 0
        odd = False
        for token in tokenize(re.sub('["#/]', " ", line))[0]:
            if token.kind == "word" and operators.resolve(token.text):
                named += 1 if token.text.islower() else 2
            elif token.kind == "word" or token.text.isalpha():
                plain += 1
            elif token.kind == "arrow":
                return False
            elif token.kind in ("count", "int") or token.text in _SIGNS:
                odd = True
        if (named and named >= plain) or (odd and plain < 3):
            return False
    return True


def unwrap(text: str, operators: Operators) -> tuple[str, list[Diagnostic]]:
    """Replace text around a workflow with spaces, reporting each part in a diagnostic."""
    shape = _INSTRUCTION.sub(lambda match: "(" + "_" * (len(match[0]) - 1), text)
    begin, end = 0, len(text.rstrip())
    found: list[Diagnostic] = []

    def note(code: str, message: str) -> None:
        found.append(Diagnostic(code, message, (begin, end), text[begin:end]))

    thought = _THOUGHT.match(shape)
    if thought is not None:
        begin = thought.end()
        note("N-THINK", "The text before </think> was not read.")
    for code, message, opening, closing in _AROUND:
        opened = opening.search(shape, begin, end)
        closed = closing.search(shape, opened.end(), end) if opened else None
        if opened is None or closed is None:
            continue
        for start, stop in ((begin, opened.start()), (closed.end(), end)):
            rest = text[start:stop]
            if not is_prose(rest, operators):
                two = _MARKER.search(rest)
                start += len(rest) - len(rest.lstrip())
                found.append(
                    Diagnostic(
                        "E-TWO-WORKFLOWS" if two else "E-REST",
                        "Write one workflow, without other text around it.",
                        (start, stop),
                        text[start:stop],
                    )
                )
        begin, end = opened.end(), closed.start()
        note(code, message)
    open_marker = _MARKER.search(shape, begin, end)
    if open_marker is not None:
        message = f"{open_marker[0]} is not closed; the workflow may be cut off."
        found.append(Diagnostic("E-EXPECTED", message, open_marker.span(), open_marker[0]))
        text = _MARKER.sub(lambda match: " " * len(match[0]), text)
    inner = (begin, end)
    begin, end = _without_marks(shape, begin, end)
    if text[inner[0] : inner[1]].strip() != text[begin:end]:
        note("N-MARKUP", "Marks around the workflow were ignored.")
    return " " * begin + text[begin:end] + " " * (len(text) - end), found


def _without_marks(text: str, begin: int, end: int) -> tuple[int, int]:
    """Return the span of a workflow without surrounding spaces, bullet, quotes and full stop."""
    while True:
        while begin < end and text[begin].isspace():
            begin += 1
        while begin < end and text[end - 1].isspace():
            end -= 1
        bullet = _BULLET.match(text, begin, end)
        if bullet is not None:
            begin = bullet.end()
        elif end - begin > 1 and text[end - 1] in _STOPS and text[end - 2] not in _STOPS:
            end -= 1
        elif end - begin > 1 and _PAIRS.get(text[begin]) == text[end - 1]:
            begin, end = begin + 1, end - 1
        else:
            return begin, end


def in_words(text: str, operators: Operators) -> Syntax | None:
    """Return the error for text in which operators are mixed with other words.

    Returns:
        The error, with the tree of the longest valid part. Return None if the text consists only of
        a workflow, even if this workflow has errors.
    """
    tokens, _ = tokenize(text.replace('"', " "))
    other: Token | None = None
    best: list[Token] = []
    start = 0
    for at, token in enumerate(tokens):
        foreign = (
            token.kind == "word"
            and operators.resolve(token.text) is None
            and token.text.lower() not in DONE_WORDS
        )
        if foreign or token.kind in ("int", "other", "end"):
            best = max(best, tokens[start:at], key=_words)
            start = at + 1
        if foreign and other is None and "word" in (tokens[at - 1].kind, tokens[at + 1].kind):
            other = token
    if other is None and _words(tokenize(text)[0]):
        return None
    code, message = "E-REST", "Write the workflow alone, without other words or quotes."
    if not any(token.kind in ("arrow", "[") for token in best):
        code, message = "E-NO-WORKFLOW", "There is no workflow in this text."
    place = other or Token("", text, 0, len(text))
    tree = (
        read(text[best[0].start : best[-1].end].replace('"', " "), operators).tree if best else None
    )
    return Syntax(tree, [Diagnostic(code, message, (place.start, place.end), place.text)])


def _words(tokens: list[Token]) -> int:
    return sum(token.kind == "word" for token in tokens)
