"""An SQLite file as it lies on disk: opened for reading, without leaving a trace.

`immutable=1` takes no lock and makes no journal, so the folder stays as it is. The price: SQLite
then ignores a write-ahead log beside the file and would read old rows without a word. So a file
with an unmerged log is refused, with the command that merges it. A file in WAL mode without one is
fine.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlgym.database.memory import is_used_up
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
    """Return the file exists, but SQLite cannot read it."""
    return EnvironmentFault(
        f"The database {path} cannot be read: {error}.", "Restore the file, or leave its tasks out."
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
        sqlite3.SQLITE_INTERRUPT,  # the meter's own interrupts are told apart before
    }
)


def machine_fault(error: Exception, path: Path, stopped: bool) -> EnvironmentFault | None:
    """Return the fault behind an error that is not the agent's; None if it is the agent's.

    Args:
        stopped: The statement was ended on purpose.
    """
    if isinstance(error, MemoryError) and not stopped and is_used_up():
        return EnvironmentFault(
            "SQLite has no memory left in this process, and it is not one statement that has it.",
            "Close other connections to SQLite, or raise the limit that was set on its heap.",
        )
    if result_code(error) in _MACHINE and not stopped:
        return broken_file(path, error)
    return None


def result_code(error: Exception) -> int:
    """SQLite's primary result code; 0 where the error comes from Python's module."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def lenient_text(data: bytes) -> str:
    """Text that need not be UTF-8."""
    return data.decode("utf-8", "replace")


def quoted(name: str) -> str:
    """Return a name as an SQL identifier, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'
