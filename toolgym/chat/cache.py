"""Replies remembered on disk, in one SQLite file that many processes may share.

A reply is found by the server and all that was sent, the seed too, so the same run costs nothing
the second time and another seed asks anew. Prompts are not stored, only their hash; faults are not
stored at all. A cache that stops working costs no reply: there is a warning, and the server is
asked.
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
    """Replies by key. Each access opens the file anew, so threads and forks share nothing.

    Args:
        file: The SQLite file; it and its folder are made if they are missing.

    Raises:
        ConfigurationError: The file cannot be opened or made, or is something else.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._execute(_TABLE)
        except (OSError, sqlite3.Error) as problem:
            raise ConfigurationError(
                f"replies cannot be remembered in {file}: {problem}. Name another file, or say"
                " cache=false."
            ) from problem

    def get(self, key: str) -> Reply | None:
        """The reply of this key; None if none can be read."""
        try:
            rows = self._execute("SELECT reply FROM replies WHERE key = ?", key)
            if rows:
                text, calls, finish, read, written, estimated = json.loads(rows[0][0])
                return Reply(encodable(text), tuple(calls), finish, read, written, estimated, True)
        except sqlite3.Error as problem:
            self._warn(problem)
        except (ValueError, TypeError, AttributeError):  # another program wrote it
            pass
        return None

    def put(self, key: str, reply: Reply) -> None:
        """Remember a reply; the first one of a key stays."""
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
            f"the cache {self.file} does not work ({problem}); going on without it.",
            RuntimeWarning,
            stacklevel=4,
        )
