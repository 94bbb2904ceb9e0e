"""Few open files for many environments and threads.

A guarded connection costs a file descriptor and a page cache, and SQLite lets only one thread use
it at a time. So connections are lent: a thread takes one for one statement and gives it back; the
pool of the process keeps at most `MOST_OPEN` open over all databases and closes the one that has
been idle longest. Nobody holds two, so waiting for one always ends.

A connection must not cross a fork. The child of a fork starts with an empty pool and leaves the
parent's connections alone: closing them there could harm the parent.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from sqlgym.database.guard import GuardedConnection
from toolgym.forks import leave_to_parent, renew_in_child

MOST_OPEN = 64
"""Connections of one process; far below the usual limit of 1,024 open files."""


class ConnectionPool:
    """Lends guarded connections, at most `most` at a time, and keeps the idle ones warm.

    Args:
        most: How many may be open at once, lent and idle together.
    """

    def __init__(self, most: int = MOST_OPEN) -> None:
        self._most = most
        self._idle: OrderedDict[Hashable, list[GuardedConnection]] = OrderedDict()
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin with nothing open; connections of a parent stay as they are."""
        leave_to_parent(self._idle)
        self._open = 0
        self._idle = OrderedDict()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._waiting = 0

    def take(self, key: Hashable, connect: Callable[[], GuardedConnection]) -> GuardedConnection:
        """A connection to `key` for the calling thread alone, until it is given back.

        Args:
            key: Names the file; connections with one key are interchangeable.
            connect: Opens a new one; what it raises passes through.
        """
        found = self._take_idle(key)
        if found is not None:
            return found
        try:
            return connect()
        except BaseException:
            with self._lock:
                self._open -= 1
                self._changed.notify()
            raise

    def give_back(self, key: Hashable, connection: GuardedConnection) -> None:
        """Return a connection that `take` handed out under the same key."""
        with self._lock:
            self._idle.setdefault(key, []).append(connection)
            self._idle.move_to_end(key)
            if self._waiting:
                self._changed.notify()

    def close_idle(self, key: Hashable | None = None) -> None:
        """Close idle connections: those of one file, or all."""
        with self._lock:
            keys = list(self._idle) if key is None else [key]
            closing = [connection for each in keys for connection in self._idle.pop(each, [])]
            self._open -= len(closing)
            self._changed.notify_all()
        for connection in closing:
            connection.close()

    def _take_idle(self, key: Hashable) -> GuardedConnection | None:
        """An idle connection; or None, with the right to open one more."""
        with self._lock:
            while True:
                if key in self._idle:
                    return self._pop(key)
                if self._open < self._most:
                    self._open += 1
                    return None
                if self._idle:
                    self._pop(next(iter(self._idle))).close()
                    return None
                self._waiting += 1
                try:
                    self._changed.wait()
                finally:
                    self._waiting -= 1

    def _pop(self, key: Hashable) -> GuardedConnection:
        connections = self._idle[key]
        connection = connections.pop()
        if not connections:
            del self._idle[key]
        return connection


_pool = ConnectionPool()


def process_pool() -> ConnectionPool:
    """The pool of this process."""
    return _pool
