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
def source_state(but: str = "") -> str:
    """A hash of the version of SQLite and of this package's own files.

    Args:
        but: A folder of the package that decides nothing here.
    """
    digest = hashlib.sha256(sqlite3.sqlite_version.encode())
    package = Path(__file__).parents[1]
    for path in sorted(package.glob("**/*.py")):
        if path.relative_to(package).parts[0] != but:
            digest.update(path.read_bytes())
    return digest.hexdigest()
