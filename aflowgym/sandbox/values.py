"""Returned values on their way out of the child: JSON with a mark on each container.

The child writes it (`written`), the parent reads it (`outcome`) and trusts nothing of it: a program
may write there what it likes. The most it gains is another value of its own; it does not know what
is expected, and what cannot be read is `no_literal`. The parent does not even run Python's parser
over such a text: JSON has no warnings, no names and no operators.

An instance of a subclass (a `Counter`, a named tuple, an enumeration over `int`) is written as the
plain value that it holds, which is what `==` would have compared; a number of another kind
(`Fraction(4, 2)`, a NumPy integer) as the `int` or `float` that it equals, if there is one. An
object with an `__eq__` of its own is no plain value, whatever it says.
"""

from __future__ import annotations

import json
import numbers
from collections.abc import Iterable
from typing import Any, Final

DEEPEST: Final = 50
MOST_ITEMS: Final = 100_000
#: How much the parent reads of what a child wrote, in bytes.
MOST_BYTES: Final = 1 << 20
#: As long as the checkers read, see `aflowgym.answers.literals`.
MAX_LITERAL: Final = 200_000
TOO_LARGE: Final = "too_large: what it returned is too long"
#: A set of values with one hash takes the square of its size to build.
_MOST_COLLISIONS: Final = 500
_CONTAINERS: Final[dict[str, Any]] = {kind.__name__: kind for kind in (list, tuple, set, frozenset)}


class NoLiteral(ValueError):
    """A value that is no plain data, or too deep; says which."""

    code = "no_literal"


class TooLarge(NoLiteral):
    """A value of which there is too much."""

    code = "too_large"


class Writer:
    """Turns a value into what JSON can hold, once."""

    def __init__(self) -> None:
        self._items = 0

    def written(self, value: Any, depth: int = 0) -> Any:
        """The marked form of a value.

        Raises:
            NoLiteral: It is no plain data, or there is too much of it.
        """
        self._items += 1
        if depth > DEEPEST:
            raise NoLiteral("what it returned is nested too deeply")
        if self._items > MOST_ITEMS:
            raise TooLarge("what it returned is too large")
        if value is None or value is True or value is False:
            return value
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, bytes):
            return ["bytes", bytes.hex(value)]
        for name, kind in _CONTAINERS.items():
            if isinstance(value, kind):
                return [name, *self._all(kind.__iter__(value), depth)]
        if isinstance(value, dict):
            keys, values = dict.keys(value), dict.values(value)
            return ["dict", [*self._all(keys, depth)], [*self._all(values, depth)]]
        return _number(value)

    def _all(self, items: Iterable[Any], depth: int) -> Iterable[Any]:
        return (self.written(item, depth + 1) for item in items)


def _number(value: Any) -> Any:
    """A number as `int`, `float`, or a mark; raises NoLiteral for anything else."""
    if isinstance(value, int):
        return int.__index__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, complex):
        return ["complex", complex.__complex__(value).real, complex.__complex__(value).imag]
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) or type(value).__name__ == "Decimal":
        near = float(value)
        if near == value:
            return int(near) if near.is_integer() else near
    raise NoLiteral(f"it is of type {type(value).__name__}, no plain value")


def outcome(content: bytes) -> tuple[str, str]:
    """The text of a literal and the text of an error that a child wrote; one is empty.

    Never raises, whatever it is.
    """
    if len(content) > MOST_BYTES:
        return "", TOO_LARGE
    try:
        form = json.loads(content)
        if isinstance(form, dict) and isinstance(error := form.get("error"), str):
            return "", error or "error"
        if isinstance(form, dict) and form.keys() == {"value"}:
            text = repr(_read(form["value"], 0))
            return (text, "") if len(text) <= MAX_LITERAL else ("", TOO_LARGE)
    except NoLiteral as problem:
        return "", f"{problem.code}: {problem}"
    except (ValueError, TypeError, RecursionError, MemoryError):
        pass
    return "", "no_literal: what it returned cannot be read"


def _read(form: Any, depth: int) -> Any:
    """The plain value of a marked form; raises ValueError or TypeError for anything else."""
    if not isinstance(form, list):
        if isinstance(form, dict):
            raise NoLiteral("it has an unknown form")
        return form
    if depth > DEEPEST or not form:
        raise NoLiteral("what it returned is nested too deeply")
    mark, *rest = form
    match mark, rest:
        case "bytes", [str(text)]:
            return bytes.fromhex(text)
        case "complex", [int() | float() as real, int() | float() as imaginary]:
            return complex(real, imaginary)
        case "dict", [list(keys), list(values)]:
            read = _sound([_read(key, depth + 1) for key in keys])
            return dict(zip(read, (_read(value, depth + 1) for value in values), strict=True))
    if mark not in _CONTAINERS:
        raise NoLiteral("it has an unknown form")
    items = [_read(item, depth + 1) for item in rest]
    return _CONTAINERS[mark](_sound(items) if mark in ("set", "frozenset") else items)


def _sound(keys: list[Any]) -> list[Any]:
    """The same keys, unless so many share a hash that a set of them would take for ever."""
    if len(keys) - len({hash(key) for key in keys}) > _MOST_COLLISIONS:
        raise NoLiteral("its keys share their hashes")
    return keys


def dump(value: Any) -> bytes:
    """The bytes that a child writes of a value that it returned; raises NoLiteral."""
    form = {"value": Writer().written(value)}
    try:
        content = json.dumps(form, separators=(",", ":")).encode()
    except ValueError:  # all that Python refuses to write of such a form
        raise NoLiteral("it has a number of too many digits") from None
    if len(content) > MOST_BYTES:
        raise TooLarge("what it returned is too large")
    return content


def dump_error(error: str) -> bytes:
    """The bytes that a child writes of an error."""
    return json.dumps({"error": error}).encode()
