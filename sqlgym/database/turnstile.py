"""Serializes short statements to avoid contention for the GIL; long statements run in parallel.

SQLite releases the GIL for every row and takes it again. With many threads each of these is a fight
for the GIL, and a typical query, some microseconds of work, runs far slower in 32 threads than in
one. So the threads of a process take turns under one lock, and the running thread has no
competitor. A statement that turns out to be long (it comes to the meter a second time) ends its
turn and runs in parallel with the others.

A thread that leaves usually enters again at once, and waking another one for each step costs more
than the step. So the threads that wait form a line, and only its first one is woken, once in a
`SLICE`.

No thread waits forever: a turn that takes longer than `PATIENCE`, perhaps a single slow call, keeps
its own lock, and the others go on under a new one.
"""

from __future__ import annotations

import threading
import time

from toolgym.forks import renew_in_child

LONG = 2
"""Ticks of the meter after which a statement is long: well under a millisecond of work."""
PATIENCE = 0.5
"""Seconds that a thread waits for one turn before it goes on under a new lock."""
SLICE = 0.001
"""Seconds after which a thread that leaves wakes the first in the line."""
NAP = 0.004
"""Seconds after which the first in the line looks for the turn without being woken."""


class Turnstile:
    """A lock that lets one thread through at a time; no thread waits forever."""

    def __init__(self) -> None:
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin with no thread inside, as in the child of a fork."""
        self._turn = threading.Lock()
        self._line = threading.Lock()  # held by the first in the line
        self._bell = threading.Event()  # set to wake the first in the line
        self._rung_at = 0.0
        self._turns = 0
        self._own = threading.local()  # the turn of each thread; thread numbers are reused

    def enter(self) -> bool:
        """Wait for a turn.

        Returns:
            The calling thread got a turn, and is to `leave`; False where it has one already.
        """
        if getattr(self._own, "turn", None) is not None:
            return False
        turn = self._turn
        if not turn.acquire(blocking=False):
            turn = self._wait()
        self._turns += 1
        self._own.turn = turn
        return True

    def leave(self) -> None:
        """End the turn of the calling thread, if it has one."""
        turn = getattr(self._own, "turn", None)
        if turn is not None:
            self._own.turn = None
            turn.release()
            if self._line.locked():
                self._ring()

    def _ring(self) -> None:
        """Wake the first in the line, unless it was woken in this slice."""
        now = time.monotonic()
        if now - self._rung_at > SLICE:
            self._rung_at = now
            self._bell.set()

    def _wait(self) -> threading.Lock:
        """Wait in line until the turn is free, or until one turn has taken `PATIENCE` seconds."""
        with self._line:
            turns, until = self._turns, time.monotonic() + PATIENCE
            while not self._turn.acquire(blocking=False):
                self._bell.wait(NAP)
                self._bell.clear()
                if self._turns != turns:
                    turns, until = self._turns, time.monotonic() + PATIENCE
                elif time.monotonic() > until:
                    self._turn = threading.Lock()
            return self._turn


TURNSTILE = Turnstile()
"""The one of this process."""
