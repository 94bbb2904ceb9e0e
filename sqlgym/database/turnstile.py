"""Serializes short statements to avoid contention for the GIL; long statements run in parallel.

SQLite lets go of Python's global lock for every row and takes it again. With many threads each of
these is a fight for the lock, and a typical query, some microseconds of work, runs far slower in 32
threads than in one. So the threads of a process take their steps in turn, under one lock, and the
running thread has no competitor. A statement that turns out to be long (it comes to the meter a
second time) ends its turn and runs in parallel with the others.

Nobody waits for ever: a turn that takes longer than the patience of one who waits, a single slow
call perhaps, keeps its own lock, and the others go on under a new one.
"""

from __future__ import annotations

import threading

from toolgym.forks import renew_in_child

LONG = 2
"""Ticks of the meter after which a statement is long: well under a millisecond of work."""
PATIENCE = 0.5
"""Seconds that one thread waits for one turn before it goes on beside it."""


class Turnstile:
    """A lock that lets one thread through at a time; no thread waits for ever."""

    def __init__(self) -> None:
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin with no thread inside, as in the child of a fork."""
        self._turn = threading.Lock()
        self._own = threading.local()  # the turn of each thread; a number would be given anew

    def enter(self) -> bool:
        """Wait for a turn.

        Returns:
            The calling thread got a turn, and is to `leave`; False where it has one already.
        """
        if getattr(self._own, "turn", None) is not None:
            return False
        while True:
            turn = self._turn
            if turn.acquire(timeout=PATIENCE):
                if turn is self._turn:
                    self._own.turn = turn
                    return True
                turn.release()  # the others left it behind meanwhile
            elif turn is self._turn:
                self._turn = threading.Lock()

    def leave(self) -> None:
        """End the turn of the calling thread, if it has one."""
        turn = getattr(self._own, "turn", None)
        if turn is not None:
            self._own.turn = None
            turn.release()


TURNSTILE = Turnstile()
"""The one of this process."""
