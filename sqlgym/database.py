"""One SQLite file that agents may ask anything and that gives nothing but rows.

`open_database` gives every caller of a process the same `Database` for the same file, so that the
rollouts of a group, which ask the same things, share one cache of results. A statement runs on a
guarded connection (`sqlgym.guard`) lent from the process's pool. What is wrong with the SQL is a
`ToolError`, what is wrong with the file an `EnvironmentFault`, and nothing else is raised.

Results and errors are cached by the text of the SQL, but for what the clock or the machine's memory
stopped: that may go well the next time. A file is taken to be immutable while it is open; one that
changed on disk (other size or modification time) is another `Database`.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from sqlgym import diagnosis
from sqlgym.guard import GuardedConnection
from sqlgym.limits import Limits
from sqlgym.pool import process_pool
from sqlgym.schema import Schema
from sqlgym.sqlite_file import quoted
from toolgym.errors import EnvironmentFault, ToolError

__all__ = ["Database", "Limits", "QueryResult", "open_database"]

CACHE_ENTRIES = 4_096
CACHE_BYTES = 32 << 20
"""Results of one database that are kept: how many, and how much memory they may take."""


@dataclass(frozen=True)
class QueryResult:
    """What a statement gave.

    Attributes:
        columns: Their names, as SQLite gives them.
        rows: Tuples of None, int, float, str and bytes.
        truncated: Rows are missing at the end: there were more than the limits allow.
        tables_read: Lower-case names of the tables and views that it read.
        ticks: Thousands of virtual-machine steps that it took.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool
    tables_read: frozenset[str]
    ticks: int


