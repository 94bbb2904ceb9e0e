"""The place in a text where the workflow stands.

A model wraps its workflow in prose, tags, fences, bullets. What surrounds it is overwritten with
blanks, never cut, so that every place in the rest is still a place in the text; each step is told
in a note. In this order: thoughts are left out; the last complete `<workflow>` tag, in it the last
fenced block, in it what follows the last label; then quotes, bullets and trailing punctuation. What
stands right beside a tag, a fence or a label and goes on with the workflow is an error.

A workflow in JSON, `{"workflow": "Custom"}`, stands in another alphabet, so it is decoded, with the
place of every character kept. The instructions of operators are words that nothing else may read or
change; `mask_instructions` hides them from whatever looks for tags, labels and marks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from aflowgym.dsl.diagnostics import Diagnostic
from aflowgym.dsl.nodes import Node, operators_of
from aflowgym.dsl.prose import Item, follows, leads
from aflowgym.operators.operator import Operators

#: Stands for a character of an instruction.
MASK = "\ue000"
_INSTRUCTION = re.compile(
    r'(?<![\w-])([A-Za-z_][\w-]*+)(\s*[(（]\s*)("(?:[^"\\\n]|\\[^\n])*+")(?=\s*[)）])'
)
_STRING = r"""(?:"((?:[^"\\]|\\.)*+)"|'([^'"\\]*+)')"""
_PAIR = re.compile(rf"\s*{_STRING}\s*:\s*{_STRING}\s*(,\s*\}}|,|\}})", re.S)
_ESCAPE = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\(.)|[^\\]",
    re.S,
)
_MEANS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_KEYS = frozenset({"workflow", "dsl"})


def mask_instructions(text: str, operators: Operators) -> str:
    """The text with every quoted instruction of an operator hidden, character for character."""

    def hidden(match: re.Match[str]) -> str:
        if operators.resolve(match[1]) is None:
            return match[0]
        return match[1] + match[2] + MASK * len(match[3])

    return _INSTRUCTION.sub(hidden, text) if '"' in text else text


@dataclass(frozen=True, slots=True)
class Held:
    """The workflow that an object of JSON holds.

    Args:
        text: What the string says.
        places: Where in the text of the object each of its characters stands; one more for its end.
        others: The other values of the object.
    """

    text: str
    places: tuple[int, ...]
    others: tuple[str, ...]


def workflow_in_json(text: str) -> Held | None:
    """The workflow in a text that is an object of strings, one of them called workflow or dsl."""
    at = len(text) - len(text.lstrip())
    if not text.startswith("{", at):
        return None
    at += 1
    others: list[str] = []
    inner: list[Held] = []
    closed = False
    while not closed:
        pair = _PAIR.match(text, at)
        if pair is None:
            return None
        value = _decode(pair, 3 if pair[3] is not None else 4)
        if value is None:
            return None
        key = pair[1] if pair[1] is not None else pair[2]
        if key.lower() in _KEYS:
            inner.append(value)
        else:
            others.append(value.text)
        at, closed = pair.end(), pair[5][-1] == "}"
    if len(inner) != 1 or text[at:].strip():
        return None
    return Held(inner[0].text, inner[0].places, tuple(others))


def _decode(pair: re.Match[str], group: int) -> Held | None:
    """A string of JSON, read; None if it has an escape that JSON has not."""
    chars: list[str] = []
    places: list[int] = []
    at, end = pair.span(group)
    while at < end:
        each = _ESCAPE.match(pair.string, at, end)
        if each is None or (each[4] is not None and each[4] not in _MEANS):
            return None
        if each[1] is not None:
            both = bytes.fromhex(each[1]) + bytes.fromhex(each[2])
            chars.append(both.decode("utf-16-be"))
        elif each[3] is not None:
            chars.append(chr(int(each[3], 16)))
        else:
            chars.append(_MEANS[each[4]] if each[4] is not None else each[0])
        places.append(at)
        at = each.end()
    return Held("".join(chars), (*places, end), ())


