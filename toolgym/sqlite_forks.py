"""Makes SQLite usable in a child that was forked off while other threads were inside SQLite.

SQLite takes locks of the whole process, outside of Python's global lock: one for each piece of
memory that it asks for or gives back. A thread that computes a statement holds it most of the time,
and in a child of that moment it would stay locked: the first use of SQLite there waits for ever. So
the child, which has one thread, lets go of those that are held. What they guard is whole at nearly
any moment, and else off by one: mostly it is the count of the memory in use.

Where Python hides the functions of its SQLite library (one that is built into the interpreter),
nothing can be done: there, fork before threads use SQLite, or start processes in another way.
"""

from __future__ import annotations

import _sqlite3
import contextlib
import ctypes
import os
from typing import Final

STATIC_LOCKS: Final = range(2, 14)
"""SQLite's numbers for them, from `SQLITE_MUTEX_STATIC_MAIN` to `SQLITE_MUTEX_STATIC_VFS3`."""


class SqliteLocks:
    """The static mutexes of a library.

    Args:
        library: SQLite, as `ctypes` sees it; `PyDLL`, since no call of these waits.

    Raises:
        AttributeError: Its functions are hidden.
    """

    def __init__(self, library: ctypes.PyDLL) -> None:
        allocate, self._try, self._leave = (
            library.sqlite3_mutex_alloc,
            library.sqlite3_mutex_try,
            library.sqlite3_mutex_leave,
        )
        allocate.argtypes, allocate.restype = [ctypes.c_int], ctypes.c_void_p
        self._try.argtypes = self._leave.argtypes = [ctypes.c_void_p]
        mutexes = [allocate(number) for number in STATIC_LOCKS]
        self.addresses = [address for address in mutexes if address]  # none in a library without

    def release_all(self) -> None:
        """Let go of each, whoever holds it; only for a process with one thread."""
        for address in self.addresses:
            self._try(address)  # held now, by us or as before
            self._leave(address)


def _locks() -> SqliteLocks | None:
    with contextlib.suppress(OSError, AttributeError):
        return SqliteLocks(ctypes.PyDLL(getattr(_sqlite3, "__file__", None)))
    return None


LOCKS: Final = _locks()
"""Those of Python's own SQLite; None where they cannot be reached."""

if LOCKS is not None and hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LOCKS.release_all)
