"""Guarded, read-only SQLite database.

Within a process, `open_database` returns the same `Database` for the same file to every caller. The
rollouts of a group often run identical queries, so they share one cache of results. A statement
runs on a guarded connection (`sqlgym.database.guard`) from the pool of the process. An error in the
SQL raises `ToolError`; a problem with the file or the system raises `EnvironmentFault`.

A file must not change while it is open. If its size or modification time changes, `open_database`
returns a new `Database`. Each connection uses a file descriptor and a page cache, and can be used
by only one thread at a time. A thread takes a connection from the pool for each statement. The pool
keeps at most `MOST_IDLE` idle connections open, across all databases.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from sqlgym.database import diagnosis
from sqlgym.database.guard import SQL_BYTES, GuardedConnection, QueryResult
from sqlgym.database.limits import Limits
from sqlgym.database.schema import Schema, bare_name
from sqlgym.database.sqlite_file import machine_fault, quoted, result_code
from toolgym.errors import EnvironmentFault, ToolError
from toolgym.forks import leave_to_parent, renew_in_child
from toolgym.lazy import lazy

__all__ = ["ConnectionPool", "Database", "Limits", "QueryResult", "ResultCache", "open_database"]

MOST_IDLE = 64
"""Maximum number of idle connections of one process."""
CACHE_ENTRIES, CACHE_BYTES = 4_096, 32 << 20
"""Maximum number of cached results of one database, and their maximum memory in bytes."""
_EXPLAIN = re.compile(
    r"(?:[\s;\ufeff]|--[^\n]*+|/\*.*?(?:\*/|$))*+explain\b", re.DOTALL | re.IGNORECASE
)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|$)", re.DOTALL)
_USING = re.compile(r"\busing\s*+\(([^()]*+)\)")


class ConnectionPool:
    """A pool of guarded connections that keeps the most recently used idle ones open.

    Args:
        most: Maximum number of idle connections that are kept open.

    Attributes:
        opening: A lock that lets only one thread at a time open a database.
    """

    def __init__(self, most: int = MOST_IDLE) -> None:
        self._most = most
        self._idle: OrderedDict[Hashable, list[GuardedConnection]] = OrderedDict()
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Start with an empty pool after a fork; connections of the parent process are not
        closed.
        """
        leave_to_parent(self._idle)
        self._idle = OrderedDict()
        self._n_idle = 0
        self._lock = threading.Lock()
        self.opening = threading.Lock()

    def take(self, key: Hashable, connect: Callable[[], GuardedConnection]) -> GuardedConnection:
        """Return a connection that only the calling thread uses until it calls `give_back`.

        Args:
            key: Key that identifies the file; connections with the same key are interchangeable.
            connect: Function that opens a new connection; exceptions that it raises are propagated.
        """
        with self._lock:
            if self._idle.get(key):
                self._n_idle -= 1
                return self._idle[key].pop()
        return connect()

    def give_back(self, key: Hashable, connection: GuardedConnection) -> None:
        """Return a connection from `take` to the pool, under the same key."""
        closing: list[GuardedConnection] = []
        with self._lock:
            self._idle.setdefault(key, []).append(connection)
            self._idle.move_to_end(key)
            self._n_idle += 1
            if self._n_idle > self._most:
                _, closing = self._idle.popitem(last=False)
                self._n_idle -= len(closing)
        for each in closing:
            each.close()

    def close_idle(self, key: Hashable) -> None:
        """Close the idle connections to one file."""
        with self._lock:
            closing = self._idle.pop(key, [])
            self._n_idle -= len(closing)
        for each in closing:
            each.close()


POOL = ConnectionPool()
"""The pool of this process."""


class ResultCache:
    """Thread-safe cache of results by SQL text, which evicts the least recently used ones.

    A forked child process starts with an empty cache.
    """

    def __init__(self, most_entries: int = CACHE_ENTRIES, most_bytes: int = CACHE_BYTES) -> None:
        self._most_entries, self._most_bytes = most_entries, most_bytes
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Start with an empty cache."""
        self._entries: OrderedDict[str, tuple[QueryResult | ToolError, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, sql: str) -> QueryResult | ToolError | None:
        """Return the cached outcome of a statement, or None if there is none."""
        with self._lock:
            entry = self._entries.get(sql)
            if entry is None:
                return None
            self._entries.move_to_end(sql)
            return entry[0]

    def put(self, sql: str, outcome: QueryResult | ToolError) -> None:
        """Cache an outcome, unless it needs more than a quarter of the cache's memory."""
        size = sys.getsizeof(sql) + 1_000
        if isinstance(outcome, QueryResult):  # including its rendered text
            size += 5_000 + outcome.size + 56 * len(outcome.rows)
        if size > self._most_bytes // 4:
            return
        with self._lock:
            self._bytes += size - self._entries.pop(sql, (None, 0))[1]
            self._entries[sql] = outcome, size
            while len(self._entries) > self._most_entries or self._bytes > self._most_bytes:
                self._bytes -= self._entries.popitem(last=False)[1][1]


