"""A connection that reads one SQLite file and can do nothing else.

Refused, by SQLite's own authorizer while a statement is compiled (an allow-list; no word of the SQL
is looked at): writes, DDL, temp tables, ATTACH, PRAGMA, VACUUM, transactions, extension loading,
virtual tables other than the file's own and `json_each`/`json_tree`, and every function that is not
known to give the same value for the same arguments at any moment. Date functions are wrapped: with
the clock (`'now'`, or no time at all) or with this machine's time zone they are refused too.

Bounded: the length of a value, of the SQL, of an expression (`setlimit`); what a statement names,
once its views and table expressions are written out, since neither compiling it nor a line of
function calls can be interrupted; virtual-machine steps, counted in ticks of 1,000 from the
statement's start, so that a budget ends at the same place on every machine with the same SQLite;
time behind it; the memory that it takes.
"""

from __future__ import annotations

import functools
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlgym.database.functions import DATE_FUNCTIONS, bound_texts, functions_of_sqlite, steady_date
from sqlgym.database.limits import PARTS, STEPS_PER_TICK, Limits, Meter
from sqlgym.database.query_result import Fetched, fetch
from sqlgym.database.sqlite_file import broken_file, connect_readonly, lenient_text, quoted
from sqlgym.database.statement_size import WRITTEN_OUT, StatementSize

_STEADY = """
    abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat concat_ws cos
    cosh count cume_dist degrees dense_rank exp first_value floor format glob group_concat hex if
    ifnull iif instr json json_array json_array_length json_error_position json_extract
    json_group_array json_group_object json_object json_pretty json_quote json_type json_valid ->
    ->> lag last_value lead length like likelihood likely ln log log10 log2 lower ltrim match max
    median min mod nth_value ntile nullif octet_length percent_rank percentile percentile_cont
    percentile_disc pi pow power printf quote radians rank replace round row_number rtrim sign sin
    sinh soundex sqrt string_agg substr substring sum tan tanh total trim trunc typeof unhex unicode
    unistr unistr_quote unlikely upper
"""
FUNCTIONS = frozenset(_STEADY.split())
"""Built-in functions whose value depends on their arguments only, and that take no time.

Those that change a JSON text are left out: a question needs none, and `json_patch` is quadratic."""

UNSTEADY = frozenset(
    {"random", "randomblob", "current_date", "current_time", "current_timestamp"}
    | {"changes", "total_changes", "last_insert_rowid"}
)
"""Functions refused because their value depends on the moment, not because they do harm."""

_READ, _OK = sqlite3.SQLITE_READ, sqlite3.SQLITE_OK
_MOST_COLUMNS = 2_000  # SQLite's own limit, unless it was built with another
_TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})
_LATE_MODULES = frozenset({"jsonb_each", "jsonb_tree"})  # SQLite knows them once they are used
_SCHEMA_TABLES = frozenset({"sqlite_master", "sqlite_schema"})
_NAMED_ACTIONS = frozenset(
    {"INSERT", "UPDATE", "DELETE", "PRAGMA", "ATTACH", "DETACH", "TRANSACTION", "SAVEPOINT"}
    | {"ANALYZE", "REINDEX"}
)
_ACTIONS = {
    code: name.removeprefix("SQLITE_").replace("_", " ")
    for name, code in sorted(vars(sqlite3).items())
    if name.startswith(("SQLITE_CREATE", "SQLITE_DROP", "SQLITE_ALTER"))
    or name.removeprefix("SQLITE_") in _NAMED_ACTIONS
}


@dataclass(frozen=True)
class Denial:
    """A refusal of the guard: the error code, and the refused thing in words."""

    code: str
    what: str


