"""What is worked out, or imported, when it is first used.

`lazy` makes an attribute of an object, without a lock. The `cached_property` of Python 3.11 holds
one of the whole class during the work: threads wait for each other over different objects, and the
child of a fork waits for ever for a thread that it does not have. Here two threads may do the same
work at once; all get what was ready first. `names_from` does it for names of a module.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801  # a decorator, like `property`
    """Turns a method without arguments into an attribute that is worked out once.

    It is kept in the object's `__dict__`, also of a frozen dataclass, and from there it is read.

    >>> class Square:
    ...     @lazy
    ...     def area(self) -> int:
    ...         print("working")
    ...         return 9
    >>> square = Square()
    >>> square.area + square.area
    working
    18
    """

    def __init__(self, work: Callable[[Any], T]) -> None:
        self._work = work
        self._name = work.__name__
        self.__doc__ = work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> lazy[T] | T:
        if instance is None:
            return self
        found: T = instance.__dict__.setdefault(self._name, self._work(instance))
        return found


def names_from(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module some of whose names are imported when they are first used.

    Args:
        module: Its dotted name.
        homes: Each such name, and the module that has it.
    """

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    return attribute
