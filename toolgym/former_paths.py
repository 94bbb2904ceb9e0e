"""Import paths that the pages of version 0.1.0 name, and whose modules have moved since.

A package tells its moved modules once, in its `__init__`:

    redirect({"sqlgym.limits": "sqlgym.database.limits"})

Then `from sqlgym.limits import Limits` works as before, and warns with the path of today. Nothing
is imported before somebody asks for it, and nothing of ours may ask: an old path is no module.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["redirect"]


def redirect(moved: Mapping[str, str]) -> None:
    """Make former import paths work.

    Args:
        moved: The dotted names of modules as they were, and as they are.
    """
    sys.meta_path.append(_Finder(moved))


class _Finder(MetaPathFinder):
    def __init__(self, moved: Mapping[str, str]) -> None:
        self._moved = dict(moved)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        now = self._moved.get(name)
        return None if now is None else ModuleSpec(name, _Loader(now))


class _Loader(Loader):
    """Makes a module that has what another one has."""

    def __init__(self, now: str) -> None:
        self._now = now

    def exec_module(self, module: ModuleType) -> None:
        warnings.warn(
            f"{module.__name__} has moved: import from {self._now}.",
            DeprecationWarning,
            stacklevel=2,
        )
        there = importlib.import_module(self._now)
        module.__doc__ = there.__doc__
        module.__dict__["__getattr__"] = lambda name: getattr(there, name)
        module.__dict__["__dir__"] = lambda: dir(there)
