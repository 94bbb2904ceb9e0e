"""Guarded, read-only SQLite database.

`open_database` gives every caller of a process the same `Database` for the same file, so that the
rollouts of a group, which ask the same things, share one cache of results. A statement runs on a
guarded connection (`sqlgym.database.guard`) lent from the process's pool. What is wrong with the
SQL is a `ToolError`, what is wrong with the file an `EnvironmentFault`, and nothing else is raised.

Results and errors are cached by the text of the SQL, but for what the clock or the machine's memory
stopped: that may go well the next time. A file is taken to be immutable while it is open; one that
changed on disk (other size or modification time) is another `Database`.

A guarded connection costs a file descriptor and a page cache, and only one thread may use it at a
time: a thread borrows one for one statement, and the pool keeps at most `MOST_OPEN` open over all
databases and closes the one that has been idle longest. Nobody holds two, so waiting always ends.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from sqlgym.database import diagnosis
from sqlgym.database.guard import GuardedConnection
from sqlgym.database.limits import Limits
from sqlgym.database.query_result import CACHE_BYTES, QueryResult, ResultCache
from sqlgym.database.schema import Schema
from sqlgym.database.sqlite_file import machine_fault, quoted
from sqlgym.database.turnstile import TURNSTILE
from toolgym.errors import EnvironmentFault, ToolError
from toolgym.forks import leave_to_parent, renew_in_child
from toolgym.lazy import lazy

__all__ = [
    "ConnectionPool",
    "Database",
    "Limits",
    "QueryResult",
    "ResultCache",
    "open_database",
    "process_pool",
]

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
        idle = self._take_idle(key)
        if idle is not None:
            return idle
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


class Database:
    """One SQLite file, readable by SQL and by nothing else.

    Args:
        backwards: SQLite reads rows from the other end wherever no order is asked for.
        cache_bytes: Memory that results which are kept may take.

    Raises:
        EnvironmentFault: The file is missing, not SQLite, or has an unmerged write-ahead log.

    A `Database` may be used by many threads at once, and in the child of a fork. Its `deadlines`
    counts the statements that the clock has ended.
    """

    def __init__(
        self,
        path: Path | str,
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        backwards: bool = False,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self.path = Path(path)
        self.limits = limits
        self._name = str(self.path.absolute())
        self._stamp = _stamp(self._name)
        self._key = _key(self._name, self._stamp, limits) + " backwards" * backwards
        self._connect = partial(GuardedConnection, self.path, limits, backwards)
        self._cache_bytes = cache_bytes
        self._cache = ResultCache(most_bytes=cache_bytes)
        self.deadlines = 0
        pool = process_pool()  # a broken file is told now, not at the first query
        pool.give_back(self._key, pool.take(self._key, self._connect))

    def __reduce__(self) -> tuple[Any, ...]:
        return open_database, (self.path, self.limits)

    @lazy
    def schema(self) -> Schema:
        """The tables, columns and references of the file; read once."""
        return Schema.read(self.path)

    @lazy
    def backwards(self) -> Database:
        """The same file, read from the other end: a query that asks for one result gives it too."""
        return Database(self.path, self.limits, True, self._cache_bytes)

    def query(self, sql: str) -> QueryResult:
        """Run one SELECT statement.

        Raises:
            ToolError: `sql_error`, `unknown_column`, `unknown_table`, `ambiguous_column`,
                `not_allowed`, `nondeterministic`, `empty_sql`, `several_statements`,
                `too_many_steps`, `too_large`; or `deadline` and `too_much_memory`, which depend on
                the machine and are not cached.
            EnvironmentFault: The file cannot be read any more.
        """
        outcome = self._cache.get(sql)
        if outcome is None:
            outcome = self._run(sql)
            if isinstance(outcome, ToolError):
                self.deadlines += outcome.code == "deadline"
                if outcome.code not in diagnosis.TRANSIENT:
                    self._cache.put(sql, outcome)
        if isinstance(outcome, ToolError):
            raise ToolError(*outcome.args)  # a fresh one: raising adds a traceback to it
        return outcome

    def is_current(self) -> bool:
        """Whether the file on disk is still the one that was opened: of its size and time."""
        try:
            status = os.stat(self._name)
        except OSError:
            return False
        return (status.st_mtime_ns, status.st_size) == self._stamp

    def count(self, table_name: str) -> int | None:
        """The number of rows of a table or view; None where counting takes too long or fails."""
        try:
            result = self.query(f"SELECT count(*) FROM {quoted(table_name)}")
        except ToolError:
            return None
        return int(result.rows[0][0])

    def close_idle(self) -> None:
        """Close its idle connections, for a file that nobody will ask again."""
        process_pool().close_idle(self._key)
        if "backwards" in self.__dict__:
            self.backwards.close_idle()

    def _run(self, sql: str) -> QueryResult | ToolError:
        """Run a statement in its turn, unless another thread has just asked the same."""
        try:
            statement = diagnosis.check_text(sql, self.limits)
        except ToolError as error:
            return error
        entered = TURNSTILE.enter()
        try:
            cached = self._cache.get(sql) if entered else None  # another thread may have asked it
            outcome = cached or self._attempt(statement)
            if isinstance(outcome, QueryResult) and cached is None:
                self._check_current()
                self._cache.put(sql, outcome)
        finally:
            if entered:
                TURNSTILE.leave()
        if not isinstance(outcome, diagnosis.Failure):
            return outcome
        self._check_current()
        return diagnosis.explain(outcome, statement, self.schema, self.limits)

    def _check_current(self) -> None:
        """Refuse what was read from a file that changed meanwhile: nothing about it is certain."""
        if not self.is_current():
            process_pool().close_idle(self._key)
            raise EnvironmentFault(
                f"The database file {self.path} was changed or removed while it was in use.",
                "Leave the files alone while they are used; the next reset opens the new one.",
            )

    def _attempt(self, sql: str) -> QueryResult | ToolError | diagnosis.Failure:
        """Run a statement on a connection, borrowed in one's turn: few are open then."""
        pool = process_pool()
        connection = pool.take(self._key, self._connect)
        try:
            return self._fetched(connection, sql)
        finally:
            pool.give_back(self._key, connection)

    def _fetched(
        self, connection: GuardedConnection, sql: str, lenient: bool = False
    ) -> QueryResult | ToolError | diagnosis.Failure:
        try:
            columns, rows, truncated, size = connection.fetch(sql, lenient)
        except (sqlite3.Error, sqlite3.Warning, MemoryError, UnicodeDecodeError) as error:
            stopped = connection.meter.stopped
            if not lenient and _is_undecodable(error):
                return self._fetched(connection, sql, lenient=True)
            if isinstance(
                error, UnicodeDecodeError
            ):  # a message that quotes bytes of the statement
                error = sqlite3.OperationalError(error.object.decode("utf-8", "replace"))
            fault = machine_fault(error, self.path, stopped is not None)
            if fault is not None:
                raise fault from error
            return diagnosis.Failure(error, connection.denial, stopped)
        if not columns:
            return diagnosis.no_result(sql)
        if size > self.limits.result_bytes and len(rows) == 1:
            return diagnosis.row_too_large(self.limits)
        ticks, columns_read = connection.meter.ticks, connection.columns_read()
        return QueryResult(columns, tuple(rows), truncated, columns_read, ticks, size)


