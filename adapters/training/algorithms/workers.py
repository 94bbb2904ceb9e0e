"""Worker threads for the tool calls of different rollouts, used where they are faster.

A tool that waits for a sandbox or a network leaves the processor to the others, and threads make a
batch of them as fast as one. A tool that takes a tenth of a millisecond is only made slower by
them: handing a call over costs as much as the call, and all threads of Python share one lock. So
each kind of call is timed as it goes, the first one alone, and short ones are made one after
another. The results are the same either way, and in the items' order: rollouts share nothing.
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
"""Seconds of a call below which threads do not pay."""
AGAIN: Final = 8
"""Times that threads are used before a call is timed alone again: the first may have been slow for
another reason, such as a file that was opened."""


class Workers:
    """A pool of threads that maps functions over items; a context manager.

    Args:
        threads: At most; with 1 everything is done one after another.

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
        """Reset to no threads, also in a forked process."""
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *problem: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def each(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """The function's result for each item, in order; an exception of one is raised."""
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
        """The results, computed in this thread and timed."""
        start = time.perf_counter()
        results = [function(item) for item in items]
        self._seconds[function] = (time.perf_counter() - start) / len(items)
        return results
