"""SQLite's memory in this process, and a lane for the one statement that takes much.

SQLite counts its memory for the whole process. So that what one statement takes can be told from
what its neighbours take, only one at a time may take much: a statement after whose start that count
has grown by a share goes into the heavy lane. While it is there, whoever comes to its meter waits;
what is taken now is its own, and it is ended at its bound. A statement that takes little is never
ended: at most it waits. Those of less than a thousand steps do not even do that.

Nobody in the lane waits for anything that another may hold: the turnstile is left before, a
connection is held already, and the wait for the others has an end.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from toolgym.forks import renew_in_child

SHARE = 32 << 20
"""Bytes by which the memory may grow while a statement runs before it goes into the lane."""
PATIENCE = 0.5
"""Seconds that the others get to come to their meters: a single step of theirs may be long."""
_STATM = Path("/proc/self/statm")


def _counted_by_sqlite() -> Callable[[], int] | None:
    """SQLite's own count; None where its library is out of reach, or does not count."""
    import _sqlite3  # the module behind `sqlite3`; built into some interpreters

    try:
        count = ctypes.PyDLL(getattr(_sqlite3, "__file__", None)).sqlite3_memory_used
    except (OSError, AttributeError, TypeError):
        return None
    count.restype, count.argtypes = ctypes.c_int64, []
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("SELECT 1")
        return count if count() > 0 else None


def _resident() -> int:
    """The memory of the process, from the kernel: slower to ask, and a bit behind."""
    with _STATM.open("rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _unknown() -> int:
    """Nothing can be measured here: what is left is the heap limit."""
    return 0


memory_used: Callable[[], int] = _counted_by_sqlite() or (
    _resident if _STATM.exists() else _unknown
)
"""Memory that grows and shrinks with SQLite's, in bytes."""


def is_used_up() -> bool:
    """Whether SQLite has little left in this process after a statement that had too little."""
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            limit: int = connection.execute("PRAGMA hard_heap_limit").fetchone()[0]
    except MemoryError:
        return True
    return 0 < limit < 2 * memory_used()


class HeavyLane:
    """Lets one statement at a time take much memory, while the others wait.

    Attributes:
        holder: Who is in it, or None.
    """

    def __init__(self) -> None:
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin empty, as in the child of a fork: a thread that it does not have may be inside."""
        self.holder: Any = None
        self._changed = threading.Condition()
        self._running: set[Any] = set()
        self._waiting = 0

    def begin(self, who: Any) -> None:
        """A statement has come to its meter: from now on it is waited for."""
        self._running.add(who)

    def end(self, who: Any) -> None:
        """It is over, whatever its end was."""
        self._running.discard(who)
        if self.holder is not None:
            with self._changed:
                if self.holder is who:
                    self.holder = None
                self._changed.notify_all()

    def wait(self) -> None:
        """Wait until nobody is in the lane."""
        with self._changed:
            self._wait_for_room()

    def enter(self, who: Any) -> None:
        """Wait for the lane, then until the others wait, or nearly so; returns once inside."""
        with self._changed:
            self._wait_for_room()
            self.holder = who
            until = time.monotonic() + PATIENCE
            while len(self._running) - self._waiting > 1 and time.monotonic() < until:
                self._changed.wait(max(0.0, until - time.monotonic()))

    def _wait_for_room(self) -> None:
        self._waiting += 1
        self._changed.notify_all()
        try:
            while self.holder is not None:
                self._changed.wait()
        finally:
            self._waiting -= 1


LANE = HeavyLane()
"""The one of this process."""
