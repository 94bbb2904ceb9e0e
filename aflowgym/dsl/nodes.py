"""A workflow as a tree, and its canonical text.

Nodes are frozen data classes. The positions of nodes in the text are ignored in comparisons and
hashes. Equivalent spellings of a workflow have the same tree: a sequence does not contain
sequences, a repeated list item such as `a * 3` is expanded, and parentheses are not stored.
`str(node)` is the canonical text, which parses to the same tree and can be used as the key of a
workflow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Span = tuple[int, int]


class _Printed:
    """A node whose `str` is its canonical text."""

    __slots__ = ()

    def __str__(self) -> str:
        return printed(self)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Op(_Printed):
    """An operator with an optional instruction."""

    name: str
    instruction: str = ""
    span: Span = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Seq(_Printed):
    """A sequence `a -> b` of two or more steps, none of which is a sequence."""

    steps: tuple[Node, ...]
    span: Span = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ListOf(_Printed):
    """A list `[a, b]` of branches, each of which starts from a copy of the state."""

    branches: tuple[Node, ...]
    span: Span = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Repeat(_Printed):
    """A loop `body * times`, which ends early when a check in the body passes."""

    body: Node
    times: int
    span: Span = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Done(_Printed):
    """The step `done`, which does nothing."""


@dataclass(frozen=True, slots=True)
class Cond(_Printed):
    """A condition `check ? fail : passed`. `fail` runs if the check rejects the solution."""

    check: Node
    fail: Node | Done
    passed: Node | Done
    span: Span = field(default=(0, 0), compare=False, repr=False)


Node = Op | Seq | ListOf | Repeat | Cond
DONE = Done()


def sequence(steps: Sequence[Node], span: Span = (0, 0)) -> Node:
    """Return a sequence of steps as one node. Nested sequences are flattened.

    A single step is returned unchanged.
    """
    if len(steps) == 1:
        return steps[0]
    return Seq(tuple(part for step in steps for part in steps_of(step)), span)


def steps_of(node: Node) -> tuple[Node, ...]:
    """Return the steps of a sequence, or a list with the node itself if it is not a sequence."""
    return node.steps if type(node) is Seq else (node,)


def children(node: Node | Done) -> tuple[Node | Done, ...]:
    """Return the children of a node, in reading order."""
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
    """Yield every operator of a tree, in reading order."""
    if isinstance(node, Op):
        yield node
    for child in children(node):
        yield from operators_of(child)


def size(node: Node | Done) -> tuple[int, int]:
    """Return the number of operators, and the nesting depth of lists, loops and conditions."""
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
    """Return the canonical text of a tree.

    For a well-typed tree, `parse(printed(node)).workflow == node`.

    Args:
        node: The tree.
        instructions: Whether to include the instructions of operators.
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
            # Directly inside a list `X * n` means n branches, so a loop needs parentheses.
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
    """Return an instruction in double quotes, with escapes."""
    return '"' + "".join(_ESCAPES.get(char, char) for char in instruction) + '"'
