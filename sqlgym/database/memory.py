"""Measures SQLite's memory in this process, and provides a lock for statements that use much
memory.

SQLite counts its memory per process, not per statement. So that memory growth can be attributed to
a statement, only one statement at a time may use more than `SHARE` bytes. That statement holds the
lock `HEAVY`, and other statements wait for the lock when they next check their limits. A waiting
thread holds only its connection, so no deadlock is possible.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from toolgym.forks import renew_in_child

SHARE = 32 << 20
"""Memory growth in bytes above which a statement needs the lock."""
_STATM = Path("/proc/self/statm")


def _counted_by_sqlite() -> Callable[[], int] | None:
    """Return SQLite's own memory counter, or None if it is not available."""
    import _sqlite3  # the module behind `sqlite3`, which is built into some interpreters

    try:
        count = ctypes.PyDLL(getattr(_sqlite3, "__file__", None)).sqlite3_memory_used
    except (OSError, AttributeError, TypeError):
        return None
    count.restype, count.argtypes = ctypes.c_int64, []
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("SELECT 1")
        return count if count() > 0 else None


def _resident() -> int:
    """Return the resident memory of the process, which is slower to read and less exact."""
    with _STATM.open("rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _unknown() -> int:
    """Return 0 on systems that cannot measure memory; only the heap limit bounds a statement
    there.
    """
    return 0


memory_used: Callable[[], int] = _counted_by_sqlite() or (
    _resident if _STATM.exists() else _unknown
)
"""Returns a number of bytes that grows and shrinks with the memory of SQLite."""


def is_used_up() -> bool:
    """Return whether SQLite has little memory left in this process, after an allocation failed."""
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            limit: int = connection.execute("PRAGMA hard_heap_limit").fetchone()[0]
    except MemoryError:
        return True
    return 0 < limit < 2 * memory_used()


class HeavyLock:
    """A lock with an owner. In a forked child process, the lock is free."""

    def __init__(self) -> None:
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Create the lock."""
        self.owner: Any = None
        self._lock = threading.Lock()

    def acquire(self, owner: Any) -> None:
        """Wait until no statement holds the lock, and take it."""
        self._lock.acquire()
        self.owner = owner

    def release(self) -> None:
        """Release the lock; called by its owner."""
        self.owner = None
        self._lock.release()

    def wait(self) -> None:
        """Wait until the owner has released the lock."""
        with self._lock:
            pass


HEAVY = HeavyLock()
"""The lock of this process."""
