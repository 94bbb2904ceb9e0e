"""Guarded, read-only SQLite database.

`open_database` gives every caller of a process the same `Database` for the same file, so that the
rollouts of a group, which ask the same queries, share one cache of results. A statement runs on a
guarded connection (`sqlgym.database.guard`) from the pool of the process. A mistake in the SQL is a
`ToolError`; a fault of the file or the machine is an `EnvironmentFault`.

A file is assumed to be immutable while it is open; one that changed on disk (other size or
modification time) is another `Database`. A connection costs a file descriptor and a page cache, and
only one thread may use it at a time: a thread borrows one for one statement, and the pool keeps at
most `MOST_IDLE` open over all databases.
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
"""Idle connections of one process."""
CACHE_ENTRIES, CACHE_BYTES = 4_096, 32 << 20
"""Results of one database that are kept: their number, and their memory in bytes."""
_EXPLAIN = re.compile(
    r"(?:[\s;\ufeff]|--[^\n]*+|/\*.*?(?:\*/|$))*+explain\b", re.DOTALL | re.IGNORECASE
)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|$)", re.DOTALL)
_USING = re.compile(r"\busing\s*+\(([^()]*+)\)")


class ConnectionPool:
    """Lends guarded connections, and keeps the idle ones that were used last.

    Args:
        most: Number of idle connections that are kept open.

    Attributes:
        opening: A lock under which one thread at a time opens a database.
    """

    def __init__(self, most: int = MOST_IDLE) -> None:
        self._most = most
        self._idle: OrderedDict[Hashable, list[GuardedConnection]] = OrderedDict()
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin with nothing open; connections of a parent stay as they are."""
        leave_to_parent(self._idle)
        self._idle = OrderedDict()
        self._n_idle = 0
        self._lock = threading.Lock()
        self.opening = threading.Lock()

    def take(self, key: Hashable, connect: Callable[[], GuardedConnection]) -> GuardedConnection:
        """Return a connection for the calling thread alone, until it is given back.

        Args:
            key: Names the file; connections with one key are interchangeable.
            connect: Opens a new one; its exceptions pass through.
        """
        with self._lock:
            if self._idle.get(key):
                self._n_idle -= 1
                return self._idle[key].pop()
        return connect()

    def give_back(self, key: Hashable, connection: GuardedConnection) -> None:
        """Return a connection that `take` handed out under the same key."""
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
    """Results by SQL text, the least recently used dropped first; safe for threads.

    The child of a fork begins with an empty one.
    """

    def __init__(self, most_entries: int = CACHE_ENTRIES, most_bytes: int = CACHE_BYTES) -> None:
        self._most_entries, self._most_bytes = most_entries, most_bytes
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin empty."""
        self._entries: OrderedDict[str, tuple[QueryResult | ToolError, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, sql: str) -> QueryResult | ToolError | None:
        """Return the last outcome of the statement, or None."""
        with self._lock:
            entry = self._entries.get(sql)
            if entry is None:
                return None
            self._entries.move_to_end(sql)
            return entry[0]

    def put(self, sql: str, outcome: QueryResult | ToolError) -> None:
        """Keep an outcome, unless it alone takes a quarter of the memory."""
        size = sys.getsizeof(sql) + 1_000
        if isinstance(outcome, QueryResult):  # with its text, which is kept with it
            size += 5_000 + outcome.size + 56 * len(outcome.rows)
        if size > self._most_bytes // 4:
            return
        with self._lock:
            self._bytes += size - self._entries.pop(sql, (None, 0))[1]
            self._entries[sql] = outcome, size
            while len(self._entries) > self._most_entries or self._bytes > self._most_bytes:
                self._bytes -= self._entries.popitem(last=False)[1][1]


class Database:
    """One SQLite file, which can only be read, and only by SQL.

    Args:
        backwards: SQLite reads rows in reverse where no order is asked for.
        cache_bytes: Memory of the results that are kept.

    Attributes:
        described: Descriptions of its tables, by schema and name.

    Raises:
        EnvironmentFault: The file is missing, not SQLite, or has an unmerged write-ahead log.

    A `Database` may be used by many threads at once, and in the child of a fork.
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
        POOL.give_back(self._key, POOL.take(self._key, self._connect))  # fails for a broken file

    def __reduce__(self) -> tuple[Any, ...]:
        return open_database, (self.path, self.limits)

    @lazy
    def schema(self) -> Schema:
        """Return the tables, columns and references of the file; read once."""
        return Schema.read(self.path)

    @lazy
    def backwards(self) -> Database:
        """Return the same file read in reverse; a query with one possible result has it here
        too.
        """
        return Database(self.path, self.limits, True, self._cache_bytes)

    def query(self, sql: str) -> QueryResult:
        """Run one SELECT statement.

        Raises:
            ToolError: A key of `sqlgym.database.diagnosis.SQL_ERRORS`; all but `too_much_memory`
                are cached.
            EnvironmentFault: The file cannot be read any more, the process has no memory left, or
                the statement took more time than the limits allow for its steps.
        """
        outcome = self._cache.get(sql)
        if outcome is None:
            try:
                outcome = self._run(sql)
            except ToolError as error:
                outcome = ToolError(*error.args)  # without the traceback, which keeps objects alive
            if not self.is_current():
                raise EnvironmentFault(
                    f"The database file {self.path} was changed or removed while it was in use.",
                    "Leave the files alone while they are used; the next reset opens the new one.",
                )
            if isinstance(outcome, QueryResult) or outcome.code not in diagnosis.TRANSIENT:
                self._cache.put(sql, outcome)
        if isinstance(outcome, ToolError):
            raise ToolError(*outcome.args)
        return outcome

    def is_current(self) -> bool:
        """Return whether the file on disk still has the size and time of the one that was
        opened.
        """
        try:
            status = os.stat(self._name)
        except OSError:
            return False
        return (status.st_mtime_ns, status.st_size) == self._stamp

    def count(self, table_name: str) -> int | None:
        """Return the number of rows of a table or view; None where counting takes too long or
        fails.
        """
        try:
            result = self.query(f"SELECT count(*) FROM {quoted(table_name)}")
        except ToolError:
            return None
        return int(result.rows[0][0])

    def close_idle(self) -> None:
        """Close its idle connections, for a file that will not be used again."""
        POOL.close_idle(self._key)

    def _run(self, sql: str) -> QueryResult:
        """Check the text of a statement, run it, and turn SQLite's errors into ours."""
        statement = sql.strip().rstrip("; \t\r\n")
        lowered = statement.lower()
        # EXPLAIN can only be at the start, and the authorizer does not see it.
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
                # Python's module cannot decode a text; an error of SQLite itself has a code.
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
        # SQLite does not report the columns of USING.
        for names in _USING.findall(lowered) if "using" in lowered else ():
            for table in map(self.schema.get, result.tables_read):
                columns = [table.column(bare_name(n)) for n in names.split(",")] if table else []
                added = {(table.name.lower(), c.name.lower()) for c in columns if table and c}
                result.columns_read |= added
        return result

    def _explained(
        self, error: Exception, connection: GuardedConnection, sql: str
    ) -> ToolError | EnvironmentFault:
        """Return the error for a statement that failed."""
        stopped, denial, limits = connection.stopped, connection.denial, self.limits
        if stopped == "deadline":
            return EnvironmentFault(
                f"A statement on {self.path} took more than {limits.deadline:g} seconds of"
                f" processor time before its {limits.steps:,} steps were used up.",
                'Allow more time, as in limits={"seconds": 60}.',
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
        if isinstance(error, UnicodeDecodeError):  # a message that quotes bytes of the statement
            message = error.object.decode("utf-8", "replace")
        else:
            message = str(error)
        return diagnosis.explain_message(message, sql, self.schema, self._compiles)

    def _compiles(self, sql: str) -> bool:
        """Return whether SQLite and the guard accept a statement; it is not run."""
        connection = POOL.take(self._key, self._connect)
        try:
            connection.run(f"EXPLAIN {sql}")
        except (sqlite3.Error, sqlite3.Warning, MemoryError, UnicodeDecodeError):
            return False
        finally:
            POOL.give_back(self._key, connection)
        return True


def open_database(path: Path | str, limits: Limits = Limits()) -> Database:  # noqa: B008 (frozen)
    """Return the `Database` of a file; the same one for every caller of this process.

    Raises:
        EnvironmentFault: The file is missing, not SQLite, or has an unmerged write-ahead log.
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
_recent: deque[Database] = deque(maxlen=32)  # keeps databases, and their caches, for a while


def _stamp(name: str) -> tuple[int, int]:
    """Modification time of a file in nanoseconds, and its size: they identify its content."""
    try:
        status = os.stat(name)
    except OSError as error:
        raise EnvironmentFault(
            f"The database file {name} cannot be read: {error.strerror}.",
            "Check the path and its rights.",
        ) from error
    return status.st_mtime_ns, status.st_size
