"""Opens SQLite files for reading without leaving files behind.

With `immutable=1`, SQLite takes no lock and creates no journal, so the folder is not modified. In
this mode SQLite ignores a write-ahead log and would return old rows. Therefore a file with an
unmerged log is rejected, and the error names the command that merges it. A file in WAL mode without
a log is accepted.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlgym.database.memory import is_used_up
from toolgym.errors import EnvironmentFault

HEADER = b"SQLite format 3\0"
"""The first 16 bytes of every SQLite database."""


def connect_readonly(path: Path) -> sqlite3.Connection:
    """Open a file for reading without locks, journals or write-ahead logs.

    Raises:
        EnvironmentFault: The file is missing or unreadable, is not an SQLite database, or has an
            unmerged write-ahead log.
    """
    log = path.with_name(path.name + "-wal")
    try:
        with path.open("rb") as file:
            header = file.read(16)
        unmerged = log.exists() and log.stat().st_size > 0
    except OSError as error:
        raise EnvironmentFault(
            f"The database file {path} cannot be read: {error.strerror}.",
            "Check the path and its permissions.",
        ) from error
    if header != HEADER:
        raise EnvironmentFault(f"{path} is not an SQLite database.", "Remove or replace the file.")
    if unmerged:
        raise EnvironmentFault(
            f"{path} has changes in {log.name} that are not merged, so its rows are outdated.",
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
    """Return the `EnvironmentFault` for a file that exists but that SQLite cannot read."""
    return EnvironmentFault(
        f"The database {path} cannot be read: {error}.", "Restore the file, or remove its tasks."
    )


_MACHINE = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_INTERNAL,
        sqlite3.SQLITE_SCHEMA,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_MISUSE,
        sqlite3.SQLITE_INTERRUPT,  # interrupts by the progress handler are recognized before this
    }
)


def machine_fault(error: Exception, path: Path, stopped: bool) -> EnvironmentFault | None:
    """Return the `EnvironmentFault` for an error, or None if the SQL caused the error.

    Args:
        stopped: Whether a limit ended the statement.
    """
    if isinstance(error, MemoryError) and not stopped and is_used_up():
        return EnvironmentFault(
            "SQLite is out of memory in this process, and no single statement has used it up.",
            "Close other connections to SQLite, or raise the limit that was set on its heap.",
        )
    if result_code(error) in _MACHINE and not stopped:
        return broken_file(path, error)
    return None


def result_code(error: Exception) -> int:
    """Return SQLite's primary result code, or 0 if the error comes from Python's `sqlite3`."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def lenient_text(data: bytes) -> str:
    """Decode text, replacing invalid UTF-8."""
    return data.decode("utf-8", "replace")


def quoted(name: str) -> str:
    """Return a name as a quoted SQL identifier, whatever characters it contains."""
    return '"' + name.replace('"', '""') + '"'
