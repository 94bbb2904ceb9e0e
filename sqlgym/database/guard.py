"""A guarded connection that can only read one SQLite file.

The authorizer of SQLite checks each statement against an allow-list while the statement is
compiled. The guard rejects writes, DDL, temporary tables, ATTACH, PRAGMA, VACUUM, transactions and
extension loading. The guard also rejects non-deterministic functions, and virtual tables other than
`json_each`, `json_tree` and the virtual tables of the file. Date functions are replaced by versions
that cannot read the clock.

A statement is limited in size, steps, time and memory. `sqlgym.database.statement_size` and the
authorizer limit the size, since compilation cannot be interrupted. The progress handler limits the
steps of the virtual machine, the time and the memory. Steps are counted from the start of the
statement, so the step limit ends a statement at the same point on every machine with the same
SQLite version.
"""

from __future__ import annotations

import functools
import re
import reprlib
import sqlite3
import sys
import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from sqlgym.database.functions import DATE_FUNCTIONS, bound_texts, functions_of_sqlite, steady_date
from sqlgym.database.limits import STEPS_PER_TICK, Limits
from sqlgym.database.memory import HEAVY, SHARE, memory_used
from sqlgym.database.sqlite_file import broken_file, connect_readonly, lenient_text, quoted
from sqlgym.database.statement_size import StatementSize, makes_text

_STEADY = """
    abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat concat_ws cos
    cosh count cume_dist degrees dense_rank exp first_value floor format glob group_concat hex if
    ifnull iif instr json json_array json_array_length json_error_position json_extract
    json_group_array json_group_object json_object json_quote json_type json_valid -> ->> lag
    last_value lead length like likelihood likely ln log log10 log2 lower ltrim match max median min
    mod nth_value ntile nullif octet_length percent_rank percentile percentile_cont percentile_disc
    pi pow power printf quote radians rank replace round row_number rtrim sign sin sinh soundex sqrt
    string_agg substr substring sum tan tanh total trim trunc typeof unicode unistr unistr_quote
    unlikely upper
"""
FUNCTIONS = frozenset(_STEADY.split())
"""Built-in functions that are deterministic and fast."""
UNSTEADY = frozenset(
    [
        "random",
        "randomblob",
        "current_date",
        "current_time",
        "current_timestamp",
        "changes",
        "total_changes",
        "last_insert_rowid",
    ]
)
"""Functions that are refused because they are random or depend on the state of the connection."""

SQL_BYTES = 100_000
"""Maximum length of a statement, in bytes."""
MOST_NAMES, MOST_CALLS = 20_000, 200
"""Maximum number of names, and of function calls, for which SQLite calls the authorizer."""
_PATTERN_BYTES, _ALL_PATTERNS = 256, 2_400
_COLUMNS, _MOST_COLUMNS = 250, 2_000
_BATCH, _BATCH_BYTES = 256, 8_000_000
_READ, _OK = sqlite3.SQLITE_READ, sqlite3.SQLITE_OK
_TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})
_LATE_MODULES = frozenset({"jsonb_each", "jsonb_tree"})  # SQLite registers them at their first use
_SCHEMA_TABLES = frozenset({"sqlite_master", "sqlite_schema"})
_ACTIONS = {
    code: name.removeprefix("SQLITE_").replace("_", " ")
    for name, code in sorted(vars(sqlite3).items())
    if re.fullmatch(
        r"SQLITE_(?:(?:CREATE|DROP|ALTER).*|INSERT|UPDATE|DELETE|PRAGMA|ATTACH|DETACH|TRANSACTION"
        r"|SAVEPOINT|ANALYZE|REINDEX)",
        name,
    )
}

Memoized = TypeVar("Memoized")


