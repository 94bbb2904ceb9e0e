"""A workflow as a picture: SVG that reads from left to right, as the workflow runs.

Operators are boxes, those that check a solution tinted. The branches of a list run side by side; a
loop is an arc back to its beginning, with its count; a condition is a diamond with one arm for what
runs when the check fails and one for when it passes. The dot is the task, the ring what is left.

Every part of a picture is a `Part`: how much room it takes around the line that it is entered and
left by, and a function that draws it from where it is entered. Colours are classes of the page's
style sheet; all text passes through `element`, which escapes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from aflowgym.dsl import Limits, parse
from aflowgym.dsl.nodes import Cond, Done, ListOf, Node, Op, Repeat, Seq, printed
from aflowgym.operators.catalogue import OPERATORS
from toolgym.report.markup import element

_CHAR: Final = 7.1  # widest mean width of a letter at 12 units, over the fonts of the style sheet
_PAD, _BOX, _TOLD = 9.0, 26.0, 40.0
_GAP, _BEND, _ROW, _MARGIN = 22.0, 24.0, 10.0, 5.0
_DIAMOND, _LOOP, _ARC = 9.0, 22.0, 18.0
_LONGEST: Final = 24
_LEAST_SCALE: Final = 0.6
# What operators called one by one make together may be longer than what may be submitted.
_LIMITS: Final = Limits(calls=10_000, operators=100)


@dataclass(frozen=True)
class Part:
    """A piece of a picture.

    Attributes:
        width: From where it is entered to where it is left, on one level.
        above: Room over that level.
        below: Room under it.
        draw: Its markup, from the place at which it is entered.
    """

    width: float
    above: float
    below: float
    draw: Callable[[float, float], Iterator[str]]

    @property
    def height(self) -> float:
        """Room from top to bottom."""
        return self.above + self.below


def workflow_picture(workflow: Node | str) -> str:
    """A workflow as SVG, in an element that scrolls where a page is too narrow for it.

    Empty for a text that is no workflow.

    >>> "ScEnsemble" in workflow_picture("[Custom, Programmer] -> ScEnsemble")
    True
    >>> workflow_picture("Let me think.")
    ''
    """
    tree = parse(workflow, limits=_LIMITS).workflow if isinstance(workflow, str) else workflow
    if tree is None:
        return ""
    part, text = _row([_dot("start"), _part(tree), _dot("end")]), printed(tree)
    width, height = part.width + 2 * _MARGIN, part.height + 2 * _MARGIN
    drawn = part.draw(_MARGIN, _MARGIN + part.above)
    svg = element(
        "svg",
        element("title", text=text),
        *drawn,
        class_="graph",
        viewBox=f"0 0 {width:.1f} {height:.1f}",
        width=width,
        style_=f"min-width: {width * _LEAST_SCALE:.0f}px",
        role="img",
        aria_label=f"Workflow: {text}",
    )
    return element("div", svg, class_="scroll")


def _part(node: Node | Done) -> Part:
    match node:
        case Op():
            return _box(node)
        case Seq():
            return _row([_part(step) for step in node.steps])
        case ListOf():
            return _fork([_part(branch) for branch in node.branches], ["wire"] * len(node.branches))
        case Repeat():
            return _loop(_part(node.body), node.times)
        case Cond():
            arms = [_arm("fails", node.fail), _arm("passes", node.passed)]
            return _row([_part(node.check), _diamond(_fork(arms, ["fails", "passes"]))])
        case Done():
            return _wire(_GAP)


def _box(op: Op) -> Part:
    """An operator; an instruction stands in it on a line of its own."""
    instruction = op.instruction[:_LONGEST] + "…" * (len(op.instruction) > _LONGEST)
    width = _CHAR * max(len(op.name), len(instruction)) + 2 * _PAD
    half = (_TOLD if instruction else _BOX) / 2
    operator = OPERATORS.get(op.name)
    name = "box check" if operator is not None and operator.is_check else "box"

    def draw(x: float, y: float) -> Iterator[str]:
        title = element("title", text=str(op))
        yield _head(x, y)
        yield element(
            "rect", title, class_=name, x=x, y=y - half, width=width, height=2 * half, rx=6
        )
        middle, line = x + width / 2, y - 3 if instruction else y + 4
        yield element("text", class_="mid", x=middle, y=line, text=op.name)
        if instruction:
            yield element("text", class_="mid told", x=middle, y=y + 13, text=instruction)

    return Part(width, half, half, draw)


def _row(parts: Sequence[Part]) -> Part:
    """Parts in a row, with a wire between each and the next."""
    width = sum(part.width for part in parts) + _GAP * (len(parts) - 1)

    def draw(x: float, y: float) -> Iterator[str]:
        for number, part in enumerate(parts):
            if number:
                yield _line(x, x + _GAP, y)
                x += _GAP
            yield from part.draw(x, y)
            x += part.width

    above, below = max(part.above for part in parts), max(part.below for part in parts)
    return Part(width, above, below, draw)


def _fork(branches: Sequence[Part], names: Sequence[str]) -> Part:
    """Parts side by side, entered together and left together; a wire into each, of some class."""
    widest = max(branch.width for branch in branches)
    height = sum(branch.height for branch in branches) + _ROW * (len(branches) - 1)

    def draw(x: float, y: float) -> Iterator[str]:
        top, end = y - height / 2, x + 2 * _BEND + widest
        for branch, name in zip(branches, names, strict=True):
            level = top + branch.above
            yield _curve(x, y, x + _BEND, level, name)
            yield from branch.draw(x + _BEND, level)
            yield _line(x + _BEND + branch.width, end - _BEND, level)
            yield _curve(end - _BEND, level, end, y, "wire")
            top += branch.height + _ROW

    return Part(widest + 2 * _BEND, height / 2, height / 2, draw)


def _loop(body: Part, times: int) -> Part:
    """A part with an arc back to where it begins, and on the arc how often it runs."""
    width = body.width + 2 * _LOOP
    above = body.above + _ARC + 8

    def draw(x: float, y: float) -> Iterator[str]:
        end, top, left = x + width, y - body.above - _ARC + 6, x + _LOOP / 4
        right = end - _LOOP / 4
        yield _line(x, x + _LOOP, y)
        yield from body.draw(x + _LOOP, y)
        yield _line(end - _LOOP, end, y)
        arc = f"M{right:.1f} {y:.1f} V{top + 8:.1f} q0 -8 -8 -8 H{left + 8:.1f} q-8 0 -8 8"
        yield element("path", class_="wire", d=f"{arc} V{y:.1f}")
        yield element("path", class_="head", d=f"M{left:.1f} {y - 1:.1f} l-3.5 -7 h7 Z")
        middle = (left + right) / 2
        yield element("text", class_="mid count", x=middle, y=top + 4, text=f"×{times}")

    return Part(width, above, body.below, draw)


def _diamond(arms: Part) -> Part:
    """The place where a check decides between two arms."""
    size = _DIAMOND

    def draw(x: float, y: float) -> Iterator[str]:
        yield _head(x, y)
        shape = f"M{x:.1f} {y:.1f} l{size} -{size} l{size} {size} l-{size} {size} Z"
        yield element("path", class_="box check", d=shape)
        yield from arms.draw(x + 2 * size, y)

    return Part(2 * size + arms.width, max(arms.above, size), max(arms.below, size), draw)


def _arm(name: str, node: Node | Done) -> Part:
    """What runs on one side of a condition, after a piece of wire that says which side it is."""
    width, body = _CHAR * len(name) + 8, _part(node)

    def draw(x: float, y: float) -> Iterator[str]:
        yield element("path", class_=name, d=f"M{x:.1f} {y:.1f} h{width:.1f}")
        place = x + width / 2 - 2
        yield element("text", class_=f"mid side {name}", x=place, y=y - 5, text=name)
        yield from body.draw(x + width, y)

    return Part(width + body.width, max(body.above, 16.0), max(body.below, 4.0), draw)


def _wire(width: float) -> Part:
    def draw(x: float, y: float) -> Iterator[str]:
        yield _line(x, x + width, y)

    return Part(width, 4.0, 4.0, draw)


def _dot(name: str) -> Part:
    def draw(x: float, y: float) -> Iterator[str]:
        yield element("circle", class_=name, cx=x + 4, cy=y, r=4)

    return Part(8.0, 4.0, 4.0, draw)


def _line(start: float, end: float, y: float) -> str:
    return (
        element("path", class_="wire", d=f"M{start:.1f} {y:.1f} H{end:.1f}") if end > start else ""
    )


def _curve(x: float, y: float, to_x: float, to_y: float, name: str) -> str:
    middle = (x + to_x) / 2
    path = f"M{x:.1f} {y:.1f} C{middle:.1f} {y:.1f} {middle:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
    return element("path", class_=name, d=path)


def _head(x: float, y: float) -> str:
    """The head of an arrow that ends here."""
    return element("path", class_="head", d=f"M{x:.1f} {y:.1f} l-7 -3.5 v7 Z")