def open_database(path: Path | str, limits: Limits = Limits()) -> Database:  # noqa: B008 (frozen)
    """The `Database` of a file; the same one for every caller of this process.

    Raises:
        EnvironmentFault: The file is missing, not SQLite, or has an unmerged write-ahead log.
    """
    name = os.fspath(path)
    latest = _latest.get(name)  # the way of nearly every call
    if latest is not None and latest.limits is limits and latest.is_current():
        return latest
    absolute = str(Path(path).absolute())
    key = _key(absolute, _stamp(absolute), limits)
    with _opening.lock:
        database = _registry.get(key)
        if database is None:
            database = _registry[key] = Database(path, limits)
        if database not in _recent:
            _recent.append(database)
        if os.path.isabs(name):
            _latest[name] = database
    return database


class _Opening:
    """One thread at a time opens a database; in the child of a fork, none does."""

    def __init__(self) -> None:
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        self.lock = threading.Lock()


_registry: WeakValueDictionary[str, Database] = WeakValueDictionary()
_latest: WeakValueDictionary[str, Database] = WeakValueDictionary()
_recent: deque[Database] = deque(maxlen=32)  # outlives its environments for a while, with its cache
_opening = _Opening()


def _stamp(name: str) -> tuple[int, int]:
    """What tells that a file has changed: its modification time in nanoseconds, and its size."""
    try:
        status = os.stat(name)
    except OSError as error:
        raise EnvironmentFault(
            f"The database file {name} cannot be read: {error.strerror}.",
            "Check the path and its rights.",
        ) from error
    return status.st_mtime_ns, status.st_size


def _key(name: str, stamp: tuple[int, int], limits: Limits) -> str:
    """Names a file in one state under some limits; a text, since its hash is worked out once."""
    return repr((name, stamp, limits))


def _is_undecodable(error: Exception) -> bool:
    """Python's module could not decode a text; an error of SQLite itself always has a code."""
    return isinstance(error, sqlite3.OperationalError) and not hasattr(error, "sqlite_errorcode")
