"""Cache of replies on disk, in one SQLite file that several processes may share.

The key of a reply consists of the server and the complete request, including the seed. A repeated
run therefore costs nothing, whereas a run with a different seed sends new requests. Prompts are
stored only as hashes, and faults are not stored. If the cache fails, a warning is issued and the
request is sent to the server.
"""

from __future__ import annotations

import json
import sqlite3
import warnings
from contextlib import closing
from dataclasses import astuple
from pathlib import Path
from typing import Any, Final

from toolgym.chat.reply import Reply
from toolgym.errors import ConfigurationError
from toolgym.sanitize import encodable

_BUSY_SECONDS: Final = 30.0
_TABLE: Final = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT)"


class ReplyCache:
    """Cache of replies by key.

    Each access opens the file, so threads and forked processes share no connection.

    Args:
        file: The SQLite file. The file and its folder are created if they do not exist.

    Raises:
        ConfigurationError: The file cannot be opened or created, or is not a SQLite file.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._execute(_TABLE)
        except (OSError, sqlite3.Error) as problem:
            raise ConfigurationError(
                f"replies cannot be cached in {file}: {problem}. Name another file, or set"
                " cache=false."
            ) from problem

    def get(self, key: str) -> Reply | None:
        """Return the reply with this key, or None if no readable reply is stored."""
        try:
            rows = self._execute("SELECT reply FROM replies WHERE key = ?", key)
            if rows:
                text, calls, finish, read, written, estimated = json.loads(rows[0][0])
                return Reply(encodable(text), tuple(calls), finish, read, written, estimated, True)
        except sqlite3.Error as problem:
            self._warn(problem)
        except (ValueError, TypeError, AttributeError):  # another program has written the row
            pass
        return None

    def put(self, key: str, reply: Reply) -> None:
        """Store a reply. If the key already exists, the earlier reply is kept."""
        *row, _ = astuple(reply)
        try:
            self._execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", key, json.dumps(row))
        except sqlite3.Error as problem:
            self._warn(problem)

    def _execute(self, sql: str, *values: str) -> list[Any]:
        with closing(sqlite3.connect(self.file, timeout=_BUSY_SECONDS)) as connection, connection:
            return connection.execute(sql, values).fetchall()

    def _warn(self, problem: sqlite3.Error) -> None:
        warnings.warn(
            f"the cache {self.file} does not work ({problem}); continuing without it.",
            RuntimeWarning,
            stacklevel=4,
        )
