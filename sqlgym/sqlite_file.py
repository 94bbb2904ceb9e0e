"""An SQLite file as it lies on disk: opened for reading, without leaving a trace.

`immutable=1` takes no lock and makes no journal, so the folder stays as it is. The price: SQLite
then ignores a write-ahead log beside the file and would read old rows without a word. So a file
with an unmerged log is refused, with the command that merges it. A file in WAL mode without one is
fine.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import toolgym.sqlite_forks  # noqa: F401  (a child may use SQLite too)
from toolgym.errors import EnvironmentFault

HEADER = b"SQLite format 3\0"
"""The first 16 bytes of every SQLite database."""


def connect_readonly(path: Path) -> sqlite3.Connection:
    """Open a file for reading, as it is on disk: no lock, no journal, no log is looked at or made.

    Raises:
        EnvironmentFault: The file is missing or unreadable, is not SQLite, or has an unmerged log.
    """
    log = path.with_name(path.name + "-wal")
    try:
        with path.open("rb") as file:
            header = file.read(16)
        unmerged = log.exists() and log.stat().st_size > 0
    except OSError as error:
        raise EnvironmentFault(
            f"The database file {path} cannot be read: {error.strerror}.",
            "Check the path and its rights.",
        ) from error
    if header != HEADER:
        raise EnvironmentFault(f"{path} is not an SQLite database.", "Remove or replace the file.")
    if unmerged:
        raise EnvironmentFault(
            f"{path} has changes in {log.name} that are not merged, and would be read stale.",
            f'Merge them first: sqlite3 {path} "PRAGMA wal_checkpoint(TRUNCATE)"',
        )
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        return sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=0
        )
    except sqlite3.Error as error:
        raise broken_file(path, error) from error


def broken_file(path: Path, error: Exception) -> EnvironmentFault:
    """The file exists, but SQLite cannot read it."""
    return EnvironmentFault(
        f"The database {path} cannot be read: {error}.", "Restore the file, or leave its tasks out."
    )


def quoted(name: str) -> str:
    """A name as an SQL identifier, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'
