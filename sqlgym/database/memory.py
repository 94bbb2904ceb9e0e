"""Memory of SQLite in this process, and a lock for the one statement that takes much of it.

SQLite counts its memory for the whole process. To attribute growth to one statement, only one may
take more than `SHARE` at a time: it holds `HEAVY`, and other statements wait when they next check
their limits. A thread that waits holds nothing but its connection, so the wait always ends.
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
"""Growth of the memory, in bytes, from which a statement needs the lock."""
_STATM = Path("/proc/self/statm")


def _counted_by_sqlite() -> Callable[[], int] | None:
    """SQLite's own count; None where its library is out of reach or does not count."""
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
    """Resident memory of the process: slower to read and less exact."""
    with _STATM.open("rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _unknown() -> int:
    """No measurement on this system: only the heap limit bounds a statement."""
    return 0


memory_used: Callable[[], int] = _counted_by_sqlite() or (
    _resident if _STATM.exists() else _unknown
)
"""Returns a number of bytes that grows and shrinks with SQLite's memory."""


def is_used_up() -> bool:
    """Return whether SQLite has little memory left in this process after an allocation failed."""
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            limit: int = connection.execute("PRAGMA hard_heap_limit").fetchone()[0]
    except MemoryError:
        return True
    return 0 < limit < 2 * memory_used()


class HeavyLock:
    """A lock with an owner; a forked child begins with it free."""

    def __init__(self) -> None:
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Create the lock."""
        self.owner: Any = None
        self._lock = threading.Lock()

    def acquire(self, owner: Any) -> None:
        """Wait until no statement has the lock, and take it."""
        self._lock.acquire()
        self.owner = owner

    def release(self) -> None:
        """Give the lock back; to be called by its owner."""
        self.owner = None
        self._lock.release()

    def wait(self) -> None:
        """Wait until the owner has given the lock back."""
        with self._lock:
            pass


HEAVY = HeavyLock()
"""The lock of this process."""
