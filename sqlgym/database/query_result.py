"""What a statement gave, and the cache in which the rollouts of a group share it.

A result is never changed. What is worked out from it (its text, how close it comes to a gold) is
kept with it, since all who ask the same thing need the same.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from toolgym.errors import ToolError
from toolgym.forks import renew_in_child

Derived = TypeVar("Derived")
MOST_KEPT = 8
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
        size: Memory of the values, in bytes.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool
    tables_read: frozenset[str]
    ticks: int
    size: int = 0

    def kept(self, key: Hashable) -> Any:
        """What `once` keeps under this key; None if there is nothing."""
        kept: dict[Hashable, Any] | None = self.__dict__.get("_kept")
        return None if kept is None else kept.get(key)

    def once(self, key: Hashable, work: Callable[[], Derived]) -> Derived:
        """What `work` gives, worked out once for all who share this result.

        Args:
            key: Names it; of all that is kept with a result, the few newest stay.
            work: Depends on the key and on this result only.
        """
        kept: dict[Hashable, Any] = self.__dict__.setdefault("_kept", {})
        if key in kept:
            found: Derived = kept[key]
            return found
        if len(kept) >= MOST_KEPT:
            kept.clear()
        made = kept[key] = work()
        return made


class ResultCache:
    """Results by SQL text, the least recently used dropped first; safe for threads.

    The child of a fork begins with an empty one.

    Args:
        most_entries: How many are kept.
        most_bytes: How much memory they may take together, roughly.
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


def _size(outcome: QueryResult | ToolError) -> int:
    """Roughly the memory of an outcome, in bytes."""
    if isinstance(outcome, ToolError):
        return 1_000
    return 6_000 + outcome.size + 56 * len(outcome.rows)  # with its text, which is kept with it
