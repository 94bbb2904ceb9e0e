"""Writing a folder in the Spider layout, whole or not at all.

The bundled and the generated data sets take the same way to disk, and come out as what a person
would download: `tables.json`, `train_spider.json`, `dev.json`, perhaps `test.json`, and
`database/<db_id>/<db_id>.sqlite`. So the loader needs no second path, and other tools for Spider
read these folders too.

A folder is written under a temporary name beside its place and moved there by one rename. Of
several processes that start at once each builds its own and one rename wins; the others find the
place taken by the same content and use that. `build.json` lists every file with its size: a cache
from which a cleaner took a file is seen, and mended file by file, so that who reads the rest is
not disturbed.

The databases are written by `sqlite-utils` in memory and put to disk by `VACUUM INTO`: rows in
source order, 4,096-byte pages, no WAL, and the same bytes whenever the version of SQLite is the
same.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from toolgym.errors import EnvironmentFault

FORMAT_VERSION: Final = 1  # part of every cache key: raise it when what this module writes changes
PAGE_SIZE: Final = 4096
MANIFEST: Final = "build.json"

ColumnType = Literal["INTEGER", "REAL", "TEXT", "DATE", "TIME"]
Value = int | float | str | None

# SQLite has no dates: they are ISO text there, and "time" to those who read `tables.json`.
SQLITE_TYPES: Final[Mapping[ColumnType, str]] = {
    "INTEGER": "INTEGER",
    "REAL": "REAL",
    "TEXT": "TEXT",
    "DATE": "TEXT",
    "TIME": "TEXT",
}
SPIDER_TYPES: Final[Mapping[ColumnType, str]] = {
    "INTEGER": "number",
    "REAL": "number",
    "TEXT": "text",
    "DATE": "time",
    "TIME": "time",
}


@dataclass(frozen=True)
class ColumnSource:
    """One column: its type, whether NULL is allowed, and the (table, column) that it points to."""

    name: str
    type: ColumnType
    nullable: bool = True
    references: tuple[str, str] | None = None


@dataclass(frozen=True)
class TableSource:
    """One table with its rows, each a tuple in the order of the columns."""

    name: str
    columns: tuple[ColumnSource, ...]
    primary_key: tuple[str, ...] = ()
    rows: tuple[tuple[Value, ...], ...] = ()


@dataclass(frozen=True)
class DatabaseSource:
    """One database: its tables, a table after those that it points to."""

    db_id: str
    tables: tuple[TableSource, ...]


@dataclass(frozen=True)
class FolderSource:
    """All that goes into one folder; an entry has `db_id`, `question`, `query`, and more keys.

    `more` is further splits by name.
    """

    databases: tuple[DatabaseSource, ...]
    train: tuple[Mapping[str, Any], ...]
    dev: tuple[Mapping[str, Any], ...]
    test: tuple[Mapping[str, Any], ...] = ()
    more: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict, kw_only=True)


def install(place: Path, read: Callable[[], FolderSource]) -> Path:
    """Return `place` holding the folder, writing it first if it is not there in full.

    Args:
        place: Where the folder belongs; its name carries the hash of its content.
        read: Gives the content; called only when something must be written.

    Raises:
        EnvironmentFault: `place` cannot be written, or `read` found its source damaged.
    """
    if is_complete(place):
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{place.name}-", dir=place.parent, ignore_cleanup_errors=True
        ) as name:
            built = Path(name) / "built"
            write_folder(built, read())
            _move(built, place)
    except (OSError, sqlite3.Error) as error:
        raise EnvironmentFault(
            f"The data set cannot be built in {place}: {error}.",
            "Make that folder writable, or point TOOLGYM_CACHE at one that is.",
        ) from error
    return place


def is_complete(place: Path) -> bool:
    """Whether every file that was built in `place` is still there, at its size."""
    try:
        files: dict[str, int] = json.loads((place / MANIFEST).read_text("utf-8"))["files"]
        return all((place / name).stat().st_size == size for name, size in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False  # unreadable in whatever way means: build it again


def _move(built: Path, place: Path) -> None:
    """Put the built folder in its place; if a folder is there already, make that one whole."""
    try:
        built.rename(place)
        return
    except OSError:
        if not place.is_dir():
            raise
    if is_complete(place):
        return  # another process was faster, with the same content
    names = sorted(path.relative_to(built) for path in built.rglob("*") if path.is_file())
    for name in [*(name for name in names if name.name != MANIFEST), Path(MANIFEST)]:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (built / name).replace(place / name)


def write_folder(folder: Path, source: FolderSource) -> None:
    """Write a new folder in the Spider layout. Raises `OSError` or `sqlite3.Error` as they come."""
    folder.mkdir(parents=True)
    for database in source.databases:
        path = folder / "database" / database.db_id / f"{database.db_id}.sqlite"
        path.parent.mkdir(parents=True)
        write_database(path, database.tables)
    write_json(folder / "tables.json", [spider_schema(one) for one in source.databases])
    write_json(folder / "train_spider.json", source.train)
    write_json(folder / "dev.json", source.dev)
    if source.test:
        write_json(folder / "test.json", source.test)
    for split, entries in source.more.items():
        write_json(folder / f"{split}.json", entries)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}
    write_json(folder / MANIFEST, {"format": FORMAT_VERSION, "files": sizes})


def write_json(path: Path, value: object) -> None:
    """Write a JSON file as the data sets have it: UTF-8, one value a line."""
    path.write_bytes((json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode())


def write_database(path: Path, tables: Sequence[TableSource]) -> None:
    """Write a new SQLite file: keys declared, rows in their order, the same bytes every time."""
    with in_memory(tables) as connection:
        connection.execute("VACUUM INTO ?", [str(path)])


@contextmanager
def in_memory(tables: Sequence[TableSource]) -> Iterator[sqlite3.Connection]:
    """A database with these tables in memory, which is closed at the end of the context."""
    # Imported here: it imports pandas where that is installed, and most calls build nothing.
    from sqlite_utils import Database

    database = Database(memory=True)
    try:
        database.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        for source in tables:
            table = database.table(source.name)
            table.create(
                {column.name: SQLITE_TYPES[column.type] for column in source.columns},
                pk=_primary_key(source),
                not_null={column.name for column in source.columns if not column.nullable} or None,
                foreign_keys=[
                    (column.name, *column.references)
                    for column in source.columns
                    if column.references is not None
                ],
            )
            names = [column.name for column in source.columns]
            table.insert_all(dict(zip(names, row, strict=True)) for row in source.rows)
        database.conn.commit()
        yield database.conn
    finally:
        database.close()


def _primary_key(source: TableSource) -> str | tuple[str, ...] | None:
    """A single column is named alone: as a tuple, an INTEGER key would not be SQLite's rowid."""
    return source.primary_key[0] if len(source.primary_key) == 1 else source.primary_key or None


def spider_schema(database: DatabaseSource) -> dict[str, Any]:
    """One entry of `tables.json`. Columns are numbered through all tables; number 0 is `*`.

    Every column of a composite key is listed in `primary_keys` by its own number, since Spider's
    format has flat numbers only.
    """
    columns = [(t, column) for t, table in enumerate(database.tables) for column in table.columns]
    tables = [table.name for table in database.tables]
    number = {(tables[t], column.name): n for n, (t, column) in enumerate(columns, start=1)}
    return {
        "column_names": [[-1, "*"], *([t, _plain(column.name)] for t, column in columns)],
        "column_names_original": [[-1, "*"], *([t, column.name] for t, column in columns)],
        "column_types": ["text", *(SPIDER_TYPES[column.type] for _, column in columns)],
        "db_id": database.db_id,
        "foreign_keys": [
            [number[tables[t], column.name], number[column.references]]
            for t, column in columns
            if column.references is not None
        ],
        "primary_keys": [number[t.name, key] for t in database.tables for key in t.primary_key],
        "table_names": [_plain(name) for name in tables],
        "table_names_original": tables,
    }


def _plain(name: str) -> str:
    return name.replace("_", " ").lower()
