"""Short steps go one after another, and a long statement steps aside.

SQLite lets go of Python's global lock for every row and takes it again. With many threads each of
these is a fight for the lock, and a typical query, some microseconds of work, runs far slower in 32
threads than in one. So the threads of a process queue at one turnstile instead, a step at a time,
and the one that is through meets no competitor. A statement that turns out to be long (it comes to
the meter a second time) leaves the turnstile to the others and goes on beside them.

Waking a thread costs as much as a whole step. So whoever is through may pass again at once, and the
first in the queue is woken only now and then; it looks for itself after short naps, in case that
nobody passes any more.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque

LONG = 2
"""Ticks of the meter after which a statement is long: well under a millisecond of work."""
PATIENCE = 0.05
"""Seconds of one turn after which the others go on without theirs: one call may be slow."""
SLICE = 0.001
"""Seconds after which the first in the queue is woken by whoever leaves."""
SHORTEST_NAP, LONGEST_NAP = 0.0002, 0.004
"""Seconds after which the first in the queue looks for itself; each nap is twice the one before."""


class Turnstile:
    """Lets one thread through at a time; nobody waits for ever."""

    def __init__(self) -> None:
        self._busy = threading.Lock()
        self._holder = 0
        self._turns = 0
        self._woken_at = 0.0
        self._queue: deque[threading.Lock] = deque()

    def enter(self) -> bool:
        """Wait for a turn.

        Returns:
            The calling thread got a turn, and is to `leave`. False where it has one already, or
            goes on without.
        """
        me = threading.get_ident()
        if self._holder == me:
            return False
        if not (self._busy.acquire(blocking=False) or self._wait()):
            return False
        self._holder = me
        self._turns += 1
        return True

    def leave(self) -> None:
        """End the turn of the calling thread, if it has one."""
        if self._holder != threading.get_ident():
            return
        self._holder = 0
        self._busy.release()
        if self._queue and time.monotonic() - self._woken_at > SLICE:
            self._wake_first()

    def _wait(self) -> bool:
        """Queue for the turn; False where one turn has taken all of the patience."""
        bell = threading.Lock()
        bell.acquire()
        self._queue.append(bell)
        turns, until = self._turns, time.monotonic() + PATIENCE
        nap = SHORTEST_NAP
        try:
            while True:
                if self._queue[0] is bell:
                    bell.acquire(timeout=nap)
                    nap = min(2 * nap, LONGEST_NAP)
                else:
                    bell.acquire(timeout=PATIENCE)
                if self._busy.acquire(blocking=False):
                    return True
                if self._turns != turns:
                    turns, until = self._turns, time.monotonic() + PATIENCE
                elif time.monotonic() > until:
                    return False
        finally:
            self._queue.remove(bell)
            self._wake_first()

    def _wake_first(self) -> None:
        self._woken_at = time.monotonic()
        try:
            self._queue[0].release()
        except (IndexError, RuntimeError):  # nobody waits any more, or is awake already
            return


TURNSTILE = Turnstile()
"""The one of this process."""

if hasattr(os, "register_at_fork"):  # a thread that the child does not have may be in it
    os.register_at_fork(after_in_child=TURNSTILE.__init__)  # type: ignore[misc]