_THINK = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.S | re.I)
_TAG = re.compile(r"<workflow\b[^<>]*>((?:(?!<workflow\b).)*?)</workflow\s*>", re.S | re.I)
_FENCE = re.compile(r"```(?:[\w-]*[ \t]*\n)?(.*?)```", re.S)
_LABEL = re.compile(
    r"\b(?:dsl|workflow)\**[ \t]*(?:[:：]|=(?![=>]))\**((?:(?!\n[ \t]*\n).)*)", re.S | re.I
)
_MARKUP = (
    re.compile(r"`+"),
    re.compile(r"\*\*(?=\S)|(?<=\S)\*\*"),
    re.compile(r"^[ \t]*(?:[-•]|\*(?=[ \t]+[^0-9\s])|[0-9]+[.)])[ \t]+", re.M),
    re.compile(r"^[ \t]*>(?=[ \t])", re.M),
    re.compile(r"\$+"),
)
# Marks that stand in pairs around a workflow or a name; around anything else they are left.
_PAIRS = (
    re.compile(r'(")([^"]*)(")'),
    re.compile(r"([“„])([^“„”]*)(”)"),
    re.compile(r"([«])([^«»]*)(»)"),
    re.compile(r"([「『])([^「」『』]*)([」』])"),
    re.compile(r"((?<!\w)['‘])([^'‘’]*)(['’](?!\w))"),
    re.compile(r"(\\boxed\{)([^{}]*)(\})"),
)
_OPENED = re.compile(r'[(（]\s*"|"\s*[)）]')
_ELEMENT = re.compile(r"</?([A-Za-z][\w-]*)\s*/?>")
_STOP = re.compile(r"[.;,。]")


@dataclass(frozen=True, slots=True)
class Region:
    """A text in which everything but the workflow is blank, and what was done to get there.

    Args:
        source: The text as it was given.
        shape: The same, what does not belong to the workflow blank, and instructions masked.
        notes: What was set aside; an error for what was cut off and may be more of the workflow.
    """

    source: str
    shape: str
    notes: tuple[Diagnostic, ...] = ()

    @property
    def text(self) -> str:
        """The text, blank where the shape is."""
        if MASK not in self.shape:
            return self.shape
        pairs = zip(self.source, self.shape, strict=True)
        return "".join(" " if shape == " " else char for char, shape in pairs)

    def keeps(self, tree: Node) -> bool:
        """Whether no instruction of a workflow was read with something in it set aside."""
        text = self.text
        for start, end in {each.span for each in operators_of(tree) if each.instruction}:
            quoted = slice(text.find('"', start, end), text.rfind('"', start, end))
            if text[quoted] != self.source[quoted]:
                return False
        return True


def _blank(text: str, pattern: re.Pattern[str]) -> str:
    return pattern.sub(lambda match: " " * len(match[0]), text)


def _without_pairs(text: str, pattern: re.Pattern[str], operators: Operators) -> str:
    """The text without the marks of every pair around something that names an operator."""

    def bare(match: re.Match[str]) -> str:
        opened, inside, closed = match.groups()
        named = _names_an_operator(inside, operators)
        return " " * len(opened) + inside + " " * len(closed) if named else match[0]

    return pattern.sub(bare, text)


def _without_elements(text: str, operators: Operators) -> str:
    """The text without the tags of other elements, `<answer>`; `<Review>` is none."""

    def bare(match: re.Match[str]) -> str:
        return match[0] if _names_an_operator(match[1], operators) else " " * len(match[0])

    return _ELEMENT.sub(bare, text)


def _without_stops(text: str) -> str:
    """The text with its trailing punctuation blank, and what blanks stand in that.

    Looked for from the end: a pattern that starts at each mark and hopes that the text ends behind
    it goes through a long run of them once for each. An ellipsis says that something is left out.
    """
    end = len(text)
    while end and (text[end - 1] in ".;,。" or text[end - 1].isspace()):
        end -= 1
    first = _STOP.search(text, end)
    if first is None or text.startswith("..", first.start()):
        return text
    return text[: first.start()] + " " * (len(text) - first.start())


