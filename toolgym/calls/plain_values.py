"""Anything -> JSON values, without running a stranger's code.

An action can be any object at all: cyclic, endlessly deep, with properties that raise. What goes
on to the binder is a copy made of exact `dict`, `list`, `str`, `int`, `float`, `bool` and None,
of bounded size, read through the base types' own methods and the instance dictionary only, so
that no overridden method of the object can run, and none can raise.

Half a surrogate pair (`"\\ud83d"` alone) is a text that neither UTF-8 nor SQLite can store:
replaced.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import uuid
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from toolgym.calls.json_reading import members_of

MAX_DEPTH = 40
MAX_VALUES = 50_000
MAX_INTEGER_BITS = 1024  # what a float can hold; Python refuses to print integers of 4,300 digits
_WITH_JSON_FORM = (
    datetime.date,
    datetime.time,
    datetime.timedelta,
    decimal.Decimal,
    uuid.UUID,
    enum.Enum,
    BaseModel,
)


class NotPlain(ValueError):
    """The value has no JSON form, is too deep, or too large; the message is half a sentence."""


class PlainCopy:
    """One copy of one value; `replaced` tells whether a lone surrogate was replaced in it."""

    def __init__(self) -> None:
        self.replaced = False
        self._left = MAX_VALUES

    def of(self, value: Any, depth: int = 0) -> Any:
        """The plain copy.

        Raises:
            NotPlain: The value has no such copy.
        """
        kind = type(value)
        if kind is str:
            return value if value.isascii() else self._text(value)
        if value is None or kind is bool:
            return value
        self._left -= 1
        if depth > MAX_DEPTH:
            raise NotPlain("it is nested too deeply")
        if self._left < 0:
            raise NotPlain("it holds too many values")
        if kind is int:
            return _integer(value)
        if kind is float:
            return value
        if kind is dict:
            return self._mapping(value, depth)
        if kind is list or kind is tuple:
            return self._sequence(value, depth)
        return self._other(value, kind, depth)

    def _text(self, value: str) -> str:
        try:
            value.encode()
        except UnicodeEncodeError:
            self.replaced = True
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value

    def _mapping(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        self._left -= dict.__len__(value)  # texts and nulls count here only
        copied: dict[str, Any] = {}
        for key, entry in dict.items(value):
            name = self.of(key, depth + 1)
            if isinstance(name, (dict, list)):
                raise NotPlain("it has a key that is not text")
            copied[name if isinstance(name, str) else str(name)] = self.of(entry, depth + 1)
        return copied

    def _sequence(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        self._left -= len(value)  # texts and nulls count here only
        if self._left < 0:
            raise NotPlain("it holds too many values")
        return [self.of(entry, depth + 1) for entry in value]

    def _other(self, value: Any, kind: type, depth: int) -> Any:
        """Subclasses of JSON types, numpy's values, and types with a well-known JSON form."""
        if issubclass(kind, _WITH_JSON_FORM):
            try:
                return self.of(to_jsonable_python(value), depth + 1)
            except (PydanticSerializationError, ValueError, TypeError) as error:
                raise NotPlain(f"a value of type {kind.__name__} has no JSON form") from error
        if kind.__module__ == "numpy" and hasattr(kind, "tolist"):
            return self.of(value.tolist(), depth + 1)
        if issubclass(kind, str):
            return self._text(str.__str__(value))
        if issubclass(kind, int):
            return _integer(int.__int__(value))
        if issubclass(kind, float):
            return float.__float__(value)
        if issubclass(kind, dict):
            return self._mapping(value, depth)
        if issubclass(kind, (list, tuple)):
            copied = list.__iter__(value) if issubclass(kind, list) else tuple.__iter__(value)
            return self._sequence(list(copied), depth)
        raise NotPlain(f"it holds a value of type {kind.__name__}")


def plain_json(text: str, *, strict: bool = True) -> Any:
    """The plain value of JSON text that was found inside a value.

    Args:
        strict: Refuse raw control characters in its strings.

    Raises:
        ValueError: It is no JSON, has one key with two values, or has no plain value.
    """
    try:
        return PlainCopy().of(json.loads(text, strict=strict, object_pairs_hook=members_of))
    except RecursionError:
        raise NotPlain("it is nested too deeply") from None


def attributes(value: Any) -> dict[str, Any] | None:
    """The instance dictionary of an object, if it has one; runs no property."""
    try:
        values = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return values if type(values) is dict else None


def _integer(value: int) -> int:
    if value.bit_length() > MAX_INTEGER_BITS:
        raise NotPlain("it holds a number that is too large")
    return value