@dataclass(eq=False, repr=False)
class QueryResult:
    """The result of a statement. It is immutable.

    Attributes:
        columns: Names of the columns, as SQLite reports them.
        rows: Tuples of None, int, float, str and bytes.
        truncated: Whether rows at the end were omitted because the result exceeded the limits.
        columns_read: Pairs of a table or view and a column that was read from it, in lower case.
            The column is "" if no column of the table was read.
        ticks: Thousands of virtual-machine steps that the statement took.
        size: Memory of the values, in bytes.
        memo: Cached values computed from the result, such as its text; see `memoize`.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool
    columns_read: frozenset[tuple[str, str]]
    ticks: int
    size: int = 0
    memo: dict[Hashable, Any] = field(default_factory=dict, init=False)

    @property
    def tables_read(self) -> frozenset[str]:
        """Names of the tables and views that were read, in lower case."""
        return frozenset(table for table, _ in self.columns_read)

    def __repr__(self) -> str:
        more = ", truncated" if self.truncated else ""
        return f"<QueryResult: {len(self.rows)} rows of {reprlib.repr(self.columns)}{more}>"

    def memoize(self, key: Hashable, value: Memoized) -> Memoized:
        """Compute a value once for all users of this result, store it in `memo`, and return it."""
        if len(self.memo) >= 8:
            self.memo.clear()
        self.memo[key] = value
        return value


class GuardedConnection:
    """A guarded connection to one file. Only one thread at a time can use it.

    Args:
        backwards: Whether to return rows in reverse order if the query does not specify an order.

    Attributes:
        denial: Code and description of the operation in the last statement that the guard rejected,
            or None.
        stopped: `too_many_steps`, `deadline` or `too_much_memory` if that limit ended the last
            statement.

    Raises:
        EnvironmentFault: The file is missing, is empty, is not an SQLite database, or has an
            unmerged write-ahead log.
    """

    def __init__(self, path: Path, limits: Limits, backwards: bool = False) -> None:
        self.denial: tuple[str, str] | None = None
        self.stopped: str | None = None
        self._limits = limits
        self._most_ticks, self._seconds = limits.steps // STEPS_PER_TICK, limits.deadline
        self._ticks = self._most_memory = 0
        self._end = self._look = 0.0
        self._direct: set[str] = set()
        self._used: set[tuple[str, str]] = set()
        self._unplaced: set[str] = set()
        self._contexts: set[str] = set()
        self._named = self._calls = 0
        self._patterns = _PATTERN_BYTES
        self._db = connect_readonly(path)
        try:
            self._db.text_factory = bytes  # names may contain invalid UTF-8
            self._prepare_file(backwards)
            self._install()
        except sqlite3.Error as error:
            self._db.close()
            raise broken_file(path, error) from error

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def run(self, sql: str, lenient: bool = False) -> QueryResult:
        """Run one statement and fetch its result within the limits.

        A result without columns means that there was no statement. If the first row alone exceeds
        the size limit, the result contains only that row, and `size` exceeds the limit.

        Args:
            sql: One statement of at most `SQL_BYTES` bytes.
            lenient: Whether to replace invalid UTF-8 with U+FFFD instead of raising
                `OperationalError`.

        Raises:
            sqlite3.Error, sqlite3.Warning, MemoryError: Raised by SQLite or by its Python module.
        """
        self.denial = self.stopped = None
        for names in (self._direct, self._used, self._unplaced, self._contexts):
            names.clear()
        self._named = self._calls = self._ticks = 0
        self._check_size(sql.removeprefix("EXPLAIN "))
        self._most_memory = memory_used() + min(SHARE, self._limits.memory_bytes)
        self._db.text_factory = lenient_text if lenient else str
        cursor = self._db.cursor()
        try:
            cursor.execute(sql)
            self._refuse_unknown_tables()
            return self._fetched(cursor)
        finally:
            cursor.close()
            if HEAVY.owner is self:
                HEAVY.release()

    def _fetched(self, cursor: sqlite3.Cursor) -> QueryResult:
        limits = self._limits
        columns = tuple([column[0] for column in cursor.description or ()])
        rows: list[tuple[Any, ...]] = []
        size, truncated = 0, True
        batch = _BATCH_BYTES // (limits.value_bytes * max(len(columns), 1))
        batch = max(1, min(batch, _BATCH))
        while len(rows) <= limits.rows and size <= limits.result_bytes:
            asked = min(batch, limits.rows + 1 - len(rows))
            found = cursor.fetchmany(asked)
            rows += found
            size += sum(map(sys.getsizeof, chain.from_iterable(found)))
            if len(found) < asked:
                truncated = len(rows) > limits.rows or size > limits.result_bytes
                break
        if truncated:
            del rows[limits.rows :]
            size, kept = 0, 0
            while kept < len(rows) and size <= limits.result_bytes:
                size += sum(map(sys.getsizeof, rows[kept]))
                kept += 1
            del rows[kept:]
        read = self._columns_read()
        return QueryResult(columns, tuple(rows), truncated, read, self._ticks, size)

    def _columns_read(self) -> frozenset[tuple[str, str]]:
        """Return the names of the tables and columns that the last statement reads, in lower case.

        If no column of a table or view is used, as in `count(*)`, its column is "". SQLite then
        reports the table without its database, like a common table expression. Only a common table
        expression opens a context with its own name.
        """
        used = frozenset(map(_lower, self._used))
        counted = (self._unplaced - self._contexts) & self._tables - self._direct
        return used.union((table, "") for table in counted) if counted else used

    def _refuse_unknown_tables(self) -> None:
        """Refuse a table that is not part of the file and whose rows are only counted.

        Newer versions of SQLite set up their own tables without calling the authorizer. If no
        column is used, only the name distinguishes such a table from a common table expression.
        """
        if not self._unplaced:
            return
        named = self._unplaced - self._contexts - self._tables
        for name in sorted(named - _SCHEMA_TABLES - _TABLE_FUNCTIONS - {""}):
            self._deny("not_allowed", f"reading {name}")
            raise sqlite3.DatabaseError("not authorized")

    def _check_size(self, sql: str) -> None:
        """Refuse a statement that could not be interrupted, and set the maximum length of LIKE
        patterns.
        """
        lowered = sql.lower()
        if self._looks_always or lowered.count("select") > 1 or "values" in lowered:
            refused = self._size.refusal(lowered)
            if refused:
                self._deny("too_large", refused)
                raise sqlite3.DataError(refused)
        most = _PATTERN_BYTES
        if ("like" in lowered or "glob" in lowered) and makes_text(lowered):
            # Matching is slow only for long strings, and only an expression can build one.
            patterns = lowered.count("like") + lowered.count("glob")
            most = min(_PATTERN_BYTES // 4, _ALL_PATTERNS // patterns)
        if most != self._patterns:
            self._db.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, most)
            self._patterns = most

    def _prepare_file(self, backwards: bool) -> None:
        """Apply settings and trigger lazy initialization of SQLite, which the guard would refuse
        later.
        """
        for pragma in (
            "query_only=1",
            "temp_store=MEMORY",
            f"hard_heap_limit={self._limits.heap_bytes}",
            f"reverse_unordered_selects={int(backwards)}",
        ):
            self._db.execute(f"PRAGMA {pragma}").fetchall()
        rows = self._db.execute(
            "SELECT name, type = 'table' AND coalesce(rootpage, 0) = 0, type = 'view', sql, "
            "length(sql) - length(replace(sql, ',', '')) + 1 FROM sqlite_master "
            "WHERE type IN ('table', 'view')"
        ).fetchall()
        virtual = [lenient_text(name) for name, is_virtual, *_ in rows if is_virtual]
        views = {
            lenient_text(name).lower(): lenient_text(sql).lower()
            for name, _, is_view, sql, _ in rows
            if is_view
        }
        self._size = StatementSize(views, [name.lower() for name in virtual])
        self._looks_always = bool(views or virtual)
        widest = sorted(width for *_, width in rows if width)[-2:]
        self._columns = min(max(_COLUMNS, sum(widest)), _MOST_COLUMNS)
        self._has_modules = bool(virtual)
        for source in ["json_each('[]')", "json_tree('[]')", *map(quoted, virtual)]:
            try:
                self._db.execute(f"SELECT 1 FROM {source} LIMIT 0").fetchall()
            except sqlite3.OperationalError:  # this SQLite lacks the module
                continue
        self._tables = frozenset(lenient_text(name).lower() for name, *_ in rows)
        modules = self._db.execute("PRAGMA module_list").fetchall()
        found = frozenset(lenient_text(name).lower() for (name,) in modules) | _LATE_MODULES
        self._modules = found - self._tables - _TABLE_FUNCTIONS

    def _install(self) -> None:
        limits = self._limits
        for category, value in (
            (sqlite3.SQLITE_LIMIT_LENGTH, limits.value_bytes),
            (sqlite3.SQLITE_LIMIT_SQL_LENGTH, SQL_BYTES),
            (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 500),
            (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 100),
            (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, self._patterns),
            (sqlite3.SQLITE_LIMIT_COLUMN, self._columns),
            (sqlite3.SQLITE_LIMIT_FUNCTION_ARG, 100),
            (sqlite3.SQLITE_LIMIT_VDBE_OP, 250_000),
            (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
            (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
        ):
            self._db.setlimit(category, value)
        for name in sorted(functions_of_sqlite() & DATE_FUNCTIONS.keys()):
            arity = 2 if name == "timediff" else -1
            function = steady_date(name, lambda what: self._deny("nondeterministic", what))
            self._db.create_function(name, arity, function, deterministic=True)
        bound_texts(self._db, limits.value_bytes)
        self._db.set_progress_handler(self._tick, STEPS_PER_TICK)
        self._db.set_authorizer(self._authorize)

    def _tick(self) -> bool:
        """Check the limits as SQLite's progress handler, every thousand steps; True ends the
        statement.
        """
        self._ticks += 1
        if self._ticks == 1:
            self._end, self._look = 0.0, time.monotonic() + min(0.05, self._seconds)
        if self._ticks > self._most_ticks:
            self.stopped = "too_many_steps"
        elif time.monotonic() > self._look:  # processor time is slower to read
            now = time.thread_time()
            self._end = self._end or now + self._seconds
            self._look = time.monotonic() + self._end - now
            self.stopped = "deadline" if now > self._end else None
        elif memory_used() > self._most_memory:
            if HEAVY.owner is self:
                self.stopped = "too_much_memory"
            else:
                HEAVY.acquire(self)
                more = self._limits.memory_bytes - SHARE
                self._most_memory = memory_used() + max(more, 0)
        elif HEAVY.owner not in (None, self):
            HEAVY.wait()
        return self.stopped is not None

    def _authorize(
        self,
        action: int,
        first: str | None,
        second: str | None,
        source: str | None,
        context: str | None,
    ) -> int:
        self._named += 1
        if self._named > MOST_NAMES:
            return self._deny("too_large", f"more than {MOST_NAMES:,} names when written out")
        if action == _READ and source == "main" and first in self._direct:
            self._used.add((first, second or ""))
            return _OK  # the most frequent case: another column of a known table
        if action == _READ:
            return self._authorize_read(first or "", second or "", source)
        if action == sqlite3.SQLITE_SELECT:
            if context:
                self._contexts.add(context.lower())
            return _OK
        if action == sqlite3.SQLITE_RECURSIVE:
            return _OK
        if action == sqlite3.SQLITE_FUNCTION:
            return self._authorize_function((second or "").lower())
        if action == sqlite3.SQLITE_PRAGMA and first == "data_version" and self._has_modules:
            return _OK  # full-text search runs this before each query
        if first in _SCHEMA_TABLES:  # SQLite does this to set up a new table or one of its modules
            return self._deny("not_allowed", "a change of the schema, or a system table of SQLite")
        return self._deny("not_allowed", _ACTIONS.get(action, "this kind of statement"))

    def _authorize_read(self, name: str, column: str, source: str | None) -> int:
        table = name.lower()
        if source is None:  # a table of which no column is used, or a common table expression
            is_pragma = table.startswith("pragma_") and table not in self._tables
            if table in self._modules or is_pragma:
                return self._deny("not_allowed", f"reading {table}")
            self._unplaced.add(table)
            return _OK
        if source == "main" and table in self._tables:
            self._direct.add(table)
            self._used.add((name, column))
            return _OK
        if source == "main" and table in _SCHEMA_TABLES | _TABLE_FUNCTIONS:
            return _OK
        return self._deny("not_allowed", f"reading {table}")

    def _authorize_function(self, name: str) -> int:
        self._calls += 1
        if self._calls > MOST_CALLS:
            what = f"more than {MOST_CALLS:,} function calls when written out"
            return self._deny("too_large", what)
        if name in FUNCTIONS or name in DATE_FUNCTIONS:
            return _OK
        return self._deny("nondeterministic" if name in UNSTEADY else "not_allowed", f"{name}()")

    def _deny(self, code: str, what: str) -> int:
        self.denial = self.denial or (code, what)
        return sqlite3.SQLITE_DENY


@functools.lru_cache(maxsize=4_096)
def _lower(names: tuple[str, str]) -> tuple[str, str]:
    return names[0].lower(), names[1].lower()