def _narrow(
    region: Region, pattern: re.Pattern[str], code: str, message: str, operators: Operators
) -> Region:
    """The last match of a pattern that speaks of an operator, if there is one."""
    last = None
    for match in pattern.finditer(region.shape):
        if code == "N-TAG" or _names_an_operator(match[1], operators):
            last = match
    if last is None:
        return region
    inside = last[1]
    start = last.start(1) + len(inside) - len(inside.lstrip())
    end = max(start, last.start(1) + len(inside.rstrip()))
    note = Diagnostic(code, message, (start, end), region.source[start:end])
    return replace(
        region,
        shape=" " * start + region.shape[start:end] + " " * (len(region.shape) - end),
        notes=(*region.notes, note, *_cut_off(region.shape, last.span(), operators)),
    )


def _cut_off(shape: str, span: tuple[int, int], operators: Operators) -> list[Diagnostic]:
    """What stands right beside a tag, a fence or a label and may be more of its workflow."""
    start, end = span
    bare = _bare(shape, operators)
    before, behind = leads(bare[:start], operators), follows(bare[end:], operators)
    errors = [rest(before, shape)] if before else []
    return [*errors, rest(behind, shape, end)] if behind else errors


def rest(items: list[Item], text: str, offset: int = 0) -> Diagnostic:
    """The error that something looks like more of a workflow, its places behind an offset."""
    start, end = items[0].token.start + offset, items[-1].token.end + offset
    message = "This may be more of the workflow; link it by an arrow, or leave it out."
    return Diagnostic("E-REST", message, (start, end), text[start:end], ("->", "a full stop"))


def _names_an_operator(text: str, operators: Operators) -> bool:
    return any(operators.resolve(word) for word in re.findall(r"[A-Za-z][\w-]*", text))


def locate(text: str, operators: Operators) -> Region:
    """The text without thoughts, narrowed to its last tag, fence and label."""
    shape = mask_instructions(text, operators)
    unthought = _blank(shape, _THINK)
    notes = []
    if unthought != shape:
        spans = [match.span() for match in _THINK.finditer(shape)]
        notes.append(Diagnostic("N-THINK", "Thoughts were not read.", (spans[0][0], spans[-1][1])))
    region = Region(text, unthought, tuple(notes))
    for pattern, code, message in (
        (_TAG, "N-TAG", "Taken from the last <workflow> tag."),
        (_FENCE, "N-FENCE", "Taken from the last fenced block."),
        (_LABEL, "N-LABEL", "Taken from behind the last label."),
    ):
        region = _narrow(region, pattern, code, message, operators)
    return region


def _bare(shape: str, operators: Operators) -> str:
    """The same without quotes, bullets, numbers, tags and trailing punctuation."""
    shape = _without_elements(shape, operators)
    for pattern in _MARKUP:
        shape = _blank(shape, pattern)
    # Where an instruction is not well formed, nobody knows which quotes are a pair.
    for pattern in _PAIRS[1:] if _OPENED.search(shape) else _PAIRS:
        shape = _without_pairs(shape, pattern, operators)
    return _without_stops(shape)


def remove_marks(region: Region, operators: Operators) -> Region:
    """The same without quotes, bullets, numbers, tags and trailing punctuation."""
    shape = _bare(region.shape, operators)
    if shape == region.shape:
        return region
    pairs = zip(region.shape, shape, strict=True)
    places = [at for at, (old, new) in enumerate(pairs) if old != new]
    span = (places[0], places[-1] + 1)
    note = Diagnostic("N-MARKUP", "Marks around the workflow were set aside.", span)
    return replace(region, shape=shape, notes=(*region.notes, note))