class ResultCache:
    """Results by SQL text, the least recently used dropped first; safe for threads.

    Args:
        most_entries: How many are kept.
        most_bytes: How much memory they may take together, roughly.
    """

    def __init__(self, most_entries: int = CACHE_ENTRIES, most_bytes: int = CACHE_BYTES) -> None:
        self._most_entries, self._most_bytes = most_entries, most_bytes
        self._entries: OrderedDict[str, tuple[QueryResult | ToolError, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, sql: str) -> QueryResult | ToolError | None:
        """What the statement gave last time, or None."""
        with self._lock:
            entry = self._entries.get(sql)
            if entry is None:
                return None
            self._entries.move_to_end(sql)
            return entry[0]

    def put(self, sql: str, outcome: QueryResult | ToolError) -> None:
        """Keep an outcome, unless it alone takes a quarter of the memory."""
        size = _size(outcome) + sys.getsizeof(sql)
        if size > self._most_bytes // 4:
            return
        with self._lock:
            self._bytes += size - self._entries.pop(sql, (None, 0))[1]
            self._entries[sql] = outcome, size
            while len(self._entries) > self._most_entries or self._bytes > self._most_bytes:
                self._bytes -= self._entries.popitem(last=False)[1][1]


class Database:
    """One SQLite file, readable by SQL and by nothing else.

    Args:
        path: The file.
        limits: What one statement may use.

    Raises:
        EnvironmentFault: The file is missing, not SQLite, or has an unmerged write-ahead log.

    A `Database` may be used by many threads at once, and in the child of a fork.
    """

    def __init__(self, path: Path | str, limits: Limits = Limits()) -> None:  # noqa: B008 (frozen)
        self.path = Path(path)
        self.limits = limits
        self._key = _file_key(self.path, limits)
        self._process = os.getpid()
        self._cache = ResultCache()
        connection = self._borrow()  # a broken file is told now, not at the first query
        self._give_back(connection)

    def __reduce__(self) -> tuple[Any, ...]:
        return open_database, (self.path, self.limits)

    @cached_property
    def schema(self) -> Schema:
        """The tables, columns and references of the file; read once."""
        return Schema.read(self.path, self.count)

    def query(self, sql: str) -> QueryResult:
        """Run one SELECT statement.

        Raises:
            ToolError: `sql_error`, `unknown_column`, `unknown_table`, `ambiguous_column`,
                `not_allowed`, `nondeterministic`, `empty_sql`, `several_statements`,
                `too_many_steps`, `too_large`; or `deadline` and `too_much_memory`, which depend on
                the machine and are not cached.
            EnvironmentFault: The file cannot be read any more.
        """
        if self._process != os.getpid():  # a forked child: the cache's lock may be held by nobody
            self._process, self._cache = os.getpid(), ResultCache()
        outcome = self._cache.get(sql)
        if outcome is None:
            outcome = self._run(sql)
            if not (isinstance(outcome, ToolError) and outcome.code in diagnosis.TRANSIENT):
                self._cache.put(sql, outcome)
        if isinstance(outcome, ToolError):
            raise ToolError(*outcome.args)  # a fresh one: raising adds a traceback to it
        return outcome

    def count(self, table_name: str) -> int | None:
        """The number of rows of a table or view; None where counting takes too long or fails."""
        try:
            result = self.query(f"SELECT count(*) FROM {quoted(table_name)}")
        except ToolError:
            return None
        return int(result.rows[0][0])

    def _run(self, sql: str) -> QueryResult | ToolError:
        try:
            statement = diagnosis.check_text(sql, self.limits)
        except ToolError as error:
            return error
        connection = self._borrow()
        try:
            return self._attempt(connection, statement)
        finally:
            self._give_back(connection)

    def _attempt(
        self, connection: GuardedConnection, sql: str, lenient: bool = False
    ) -> QueryResult | ToolError:
        try:
            columns, rows, truncated = connection.fetch(sql, lenient)
        except (sqlite3.Error, sqlite3.Warning, MemoryError, UnicodeDecodeError) as error:
            stopped = connection.meter.stopped is not None
            if not lenient and _is_undecodable(error):
                return self._attempt(connection, sql, lenient=True)
            fault = diagnosis.machine_fault(error, self.path, stopped)
            if fault is not None:
                raise fault from error
            return diagnosis.explain(error, sql, connection, self.schema, self.limits)
        if not columns:
            return diagnosis.no_result(sql)
        return QueryResult(
            columns, tuple(rows), truncated, connection.tables_read(), connection.meter.ticks
        )

    def _borrow(self) -> GuardedConnection:
        return process_pool().take(self._key, partial(GuardedConnection, self.path, self.limits))

    def _give_back(self, connection: GuardedConnection) -> None:
        process_pool().give_back(self._key, connection)


def open_database(path: Path | str, limits: Limits = Limits()) -> Database:  # noqa: B008 (frozen)
    """The `Database` of a file; the same one for every caller of this process.

    Raises:
        EnvironmentFault: The file is missing, not SQLite, or has an unmerged write-ahead log.
    """
    key = _file_key(Path(path), limits)
    with _registry_lock:
        database = _registry.get(key)
        if database is None:
            database = _registry[key] = Database(path, limits)
        if database not in _recent:
            _recent.append(database)
    return database


_registry: WeakValueDictionary[tuple[Any, ...], Database] = WeakValueDictionary()
_recent: deque[Database] = deque(maxlen=32)  # outlives its environments for a while, with its cache
_registry_lock = threading.Lock()
if hasattr(os, "register_at_fork"):  # the lock may be held by a thread that the child does not have
    os.register_at_fork(
        before=_registry_lock.acquire,
        after_in_parent=_registry_lock.release,
        after_in_child=_registry_lock.release,
    )


def _file_key(path: Path, limits: Limits) -> tuple[Any, ...]:
    try:
        status = path.stat()
    except OSError as error:
        raise EnvironmentFault(
            f"The database file {path} cannot be read: {error.strerror}.",
            "Check the path and its rights.",
        ) from error
    return str(path.absolute()), status.st_mtime_ns, status.st_size, limits


def _is_undecodable(error: Exception) -> bool:
    """Python's module could not decode a text; an error of SQLite itself always has a code."""
    return isinstance(error, sqlite3.OperationalError) and not hasattr(error, "sqlite_errorcode")


def _size(outcome: QueryResult | ToolError) -> int:
    """Roughly the memory of an outcome, in bytes."""
    if isinstance(outcome, ToolError):
        return 1_000
    cells = sum(sum(map(sys.getsizeof, row)) for row in outcome.rows)
    return 500 + cells + 56 * len(outcome.rows)
