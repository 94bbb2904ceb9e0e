"""Progress reports of long-running library code, which are sent to a listener and never printed.

A library calls `report_progress`. To show progress, a caller sets a listener. The command line sets
a listener that shows the progress in one line on stderr. Without a listener, reports are ignored.

    with progress_listener(lambda what, done, total: ...):
        sqlgym.load_tasks("my.db", "train")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, int, int], None]
"""Called with a description of the work, the number of finished units and the total."""

_listener: ContextVar[Listener | None] = ContextVar("toolgym_long_work", default=None)


@contextmanager
def progress_listener(listener: Listener) -> Iterator[None]:
    """Context manager that sends progress reports from this thread to a listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report_progress(what: str, done: int, total: int) -> None:
    """Report the progress of long-running work to the listener, if there is one.

    Args:
        what: Description of the work, such as "writing tasks for my.db".
        done: Number of finished units.
        total: Total number of units.
    """
    listener = _listener.get()
    if listener is not None:
        listener(what, done, total)


@contextmanager
def reporting(what: str) -> Iterator[None]:
    """Context manager that reports the start and the end of work that consists of a single unit."""
    report_progress(what, 0, 1)
    try:
        yield
    finally:
        report_progress(what, 1, 1)
