"""Progress of long work in a library, reported without printing anything.

Whoever waits listens, and whoever works tells; neither knows the other. The command line listens
and shows a line on stderr; a program that imports the library hears nothing unless it listens too:

    with listening(lambda what, done, total: ...):
        sqlgym.load_tasks("my.db", "train")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

_listener: ContextVar[Listener | None] = ContextVar("toolgym_long_work", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hear of long work inside this context, in this thread."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(what: str, done: int, total: int) -> None:
    """Tell whoever listens how far some long work is; without a listener nothing happens."""
    listener = _listener.get()
    if listener is not None:
        listener(what, done, total)


@contextmanager
def telling(what: str) -> Iterator[None]:
    """Tell whoever listens of work that is done inside this context, and has no parts."""
    tell(what, 0, 1)
    try:
        yield
    finally:
        tell(what, 1, 1)
