"""Parse literals and programs in Python without running code.

The arguments, expected values and returned values of calls are source code that is parsed only by
`ast`: numbers, strings, containers of them, and a few names that `repr` writes (`inf`, `nan`,
`set()`). This source is untrusted: it can be long, deeply nested, or contain values that were
chosen to have the same hash.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

MAX_LITERAL: Final = 200_000
_NAMES: Final = {
    "inf": math.inf,
    "nan": math.nan,
    "infj": complex(0.0, math.inf),
    "nanj": complex(0.0, math.nan),
}
_DIGITS: Final = re.compile(r"[+-]?\d{1,100}(?:\.\d{0,100})?(?:[eE][+-]?\d{1,3})?")
#: Building a set of values that share a hash takes quadratic time. Ordinary values rarely do.
_MOST_COLLISIONS: Final = 500
_PROGRAM: Final = "<program of a model>"
_QUIET: Final = ("ignore", None, Warning, re.compile(_PROGRAM), 0)


def parse_program(source: str) -> ast.Module:
    """Parse an untrusted program, suppressing Python's warnings about it.

    Raises:
        SyntaxError: If the source is not valid Python. Parsing can also raise ValueError,
            RecursionError or MemoryError.
    """
    _silence_warnings()
    return ast.parse(source, _PROGRAM)


def _silence_warnings() -> None:
    """Ignore warnings about parsed text, such as that of the unknown escape `"\\s"`.

    The filter applies to one file name and is never removed, because `warnings.catch_warnings` is
    not thread-safe. It comes first, because another filter could turn the warning into an error.
    """
    if _QUIET not in warnings.filters[:1]:
        warnings.filterwarnings("ignore", module=_PROGRAM)


def read_literal(text: str) -> Any:
    """Return the value of a literal, which can contain negative numbers, `inf`, `nan` and `set()`.

    Raises:
        ValueError: If the string is not a literal, is too long, or is nested too deeply.
    """
    if len(text) > MAX_LITERAL:
        raise ValueError("the literal is too long")
    try:
        _silence_warnings()
        return literal_value(ast.parse(text.strip(), _PROGRAM, mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError, TypeError) as problem:
        raise ValueError(f"no literal: {text[:80]!r}") from problem


def literal_value(node: ast.expr) -> Any:
    """Return the value that a literal's syntax tree represents.

    Raise ValueError for anything else.
    """
    match node:
        case ast.Constant(value=value) if value is not Ellipsis:
            return value
        case ast.List(elts=items):
            return [literal_value(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(literal_value(item) for item in items)
        case ast.Set(elts=items):
            return set(hashable(map(literal_value, items)))
        case ast.Dict(keys=keys, values=values) if None not in keys:
            read = hashable(literal_value(key) for key in keys)  # type: ignore[arg-type]
            return dict(zip(read, map(literal_value, values), strict=True))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            value = _number(operand)
            if isinstance(sign, ast.UAdd):
                return value
            if isinstance(value, complex) and not value.real:
                return complex(0.0, -value.imag)  # Python writes this as `-1j`
            return -value
        case ast.BinOp(op=ast.Add() | ast.Sub()):  # Python reads back its own text, including signs
            return complex(ast.unparse(node).replace(" ", ""))
    return _named_value(node)


def _named_value(node: ast.expr) -> Any:
    """Return the value of a name or call in the output of `repr`, such as `inf` or `set()`."""
    match node:
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            match name, [literal_value(argument) for argument in args]:
                case "float", [str(text)] if text.lstrip("+-") in ("inf", "nan"):
                    return float(text)
                case "Fraction", [int(above), int(below)] if below:
                    return Fraction(above, below)
                case "Decimal", [str(text)] if _DIGITS.fullmatch(text):
                    return Decimal(text)
                case "set" | "frozenset", [] | [list() | tuple() | set()] as items:
                    members = hashable(*items) if items else ()
                    return set(members) if name == "set" else frozenset(members)
    raise ValueError("no literal")


def hashable(values: Iterable[Any]) -> list[Any]:
    """Return values as a list that can be converted to a set or to dict keys in linear time.

    Raises:
        ValueError: If too many of the values have the same hash.
        TypeError: If one has no hash.
    """
    listed, first = list(values), dict[int, Any]()
    # Equal values are harmless. Only different values with the same hash are compared repeatedly.
    shared = sum(first.setdefault(hash(value), value) not in (value,) for value in listed)
    if shared > _MOST_COLLISIONS:
        raise ValueError("too many values share a hash")
    return listed


def _number(node: ast.expr) -> Any:
    value = literal_value(node)
    if isinstance(value, int | float | complex) and not isinstance(value, bool):
        return value
    raise ValueError("no number")
