"""A workflow as a tree, and its canonical text.

Nodes are frozen data classes that compare and hash by what they mean; where in the text they stood
is carried along and not compared. A tree has one form for one meaning of the grammar: a sequence
never holds a sequence, a replicated list item stands there as often as it runs, parentheses leave
no trace of their own. `str(node)` is the canonical text, which parses back to the same tree, so
that it can serve as the name of a workflow wherever workflows are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Span = tuple[int, int]


class _Printed:
    """A part of a tree; as a text it is the canonical one."""

    __slots__ = ()

    def __str__(self) -> str:
        return printed(self)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Op(_Printed):
    """One operator, with an instruction of its own where there is one."""

    name: str
    instruction: str = ""
    span: Span = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Seq(_Printed):
    """`a -> b`: two steps or more, one after the other; none of them is a sequence."""

    steps: tuple[Node, ...]
    span: Span = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ListOf(_Printed):
    """`[a, b]`: branches that each start from a copy of the state."""

    branches: tuple[Node, ...]
    span: Span = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Repeat(_Printed):
    """`body * times`: run again until a check inside the body passes."""

    body: Node
    times: int
    span: Span = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Done(_Printed):
    """`done`: leave everything as it is."""


@dataclass(frozen=True, slots=True)
class Cond(_Printed):
    """`check ? fail : passed`: `fail` runs when the check finds the solution wrong."""

    check: Node
    fail: Node | Done
    passed: Node | Done
    span: Span = field(default=(0, 0), compare=False, repr=False)


Node = Op | Seq | ListOf | Repeat | Cond
DONE = Done()


def sequence(steps: Sequence[Node], span: Span = (0, 0)) -> Node:
    """One node for steps in a row: sequences among them are spliced in, a lone step is itself."""
    if len(steps) == 1:
        return steps[0]
    return Seq(tuple(part for step in steps for part in steps_of(step)), span)


def steps_of(node: Node) -> tuple[Node, ...]:
    """The steps of a sequence; any other node is one by itself."""
    return node.steps if type(node) is Seq else (node,)


def children(node: Node | Done) -> tuple[Node | Done, ...]:
    """The nodes directly below one, in reading order."""
    match node:
        case Seq():
            return node.steps
        case ListOf():
            return node.branches
        case Repeat():
            return (node.body,)
        case Cond():
            return (node.check, node.fail, node.passed)
        case _:
            return ()


def operators_of(node: Node | Done) -> Iterator[Op]:
    """Every operator of a tree, in reading order."""
    if isinstance(node, Op):
        yield node
    for child in children(node):
        yield from operators_of(child)


def size(node: Node | Done) -> tuple[int, int]:
    """The number of operators, and the depth to which lists, loops and conditions are nested."""
    kind = type(node)
    if kind is Op:
        return 1, 0
    operators = inner = 0
    for child in children(node):
        count, depth = size(child)
        operators += count
        if depth > inner:
            inner = depth
    return operators, inner if kind is Seq or kind is Done else inner + 1


def printed(node: Node | Done, instructions: bool = True) -> str:
    """The canonical text of a tree: `parse(printed(node)).workflow == node` if it is well typed.

    Without `instructions` it is that of the tree whose operators have none.
    """

    def inside(part: Node | Done, *grouped: type) -> str:
        text = printed(part, instructions)
        return f"({text})" if isinstance(part, grouped) else text

    match node:
        case Op():
            instruction = node.instruction if instructions else ""
            return f"{node.name}({quote(instruction)})" if instruction else node.name
        case Seq():
            return " -> ".join(printed(step, instructions) for step in node.steps)
        case ListOf():
            # Directly inside a list `X * n` would mean n branches, so a loop stands in parentheses.
            return f"[{', '.join(inside(branch, Repeat) for branch in node.branches)}]"
        case Repeat():
            return f"{inside(node.body, Seq, Cond, Repeat)} * {node.times}"
        case Cond():
            check, *sides = (inside(part, Seq, Cond) for part in children(node))
            return f"{check} ? {' : '.join(sides)}"
        case Done():
            return "done"


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}


def quote(instruction: str) -> str:
    """An instruction as it stands in a workflow, in double quotes."""
    return '"' + "".join(_ESCAPES.get(char, char) for char in instruction) + '"'
