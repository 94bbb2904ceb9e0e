"""What results depend on besides their input: SQLite and this package as they stand.

What is kept in the cache is kept under a name that this hash is part of, so that whatever could
change it changes its name.
"""

from __future__ import annotations

import functools
import hashlib
import sqlite3
from pathlib import Path


@functools.cache
def source_state(pattern: str) -> str:
    """A hash of the version of SQLite and of this package's own files.

    Args:
        pattern: Which files, as seen from the package: `*.py`, or `**/*.py` for its folders too.
    """
    digest = hashlib.sha256(sqlite3.sqlite_version.encode())
    for path in sorted(Path(__file__).parent.glob(pattern)):
        digest.update(path.read_bytes())
    return digest.hexdigest()
