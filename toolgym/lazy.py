"""Attributes that are computed on first use, and names that are imported on first use.

`lazy` is `functools.cached_property` without its lock. In Python 3.11, all objects of a class share
the lock of a `cached_property`. Therefore, threads wait for each other even if they use different
objects, and a forked child may wait forever for a thread of its parent. Without the lock, two
threads may compute the same value at the same time, and the first result is kept.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    lazy = cached_property
else:

    class lazy:  # noqa: N801  # a decorator, like `property`
        """Decorator that turns a method without arguments into an attribute computed only once.

        The value is stored in the object's `__dict__`, even for frozen dataclasses.

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

        def __init__(self, work: Callable[[Any], Any]) -> None:
            self._work = work
            self.__doc__ = work.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: object | None, owner: type) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self._name, self._work(instance))


def lazy_names(
    module: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package that imports names on first use.

    Args:
        module: The `__name__` of the package.
        homes: For each module, the names that are imported from it, separated by spaces.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}
    public = sorted(home_of)

    def attribute(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home_of[name]), name)
        return vars(sys.modules[module]).setdefault(name, value)

    return attribute, lambda: list(public), public
