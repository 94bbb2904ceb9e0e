"""Encoding of the values that a child process returns, as JSON with a marker on each container.

The child writes a value (`dump`), and the parent reads it (`outcome`) without trusting the child. A
program can write arbitrary bytes, but the bytes can affect only its own result. The program does
not know the expected value, and an unreadable value results in the error `no_literal`. The parent
calls no methods that the program defined, and builds numbers only from digits that it has checked.

An instance of a subclass of a plain type (a `Counter`, a named tuple, an `IntEnum`) is encoded as
the plain value that it contains, because `==` would also compare that value. A number of another
type (`Fraction`, `Decimal`, or a number of NumPy or SymPy) is encoded as the `int` or `float` to
which it is equal, or otherwise as a `Fraction` or `Decimal`. Other objects are not plain values,
even if they define `__eq__`.
"""

from __future__ import annotations

import contextlib
import json
import numbers
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

DEEPEST: Final = 50
MOST_ITEMS: Final = 100_000
#: Maximum number of bytes that the parent reads from a child.
MOST_BYTES: Final = 1 << 20
#: The maximum length that the checkers read; see `aflowgym.answers.literals`.
MAX_LITERAL: Final = 200_000
TOO_LARGE: Final = "too_large: what it returned is too long"
#: Building a set of values that share a hash takes quadratic time.
_MOST_COLLISIONS: Final = 500
_CONTAINERS: Final[dict[str, Any]] = {kind.__name__: kind for kind in (list, tuple, set, frozenset)}


_DECIMAL: Final = re.compile(r"-?\d+(\.\d+)?", re.ASCII)


class NoLiteral(ValueError):
    """Raised for a value that is not plain data, is nested too deeply, or is too large.

    The message begins with the error code.
    """


class Writer:
    """A converter of one value to a form that JSON can represent."""

    def __init__(self) -> None:
        self._items = 0

    def written(self, value: Any, depth: int = 0) -> Any:
        """Return the encoded form of a value.

        Raises:
            NoLiteral: If the value is not plain data, or too large.
        """
        self._items += 1
        if depth > DEEPEST:
            raise NoLiteral("no_literal: what it returned is nested too deeply")
        if self._items > MOST_ITEMS:
            raise NoLiteral("too_large: what it returned is too large")
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
    """Return the form of a number. Raise NoLiteral for anything else."""
    if isinstance(value, int):
        return int.__index__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, complex):
        return ["complex", complex.__complex__(value).real, complex.__complex__(value).imag]
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real | Decimal):
        with contextlib.suppress(OverflowError):
            near = float(value)
            if near == value:
                return int(near) if near.is_integer() else near
        if isinstance(value, numbers.Rational):
            return ["Fraction", int(value.numerator), int(value.denominator)]
        if isinstance(value, Decimal) and value.is_finite():
            return ["Decimal", Decimal.__format__(value, "f")]
    raise NoLiteral(f"no_literal: it is of type {type(value).__name__}, no plain value")


def outcome(content: bytes) -> tuple[str, str]:
    """Decode the outcome from the bytes that a child wrote: the source of a literal, or an error.

    This function raises no exception, whatever the bytes are.
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
        return "", str(problem)
    except (ValueError, TypeError, RecursionError, MemoryError):
        pass
    return "", "no_literal: what it returned cannot be read"


def _read(form: Any, depth: int) -> Any:
    """Return the value of an encoded form. Raise ValueError or TypeError for anything else."""
    if not isinstance(form, list):
        if isinstance(form, dict):
            raise NoLiteral("no_literal: it has an unknown form")
        return form
    if depth > DEEPEST or not form:
        raise NoLiteral("no_literal: what it returned is nested too deeply")
    mark, *rest = form
    match mark, rest:
        case "bytes", [str(text)]:
            return bytes.fromhex(text)
        case "complex", [int() | float() as real, int() | float() as imaginary]:
            return complex(real, imaginary)
        case "Fraction", [int(above), int(below)] if below > 0:
            return Fraction(above, below)
        case "Decimal", [str(text)] if _DECIMAL.fullmatch(text):
            return Decimal(text)
        case "dict", [list(keys), list(values)]:
            read = _sound([_read(key, depth + 1) for key in keys])
            return dict(zip(read, (_read(value, depth + 1) for value in values), strict=True))
    if mark not in _CONTAINERS:
        raise NoLiteral("no_literal: it has an unknown form")
    items = [_read(item, depth + 1) for item in rest]
    return _CONTAINERS[mark](_sound(items) if mark in ("set", "frozenset") else items)


def _sound(keys: list[Any]) -> list[Any]:
    """Return the keys. Raise NoLiteral if too many of them share a hash."""
    if len(keys) - len({hash(key) for key in keys}) > _MOST_COLLISIONS:
        raise NoLiteral("no_literal: its keys share their hashes")
    return keys


def dump(value: Any) -> bytes:
    """Encode a value as bytes for the parent process.

    Raise NoLiteral if the value cannot be encoded.
    """
    form = {"value": Writer().written(value)}
    try:
        content = json.dumps(form, separators=(",", ":")).encode()
    except ValueError:  # the only values of such a form that Python cannot write
        raise NoLiteral("no_literal: it has a number of too many digits") from None
    if len(content) > MOST_BYTES:
        raise NoLiteral("too_large: what it returned is too large")
    return content


def dump_error(error: str) -> bytes:
    """Encode an error as bytes for the parent process."""
    return json.dumps({"error": error}).encode()
