"""Work that is done in threads beside a search, and asked for later.

A statement about a table of a million rows takes a tenth of a second, in which SQLite lets go of
Python's global lock. So the search begins a proof and goes on. It asks for the outcome at a place
that does not depend on when the work was done, so that any number of threads gives the same tasks.

The child of a fork has none of its parent's threads: what was begun there is done anew when it is
asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from toolgym.forks import leave_to_parent, renew_in_child
from toolgym.workers import usable_cores

T = TypeVar("T")

THREADS = 1 if usable_cores() <= 2 else 2
"""Threads of one search, which has work for a core itself. Each has a connection of its own, and
the memory of one statement."""


class Threads:
    """Threads that do work in the order in which it is begun."""

    def __init__(self) -> None:
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin without anything to do."""
        leave_to_parent(self.__dict__.get("pool"))
        self.pool = ThreadPoolExecutor(THREADS, thread_name_prefix="toolgym-synthesis")

    def begin(self, work: Callable[[], T]) -> Begun[T]:
        """Begin some work, which must be safe to do twice."""
        return Begun(self, work)

    def close(self) -> None:
        """Drop what has not begun, and wait for the rest."""
        self.pool.shutdown(cancel_futures=True)


class Begun(Generic[T]):
    """Some work under way."""

    def __init__(self, threads: Threads, work: Callable[[], T]) -> None:
        self._threads, self._work = threads, work
        self._pool = threads.pool
        self._future: Future[T] = self._pool.submit(work)

    def result(self) -> T:
        """What came of it, once it is done; what it raised is raised here."""
        if self._threads.pool is not self._pool:
            return self._work()
        return self._future.result()
