"""Whether a returned value is what an assertion asks for, as Python would decide it of plain data.

`assert f(x) == 3` is one of several forms: identity with `True` or `None`, a distance below a
bound, or only that the value counts as true. Each has a name here, a way to be read from the tree
of the assertion (`read_relation`) and a meaning (`holds`). What would raise an error in the
assertion (the distance of a text and a number) is an assertion that fails.

In each form the literal itself passes. So a form that only rules something out (`!=`, `<`, `in`) is
none of them: what a test expects is shown to models, and stands for a right answer elsewhere.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

Form = Literal["==", "is", "abs <", "abs <=", "isclose", "true", "false"]
_DISTANCES: Final[dict[type[ast.cmpop], Form]] = {ast.Lt: "abs <", ast.LtE: "abs <="}
#: What `math.isclose` takes if it is not told.
_RELATIVE: Final = 1e-9


class Relation(NamedTuple):
    """The form of an assertion.

    Attributes:
        form: What the value has to be to the literal.
        call: The side with the call.
        literal: The other side; True or False where there is none.
        tolerance: How far from each other numbers may be.
        relative: The same as a fraction of the larger one.
    """

    form: Form
    call: ast.expr
    literal: ast.expr
    tolerance: float = 0.0
    relative: float = 0.0


def read_relation(said: ast.expr, is_call: Callable[[ast.expr], bool]) -> Relation:
    """What an assertion says of a call.

    Args:
        said: What follows `assert`.
        is_call: Tells a call of the function under test.

    Raises:
        ValueError: It is of another form.
    """
    match said:
        case ast.Compare(
            left=ast.Call(
                func=ast.Name(id="abs"), args=[ast.BinOp(left, ast.Sub(), right)], keywords=[]
            ),
            ops=[ast.Lt() | ast.LtE() as sign],
            comparators=[bound],
        ):
            return Relation(_DISTANCES[type(sign)], *_sides(left, right, is_call), _bound(bound))
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return Relation("==", *_sides(left, right, is_call))
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[right]):
            sides = _sides(left, right, is_call)
            if isinstance(sides[1], ast.Constant):  # any other literal is an object of its own
                return Relation("is", *sides)
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="math"), attr="isclose") | ast.Name(id="isclose"),
            args=[left, right],
            keywords=named,
        ):
            return _close(*_sides(left, right, is_call), named)
        case ast.UnaryOp(op=ast.Not(), operand=call) if is_call(call):
            return Relation("false", call, ast.Constant(value=False))
        case call if is_call(call):
            return Relation("true", call, ast.Constant(value=True))
    raise ValueError("an assertion of another form")


def _sides(
    left: ast.expr, right: ast.expr, is_call: Callable[[ast.expr], bool]
) -> tuple[ast.expr, ast.expr]:
    """The side with the call, and the other."""
    if not is_call(left):
        left, right = right, left
    if not is_call(left):
        raise ValueError("no side is a call of the function")
    return left, right


def _close(call: ast.expr, literal: ast.expr, named: list[ast.keyword]) -> Relation:
    bounds = {each.arg: _bound(each.value) for each in named}
    if not bounds.keys() <= {"rel_tol", "abs_tol"}:
        raise ValueError("isclose with other arguments")
    absolute, relative = bounds.get("abs_tol", 0.0), bounds.get("rel_tol", _RELATIVE)
    return Relation("isclose", call, literal, absolute, relative)


def _bound(node: ast.expr) -> float:
    """A bound that is written as a number; raises ValueError for anything else."""
    match node:
        case ast.Constant(value=int() | float() as bound):
            return float(bound)
    raise ValueError("the bound is no number")


def holds(form: Form, value: Any, expected: Any, tolerance: float, relative: float) -> bool:
    """Whether a value is to the expected one as a form of assertions says; both are plain data.

    Raises nothing, however the two differ.
    """
    try:
        match form:
            case "is":  # `1` is not `True`, though it equals it
                return type(value) is type(expected) and bool(value == expected)
            case "abs <":
                return bool(abs(value - expected) < tolerance)
            case "abs <=":
                return bool(abs(value - expected) <= tolerance)
            case "isclose":
                return math.isclose(value, expected, rel_tol=relative, abs_tol=tolerance)
            case "true" | "false":
                return bool(value) is (form == "true")
        return bool(value == expected)
    except (TypeError, ValueError, OverflowError):  # as the assertion would have raised
        return False
