"""Replies remembered on disk, in one SQLite file that many processes may share.

A reply is found by the server and all that was sent, the seed too, so that the same run costs
nothing the second time and another seed asks anew. An entry is one row, written in one transaction:
there is no half reply. Prompts are not stored, only their hash; faults are not stored at all.

A cache must not cost a run its replies: one that stops working is told in a warning, once, and left
aside.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import warnings
from pathlib import Path
from typing import Final

from toolgym.chat.reply import Reply
from toolgym.errors import ConfigurationError
from toolgym.forks import leave_to_parent, renew_in_child
from toolgym.sanitize import encodable

_BUSY_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.02  # before a lock is asked for again
_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT) WITHOUT ROWID"
)


class ReplyCache:
    """Replies by key.

    Args:
        file: The SQLite file; it and its folder are made on first use.

    Raises:
        ConfigurationError: The file cannot be opened or made, or is something else.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._works = True
        self._connection: sqlite3.Connection | None = None
        self.renew()
        renew_in_child(self)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._open()
        except (OSError, sqlite3.Error) as problem:
            raise ConfigurationError(
                f"replies cannot be remembered in {file}: {problem}. Name another file, or say"
                " cache=false."
            ) from problem

    def renew(self) -> None:
        """Begin without a connection; one of a parent stays as it is."""
        leave_to_parent(self._connection)
        self._connection = None
        self._lock = threading.Lock()

    def get(self, key: str) -> Reply | None:
        """The reply of this key, which costs nothing now; None if none can be read."""
        rows = self._execute("SELECT reply FROM replies WHERE key = ?", (key,))
        if not rows:
            return None
        try:
            text, calls, finish, read, written, estimated = json.loads(rows[0][0])
            return Reply(encodable(text), tuple(calls), finish, read, written, estimated, 0.0, True)
        except (ValueError, TypeError, AttributeError):  # another program wrote it
            return None

    def put(self, key: str, reply: Reply) -> None:
        """Remember a reply; the first one of a key stays."""
        row = [
            reply.text, reply.tool_calls, reply.finish,
            reply.tokens_in, reply.tokens_out, reply.estimated,
        ]  # fmt: skip
        self._execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", (key, json.dumps(row)))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _execute(self, sql: str, values: tuple[str, ...]) -> list[tuple[str, ...]]:
        with self._lock:
            if not self._works:
                return []
            try:
                return self._open().execute(sql, values).fetchall()
            except sqlite3.Error as problem:
                self._works = False
                warnings.warn(
                    f"the cache {self.file} does not work ({problem}); going on without it.",
                    RuntimeWarning,
                    stacklevel=4,
                )
                return []

    def _open(self) -> sqlite3.Connection:
        """The connection, opened if there is none."""
        if self._connection is None:
            connection = sqlite3.connect(
                self.file, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                _set_up(connection)
            except sqlite3.Error:
                connection.close()
                raise
            self._connection = connection
        return self._connection


def _set_up(connection: sqlite3.Connection) -> None:
    """Make the file a cache, if it is none yet.

    SQLite does not wait for a lock where the journal's kind is changed: of several processes that
    make one file at once, some are told at once that it is locked, and have to ask again.
    """
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as problem:
            # The low byte of an extended code says which kind it is one of.
            is_busy = problem.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_SECONDS)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(_TABLE)
