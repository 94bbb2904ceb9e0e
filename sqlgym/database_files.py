"""Where the file of a database lies, by its id, in all the layouts that data sets come in.

    FOLDER/database/<db_id>/<db_id>.sqlite            Spider; also databases/, test_database/
    FOLDER/dev_databases/<db_id>/<db_id>.sqlite       BIRD; also train_databases/
    FOLDER/<db_id>/<db_id>.sqlite, FOLDER/<db_id>.sqlite

The ending may also be `.sqlite3` or `.db`. Of a file the first bytes are read, once, when its
database is first asked for; nothing is opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sqlgym.sqlite_file import HEADER

ENDINGS = (".sqlite", ".sqlite3", ".db")
_FOLDERS = ("database", "{split}_databases", "{split}_database", "databases")
_OTHER_FOLDERS = ("dev_databases", "train_databases", "test_databases", ".")


class Missing(NamedTuple):
    """Why a database cannot be used: `unknown_database` or `not_a_database`, and a sentence."""

    code: str
    reason: str


class DatabaseFiles:
    """The database files of a data set.

    Args:
        folder: Where they lie, see above.
        split: Whose folder comes first.
    """

    def __init__(self, folder: Path, split: str) -> None:
        names = dict.fromkeys([name.format(split=split) for name in _FOLDERS] + [*_OTHER_FOLDERS])
        self._folders = [folder / name for name in names]
        self._found: dict[str, Path | Missing] = {}

    def find(self, db_id: str) -> Path | Missing:
        """The file, or what is wrong with it."""
        if db_id not in self._found:
            self._found[db_id] = self._look(db_id)
        return self._found[db_id]

    def _look(self, db_id: str) -> Path | Missing:
        if "\0" in db_id or Path(db_id).name != db_id:
            return Missing("unknown_database", f"the db_id {db_id[:80]!r} is no database's name.")
        for path in self._candidates(db_id):
            try:
                with path.open("rb") as file:
                    header = file.read(len(HEADER))
            except OSError:
                continue
            if header == HEADER:
                return path
            return Missing("not_a_database", f"{path} is not an SQLite database.")
        place = next((folder for folder in self._folders if folder.is_dir()), self._folders[0])
        return Missing("unknown_database", f"there is no database {db_id!r} in {place}.")

    def _candidates(self, db_id: str) -> Iterator[Path]:
        for folder in self._folders:
            for ending in ENDINGS:
                yield folder / db_id / f"{db_id}{ending}"
                yield folder / f"{db_id}{ending}"


def count_databases(folder: Path) -> int:
    """How many database files lie in a folder, or up to two folders deeper."""
    return sum(
        path.suffix in ENDINGS and path.is_file()
        for pattern in ("*", "*/*", "*/*/*")
        for path in folder.glob(pattern)
    )