class GuardedConnection:
    """One open file under the guard; used by one thread at a time.

    Args:
        backwards: Rows are read from the other end wherever no order is asked for.

    Raises:
        EnvironmentFault: The file is missing, empty, not SQLite, or has an unmerged log.
    """

    def __init__(self, path: Path, limits: Limits, backwards: bool = False) -> None:
        self.meter = Meter(limits)
        self._backwards = backwards
        self.denial: Denial | None = None
        self._limits = limits
        self._has_modules = False
        self._modules = frozenset[str]()
        self._direct: set[str] = set()
        self._used: set[tuple[str, str]] = set()
        self._unplaced: set[str] = set()
        self._contexts: set[str] = set()
        self._named = self._calls = 0
        self._db = connect_readonly(path)
        try:
            self._db.text_factory = bytes  # a name need not be UTF-8
            self._tables = self._prepare_file()
            self._install()
        except sqlite3.Error as error:
            self._db.close()
            raise broken_file(path, error) from error

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def fetch(self, sql: str, lenient: bool = False) -> Fetched:
        """Run one statement.

        Args:
            sql: One statement, not longer than the limit.
            lenient: Show bytes that are no UTF-8 as U+FFFD, instead of raising `OperationalError`.

        Raises:
            sqlite3.Error, sqlite3.Warning, MemoryError: As SQLite and its module give them.
        """
        self.denial = None
        for names in (self._direct, self._used, self._unplaced, self._contexts):
            names.clear()
        self._named = self._calls = 0
        self.meter.start()  # before anything is refused: it forgets why the last statement ended
        self._look_at(sql)
        self._db.text_factory = lenient_text if lenient else str
        try:
            cursor = self._db.execute(sql)
            try:
                self._refuse_unknown_tables()
                return fetch(cursor, self._limits, self.meter.grown, lenient)
            finally:
                cursor.close()
        finally:
            self.meter.finish()

    def columns_read(self) -> frozenset[tuple[str, str]]:
        """Lower-case names of table and column that the last statement reads.

        A table or view of which it uses no column (`count(*)`) has one without a name. It is
        reported without its database, as a common table expression of that name would be; those
        also open a context of their name.
        """
        used = frozenset(map(_lower, self._used))
        if not self._unplaced:
            return used
        counted = (self._unplaced - self._contexts) & self._tables - self._direct
        return used.union((table, "") for table in counted) if counted else used

    def _refuse_unknown_tables(self) -> None:
        """Refuse what was counted and is neither in the file nor an expression of the statement.

        Newer versions of SQLite set their own tables up without asking the authorizer, and where no
        column is used, nothing but the name tells them from a common table expression.
        """
        if not self._unplaced:
            return
        named = self._unplaced - self._contexts - self._tables
        for name in sorted(named - _SCHEMA_TABLES - _TABLE_FUNCTIONS - {""}):
            self._deny("not_allowed", f"reading {name}")
            raise sqlite3.DatabaseError("not authorized")

    def _look_at(self, sql: str) -> None:
        """Refuse what nothing could stop, and look often at what may have slow single calls."""
        lowered = sql.lower()
        if lowered.count("select") > 1 or self._size.always or "values" in lowered:
            refused = self._size.refusal(sql, lowered)
            if refused:
                self._deny("too_large", refused)
                raise sqlite3.DataError(refused)
        if "like" in lowered or "glob" in lowered or self._is_slow:
            pattern_bytes = self._size.pattern_bytes(sql, lowered)
            if pattern_bytes is not None or self._is_slow:
                most = pattern_bytes or self._limits.like_pattern_bytes
                self._db.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, most)
                self._set_handler(pattern_bytes is not None)

    def _prepare_file(self) -> frozenset[str]:
        """Settings, and whatever SQLite sets up lazily: the guard would refuse it later."""
        for pragma in (
            "query_only=1",
            "temp_store=MEMORY",
            *([f"hard_heap_limit={self._limits.heap_bytes}"] if self._limits.heap_bytes else []),
            f"reverse_unordered_selects={int(self._backwards)}",
        ):
            self._db.execute(f"PRAGMA {pragma}").fetchall()
        rows = self._db.execute(
            "SELECT name, type = 'table' AND coalesce(rootpage, 0) = 0, type = 'view', sql, "
            "length(sql) - length(replace(sql, ',', '')) + 1 FROM sqlite_master "
            "WHERE type IN ('table', 'view')"
        ).fetchall()
        virtual = [_text(name) for name, is_virtual, *_ in rows if is_virtual]
        views = {_text(name).lower(): _text(sql) for name, _, is_view, sql, _ in rows if is_view}
        self._size = StatementSize(self._limits, views, [name.lower() for name in virtual])
        widest = sorted(width for *_, width in rows if width)[-2:]
        self._columns = min(max(self._limits.columns, sum(widest)), _MOST_COLUMNS)
        self._has_modules = bool(virtual)
        for source in ["json_each('[]')", "json_tree('[]')", *map(quoted, virtual)]:
            try:
                self._db.execute(f"SELECT 1 FROM {source} LIMIT 0").fetchall()
            except (
                sqlite3.OperationalError
            ):  # a module that this SQLite lacks: unreadable either way
                continue
        names = frozenset(_text(name).lower() for name, *_ in rows)
        modules = self._db.execute("PRAGMA module_list").fetchall()
        found = frozenset(_text(name).lower() for (name,) in modules) | _LATE_MODULES
        self._modules = found - names - _TABLE_FUNCTIONS
        return names

    def _install(self) -> None:
        limits = self._limits
        for category, value in (
            (sqlite3.SQLITE_LIMIT_LENGTH, limits.value_bytes),
            (sqlite3.SQLITE_LIMIT_SQL_LENGTH, limits.sql_bytes),
            (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, limits.expression_depth),
            (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, limits.compound_terms),
            (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, limits.like_pattern_bytes),
            (sqlite3.SQLITE_LIMIT_COLUMN, self._columns),
            (sqlite3.SQLITE_LIMIT_FUNCTION_ARG, 100),
            (sqlite3.SQLITE_LIMIT_VDBE_OP, 250_000),
            (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
            (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
        ):
            self._db.setlimit(category, value)
        available = functions_of_sqlite()
        for name in sorted(available & DATE_FUNCTIONS.keys()):
            arity = 2 if name == "timediff" else -1
            function = steady_date(name, lambda what: self._deny("nondeterministic", what))
            self._db.create_function(name, arity, function, deterministic=True)
        bound_texts(self._db, limits.value_bytes)
        self._set_handler(is_slow=False)
        self._db.set_authorizer(self._authorize)

    def _set_handler(self, is_slow: bool) -> None:
        self._is_slow = is_slow
        handler = self.meter.part if is_slow else self.meter
        self._db.set_progress_handler(handler, STEPS_PER_TICK // (PARTS if is_slow else 1))

    def _authorize(
        self,
        action: int,
        first: str | None,
        second: str | None,
        source: str | None,
        context: str | None,
    ) -> int:
        self._named += 1
        if self._named > self._limits.names:
            return self._deny("too_large", f"more than {self._limits.names:,} names{WRITTEN_OUT}")
        if action == _READ and source == "main" and first in self._direct:
            self._used.add((first, second or ""))
            return _OK  # another column of a table: most of what is asked
        if action == _READ:
            return self._authorize_read(first or "", second or "", source)
        if action == sqlite3.SQLITE_SELECT:
            if context:
                self._contexts.add(context.lower())
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_RECURSIVE:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            return self._authorize_function((second or "").lower())
        if action == sqlite3.SQLITE_PRAGMA and first == "data_version" and self._has_modules:
            return sqlite3.SQLITE_OK  # full-text search asks this of the file behind each query
        if first in _SCHEMA_TABLES:  # how SQLite sets up a new table, or one of its own modules
            return self._deny("not_allowed", "a change of the schema, or a system table of SQLite")
        return self._deny("not_allowed", _ACTIONS.get(action, "this kind of statement"))

    def _authorize_read(self, name: str, column: str, source: str | None) -> int:
        table = name.lower()
        if source is None:  # a table without a used column, or a common table expression
            if table in self._modules or (
                table.startswith("pragma_") and table not in self._tables
            ):
                return self._deny("not_allowed", f"reading {table}")
            self._unplaced.add(table)
            return sqlite3.SQLITE_OK
        if source == "main" and table in self._tables:
            self._direct.add(table)
            self._used.add((name, column))
            return sqlite3.SQLITE_OK
        if source == "main" and (table in _SCHEMA_TABLES or table in _TABLE_FUNCTIONS):
            return sqlite3.SQLITE_OK
        return self._deny("not_allowed", f"reading {table}")

    def _authorize_function(self, name: str) -> int:
        self._calls += 1
        if self._calls > self._limits.calls:
            what = f"more than {self._limits.calls:,} function calls{WRITTEN_OUT}"
            return self._deny("too_large", what)
        if name in FUNCTIONS or name in DATE_FUNCTIONS:
            return sqlite3.SQLITE_OK
        return self._deny("nondeterministic" if name in UNSTEADY else "not_allowed", f"{name}()")

    def _deny(self, code: str, what: str) -> int:
        self.denial = self.denial or Denial(code, what)
        return sqlite3.SQLITE_DENY


@functools.lru_cache(maxsize=4_096)
def _lower(names: tuple[str, str]) -> tuple[str, str]:
    return names[0].lower(), names[1].lower()


def _text(name: Any) -> str:
    return lenient_text(name) if isinstance(name, bytes) else str(name)
