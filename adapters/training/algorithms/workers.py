"""Worker threads for the tool calls of different rollouts, used where they are faster.

Threads run tools that wait for a sandbox or a network in parallel. They slow down tools of a tenth
of a millisecond: handing a call to a thread takes as long as the call, and all threads share the
GIL. So every function is timed, at first with one call alone, and short functions are called one
after another. The results are the same either way, in the order of the items.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from toolgym.forks import renew_in_child

T = TypeVar("T")
R = TypeVar("R")

SHORT: Final = 0.001
"""Seconds of a call below which no threads are used."""
AGAIN: Final = 8
"""Batches in threads after which a call is timed alone again: the first call may have been slow for
another reason, such as opening a file."""


class Workers:
    """A pool of threads that maps functions over items; a context manager.

    Args:
        threads: Maximum number of threads; 1: no threads.

    >>> with Workers(4) as workers:
    ...     workers.each(str.upper, ["a", "b"])
    ['A', 'B']
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self.renew()
        renew_in_child(self)
        self._seconds: dict[Callable[..., Any], float] = {}
        self._in_threads: dict[Callable[..., Any], int] = {}

    def renew(self) -> None:
        """Drop the pool; forked processes do so, since threads do not survive a fork."""
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *problem: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def each(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Call the function for each item, and return the results in order.

        Raises:
            Exception: The exception of a call.
        """
        if self._threads < 2 or not items:
            return [function(item) for item in items]
        if function not in self._seconds:
            first = self._alone(function, items[:1])
            return first + self.each(function, items[1:])
        if self._seconds[function] < SHORT or len(items) < 2:
            return self._alone(function, items)
        self._pool = self._pool or ThreadPoolExecutor(self._threads)
        self._in_threads[function] = self._in_threads.get(function, 0) + 1
        if self._in_threads[function] % AGAIN == 0:
            del self._seconds[function]
        return list(self._pool.map(function, items))

    def _alone(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Call the function for each item in this thread, and store the mean time of a call."""
        start = time.perf_counter()
        results = [function(item) for item in items]
        self._seconds[function] = (time.perf_counter() - start) / len(items)
        return results
