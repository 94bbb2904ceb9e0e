"""Rows of a statement, fetched within its limits, and the cache in which rollouts share results.

A result is never changed. What is computed from it (its text, its closeness to a gold result) is
kept with it, since all who ask the same thing need the same.

Rows come in batches, for speed; one batch cannot hold more than the whole may. A row becomes Python
objects only when it is fetched, and a text of 100,000 bytes with one emoji takes 400,000 then. So a
row of very many columns, if SQLite itself took memory for it, is counted while it is made.
"""

from __future__ import annotations

import reprlib
import sqlite3
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from sqlgym.database.limits import Limits
from sqlgym.database.sqlite_file import lenient_text
from toolgym.errors import ToolError
from toolgym.forks import renew_in_child

Memoized = TypeVar("Memoized")
MOST_MEMOIZED = 8
CACHE_ENTRIES = 4_096
CACHE_BYTES = 32 << 20
"""Results of one database that are kept: how many, and how much memory they may take."""


@dataclass(eq=False, repr=False)
class QueryResult:
    """The result of a statement.

    Attributes:
        columns: Their names, as SQLite gives them.
        rows: Tuples of None, int, float, str and bytes.
        truncated: Rows are missing at the end: there were more than the limits allow.
        columns_read: Lower-case names of the tables and views that it read, each with a column that
            it used there, or with "" where it used none.
        ticks: Thousands of virtual-machine steps that it took.
        size: Memory of the values, in bytes.
        memo: Values that were computed from it, such as its text; see `memoize`.
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
        """Lower-case names of the tables and views that it read."""
        return frozenset(table for table, _ in self.columns_read)

    def __repr__(self) -> str:
        more = ", truncated" if self.truncated else ""
        return f"<QueryResult: {len(self.rows)} rows of {reprlib.repr(self.columns)}{more}>"

    def memoize(self, key: Hashable, value: Memoized) -> Memoized:
        """Keep a value in `memo` for all callers that share this result, and return it.

        Args:
            key: Names it; of all values that are kept with a result, the newest few stay.
            value: A function of the key and of this result.
        """
        if len(self.memo) >= MOST_MEMOIZED:
            self.memo.clear()
        self.memo[key] = value
        return value


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
        """The last outcome of the statement, or None."""
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


def _size(outcome: QueryResult | ToolError) -> int:
    """Roughly the memory of an outcome, in bytes."""
    if isinstance(outcome, ToolError):
        return 1_000
    return 6_000 + outcome.size + 56 * len(outcome.rows)  # with its text, which is kept with it


_BATCH = 256
"""Rows fetched at a time."""
_BATCH_BYTES = 8_000_000
_COUNTED = 1_000_000
"""Bytes that SQLite must have taken before a row of many columns is counted."""
_ROW = 4
"""Results that a single row may be as large as; a larger one is left out."""


class Fetched(NamedTuple):
    """Rows as they were fetched.

    Attributes:
        columns: Their names; none if it was no statement.
        truncated: There are more than the limits allow.
        size: Memory of the values fetched, in bytes.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    truncated: bool
    size: int


class _RowTooLarge(Exception):
    """A row was given up while it was made."""


def fetch(
    cursor: sqlite3.Cursor, limits: Limits, taken: Callable[[], int], lenient: bool
) -> Fetched:
    """Fetch what a statement gives; a first row that is too large is an empty one, with its size.

    Args:
        cursor: On the first row, its connection's `text_factory` set.
        taken: The memory that SQLite took for the statement, in bytes.
        lenient: Show bytes that are no UTF-8 as U+FFFD.
    """
    columns = tuple([column[0] for column in cursor.description or ()])
    rows: list[tuple[Any, ...]] = []
    size, most, most_bytes = 0, limits.rows, limits.result_bytes
    largest = min(most_bytes, _BATCH_BYTES) // (limits.value_bytes * max(len(columns), 1))
    while True:
        asked = max(1, min(largest, most + 1 - len(rows), _BATCH))
        if largest == 0 and taken() > _COUNTED:
            cursor.connection.text_factory = _Counted(_ROW * most_bytes, lenient)
        try:
            batch = cursor.fetchmany(asked)
        except _RowTooLarge:
            return Fetched(columns, rows or [()], True, max(size, most_bytes + (not rows)))
        added = sum(map(sys.getsizeof, chain.from_iterable(batch)))
        if len(rows) + len(batch) > most or size + added > most_bytes:
            for row in batch:
                if len(rows) >= most or size > most_bytes:
                    return Fetched(columns, rows, True, size)
                more = sum(map(sys.getsizeof, row))
                if more > _ROW * most_bytes:
                    return Fetched(columns, rows or [()], True, max(size, most_bytes + (not rows)))
                rows.append(row)
                size += more
        else:
            rows += batch
            size += added
        if len(batch) < asked:
            return Fetched(columns, rows, False, size)


class _Counted:
    """Makes texts of one row, until they take too much memory."""

    def __init__(self, most_bytes: int, lenient: bool) -> None:
        self._left, self._lenient = most_bytes, lenient

    def __call__(self, data: bytes) -> str:
        try:
            text = lenient_text(data) if self._lenient else data.decode()
        except UnicodeDecodeError as error:  # as Python's module tells it
            raise sqlite3.OperationalError(f"Could not decode to UTF-8: {error}") from None
        self._left -= sys.getsizeof(text)
        if self._left < 0:
            raise _RowTooLarge
        return text
