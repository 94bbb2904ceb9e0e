"""Rows of a statement, as many as its limits allow.

Rows come in batches, for speed; one batch cannot hold more than the whole may. A row becomes Python
objects only when it is fetched, and a text of 100,000 bytes with one emoji takes 400,000 then. So a
row of very many columns, if SQLite itself took memory for it, is counted while it is made.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

from sqlgym.database.limits import Limits

_BATCH = 256
"""Rows fetched at a time."""
_BATCH_BYTES = 8_000_000
_COUNTED = 1_000_000
"""Bytes that SQLite must have taken before a row of many columns is counted."""
_ROW = 4
"""Results that a single row may be as large as; a larger one is left out."""


class Fetched(NamedTuple):
    """What a statement gave.

    Attributes:
        columns: Their names; none if it was no statement.
        rows: The rows fetched.
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
        limits: How many rows and bytes.
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


def lenient_text(data: bytes) -> str:
    """Text that need not be UTF-8."""
    return data.decode("utf-8", "replace")


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