class Database:
    """A read-only SQLite file that is accessed through SQL.

    Args:
        backwards: Whether to return rows in reverse order if the query does not specify an order.
        cache_bytes: Maximum memory of the cached results.

    Attributes:
        described: Descriptions of the tables, by schema and name.

    Raises:
        EnvironmentFault: The file is missing, is not an SQLite database, or has an unmerged
            write-ahead log.

    A `Database` can be used by several threads at once, and in a forked child process.
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
        self.described: dict[tuple[Schema, str], str] = {}
        self._name = str(self.path.absolute())
        self._stamp = _stamp(self._name)
        self._key = repr((self._name, self._stamp, limits, backwards))
        self._connect = partial(GuardedConnection, self.path, limits, backwards)
        self._cache = ResultCache(most_bytes=cache_bytes)
        self._cache_bytes = cache_bytes
        POOL.give_back(self._key, POOL.take(self._key, self._connect))  # raises for a broken file

    def __reduce__(self) -> tuple[Any, ...]:
        return open_database, (self.path, self.limits)

    @lazy
    def schema(self) -> Schema:
        """The tables, columns and references of the file, which are read only once."""
        return Schema.read(self.path)

    @lazy
    def backwards(self) -> Database:
        """The same file with rows in reverse order.

        A query whose result depends on the order of rows can return a different result on this
        database.
        """
        return Database(self.path, self.limits, True, self._cache_bytes)

    def query(self, sql: str) -> QueryResult:
        """Run one SELECT statement.

        Raises:
            ToolError: The SQL failed. The code of the error is a key of
                `sqlgym.database.diagnosis.SQL_ERRORS`. All errors except `too_much_memory` are
                cached.
            EnvironmentFault: The file can no longer be read, the process is out of memory, or the
                statement exceeded the time limit before its step limit.
        """
        outcome = self._cache.get(sql)
        if outcome is None:
            try:
                outcome = self._run(sql)
            except ToolError as error:
                outcome = ToolError(*error.args)  # without the traceback
            if not self.is_current():
                raise EnvironmentFault(
                    f"The database file {self.path} was changed or removed while it was open.",
                    "Do not change a database in use; the next reset opens the new file.",
                )
            if isinstance(outcome, QueryResult) or outcome.code not in diagnosis.TRANSIENT:
                self._cache.put(sql, outcome)
        if isinstance(outcome, ToolError):
            raise ToolError(*outcome.args)
        return outcome

    def is_current(self) -> bool:
        """Return whether the size and modification time of the file are the same as when it was
        opened.
        """
        try:
            status = os.stat(self._name)
        except OSError:
            return False
        return (status.st_mtime_ns, status.st_size) == self._stamp

    def count(self, table_name: str) -> int | None:
        """Return the number of rows of a table or view, or None if counting takes too long or
        fails.
        """
        try:
            result = self.query(f"SELECT count(*) FROM {quoted(table_name)}")
        except ToolError:
            return None
        return int(result.rows[0][0])

    def close_idle(self) -> None:
        """Close the idle connections to this file, which will not be used again."""
        POOL.close_idle(self._key)

    def _run(self, sql: str) -> QueryResult:
        """Check the text of a statement, run it, and convert the errors of SQLite to
        `ToolError`.
        """
        statement = sql.strip().rstrip("; \t\r\n")
        lowered = statement.lower()
        # EXPLAIN is always the first word, and the authorizer is not called for it.
        if "explain" in lowered and _EXPLAIN.match(statement):
            what = "EXPLAIN, whose result depends on SQLite's version"
            raise diagnosis.explain_refusal("not_allowed", what)
        if "\0" in statement:
            raise ToolError("sql_error", "The SQL contains a NUL character.", "Leave it out.")
        try:
            size = len(statement.encode())
        except UnicodeEncodeError:
            raise ToolError(
                "sql_error", "The SQL contains half a Unicode character.", "Leave it out."
            ) from None
        if size > SQL_BYTES:
            message = f"The SQL is {size:,} bytes long; at most {SQL_BYTES:,} are read."
            raise ToolError("too_large", message, "Write a shorter query.")
        connection = POOL.take(self._key, self._connect)
        try:
            try:
                result = connection.run(statement)
            except sqlite3.OperationalError as error:
                # An error from SQLite has a code; one without a code is about undecodable text.
                if hasattr(error, "sqlite_errorcode"):
                    raise
                result = connection.run(statement, lenient=True)
        except (sqlite3.Error, sqlite3.Warning, MemoryError, UnicodeDecodeError) as error:
            raise self._explained(error, connection, statement) from error
        finally:
            POOL.give_back(self._key, connection)
        if not result.columns:
            if _COMMENT.sub("", statement).strip():
                what = "a statement that gives no result"
                raise diagnosis.explain_refusal("not_allowed", what)
            raise ToolError("empty_sql", "There is no SQL to run.", "Write one SELECT statement.")
        if len(result.rows) == 1 and result.size > self.limits.result_bytes:
            message = f"One row of the result is larger than {self.limits.result_bytes:,} bytes."
            hint = "Select fewer columns, or their length()."
            raise ToolError("too_large", message, hint)
        # SQLite does not report the columns of USING to the authorizer.
        for names in _USING.findall(lowered) if "using" in lowered else ():
            for table in map(self.schema.get, result.tables_read):
                columns = [table.column(bare_name(n)) for n in names.split(",")] if table else []
                added = {(table.name.lower(), c.name.lower()) for c in columns if table and c}
                result.columns_read |= added
        return result

    def _explained(
        self, error: Exception, connection: GuardedConnection, sql: str
    ) -> ToolError | EnvironmentFault:
        """Return the exception for a statement that failed."""
        stopped, denial, limits = connection.stopped, connection.denial, self.limits
        if stopped == "deadline":
            return EnvironmentFault(
                f"A statement on {self.path} took more than {limits.deadline:g} seconds of"
                f" processor time before its {limits.steps:,} steps were used up.",
                'Allow more time, for example with limits={"seconds": 60}.',
            )
        fault = machine_fault(error, self.path, stopped is not None)
        if fault is not None:
            return fault
        if stopped == "too_many_steps":
            message = f"The query was stopped after {limits.steps:,} steps of work."
            hint = "Join on keys, add a WHERE or a LIMIT, and give a recursion an end."
            return ToolError(stopped, message, hint)
        if stopped or isinstance(error, MemoryError):
            message = "The query needs more memory than a query may use."
            return ToolError("too_much_memory", message, "Sort, group or join fewer rows.")
        if denial is not None:
            return diagnosis.explain_refusal(*denial)
        if result_code(error) == sqlite3.SQLITE_TOOBIG:
            message = f"A value in the query is longer than {limits.value_bytes:,} bytes."
            hint = "Leave that column out, or ask for its length()."
            return ToolError("too_large", message, hint)
        if isinstance(error, UnicodeDecodeError):  # the message quotes bytes of the statement
            message = error.object.decode("utf-8", "replace")
        else:
            message = str(error)
        return diagnosis.explain_message(message, sql, self.schema, self._compiles)

    def _compiles(self, sql: str) -> bool:
        """Return whether SQLite and the guard accept a statement, without running it."""
        connection = POOL.take(self._key, self._connect)
        try:
            connection.run(f"EXPLAIN {sql}")
        except (sqlite3.Error, sqlite3.Warning, MemoryError, UnicodeDecodeError):
            return False
        finally:
            POOL.give_back(self._key, connection)
        return True


def open_database(path: Path | str, limits: Limits = Limits()) -> Database:  # noqa: B008 (frozen)
    """Return the `Database` of a file, which is the same object for every caller in this process.

    Raises:
        EnvironmentFault: The file is missing, is not an SQLite database, or has an unmerged
            write-ahead log.
    """
    key = os.path.abspath(path), limits
    database = _opened.get(key)
    if database is None or not database.is_current():
        with POOL.opening:
            database = _opened.get(key)
            if database is None or not database.is_current():
                database = _opened[key] = Database(path, limits)
            _recent.append(database)
    return database


_opened: WeakValueDictionary[tuple[str, Limits], Database] = WeakValueDictionary()
_recent: deque[Database] = deque(maxlen=32)  # keeps recent databases and their caches alive


def _stamp(name: str) -> tuple[int, int]:
    """Return the modification time (in nanoseconds) and the size of a file, which identify its
    content.
    """
    try:
        status = os.stat(name)
    except OSError as error:
        raise EnvironmentFault(
            f"The database file {name} cannot be read: {error.strerror}.",
            "Check the path and its permissions.",
        ) from error
    return status.st_mtime_ns, status.st_size
