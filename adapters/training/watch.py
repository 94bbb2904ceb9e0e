"""Whoever looks on while a run goes through its phases: the command line, a test, nobody.

The phases report here and nowhere else, so that nothing below the command line prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Advance = Callable[[int, str], None]
"""Called with how much of a phase is done, and a word on how it stands."""


class Watch(Protocol):
    """Is told of each phase."""

    def phase(self, title: str, total: int) -> AbstractContextManager[Advance]:
        """A phase of `total` units begins; it ends with the context."""
        ...


class Silent:
    """Looks away."""

    @contextmanager
    def phase(self, title: str, total: int) -> Iterator[Advance]:
        """Nothing is shown."""
        yield lambda done, note: None
