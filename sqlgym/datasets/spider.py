"""Reads folders in the Spider layout and in the BIRD layout.

* `tables.json` (optional): Foreign keys that complement those declared in the databases.
* `train_spider.json` and `train_others.json`, or `train.json`: The split "train".
* `dev.json`, `test.json`, or any other `NAME.json`: The split of that name.
* `NAME.jsonl`: The split NAME, with one entry per line.
* `database/<db_id>/<db_id>.sqlite`: The databases. The folder can also be named `dev_databases`,
  `train_databases` or `test_database`.

The folder may also contain BIRD's folders `train/` and `dev_20240627/`. An entry has `db_id`,
`question` and the gold SQL as `query` (Spider) or `SQL` (BIRD). `evidence`, `id`, and `hardness` or
`difficulty` are optional. An entry with `"answerable": false` is a question that the database
cannot answer. Such an entry needs no gold query. When a folder is read, only its structure is
checked: no gold SQL runs, and only the first bytes of each database file are read.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from sqlgym.database.schema import ForeignKey
from sqlgym.database.sqlite_file import HEADER
from sqlgym.datasets.rows import JsonLines, parse_json
from sqlgym.tasks.task import SqlTask
from toolgym.errors import ConfigurationError, TaskRefused

ENDINGS: Final = (".sqlite", ".sqlite3", ".db")
_TRAIN: Final = ("train_spider", "train_others", "train")
_SCHEMAS: Final = ("tables", "train_tables", "dev_tables", "test_tables")
Keys = Mapping[str, tuple[ForeignKey, ...]]


class DatabaseFiles:
    """Finds the files of databases by their ids, and caches the results.

    A file can be in the folder or in one of the subfolders of Spider and BIRD. Its path there is
    `<db_id>/<db_id>.sqlite` or `<db_id>.sqlite`. The suffix may also be `.sqlite3` or `.db`.

    Args:
        folder: The folder of the data set.
        split: The split whose folders are searched first.
    """

    def __init__(self, folder: Path, split: str) -> None:
        own = ("database", f"{split}_databases", f"{split}_database", "databases")
        others = ("dev_databases", "train_databases", "test_databases", ".")
        self._folders = [folder / name for name in dict.fromkeys(own + others)]
        self._found: dict[str, Path | tuple[str, str]] = {}

    def find(self, db_id: str) -> Path | tuple[str, str]:
        """Return the database file, or a code and a reason if tasks on the database must be
        rejected.
        """
        if db_id not in self._found:
            self._found[db_id] = self._search(db_id)
        return self._found[db_id]

    def _search(self, db_id: str) -> Path | tuple[str, str]:
        if not db_id.isprintable() or Path(db_id).name != db_id:
            return "unknown_database", f"the db_id {db_id[:80]!r} is not the name of a database."
        for folder in self._folders:
            for ending in ENDINGS:
                for path in (folder / db_id / f"{db_id}{ending}", folder / f"{db_id}{ending}"):
                    if (header := _header(path)) == HEADER:
                        return path
                    if header is not None:
                        return "not_a_database", f"{path} is not an SQLite database."
        place = next((folder for folder in self._folders if folder.is_dir()), self._folders[0])
        return "unknown_database", f"there is no database {db_id!r} in {place}."


def _header(path: Path) -> bytes | None:
    """Return the first bytes of a file, or None if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(len(HEADER))
    except OSError:
        return None


def is_database(path: Path) -> bool:
    """Return whether the first bytes of a file are those of an SQLite database."""
    return _header(path) == HEADER


def database_files(folder: Path) -> list[Path]:
    """Return the files with a database suffix in a folder and in its subfolders, up to two levels
    deep.
    """
    paths = (path for pattern in ("*", "*/*", "*/*/*") for path in folder.glob(pattern))
    return sorted(path for path in paths if path.suffix in ENDINGS and path.is_file())


def splits_of(folder: Path) -> dict[str, tuple[Path, ...]]:
    """Return the files of each split of a folder; `train`, `dev` and `test` come first.

    A split of BIRD may be in its own folder, `NAME/` or `NAME_DATE/`. If there are several dates,
    the latest one is used.
    """
    found = _splits_in(folder)
    for part in sorted((path for path in folder.iterdir() if path.is_dir()), reverse=True):
        for name, files in _splits_in(part).items():
            if re.fullmatch(rf"{re.escape(name)}(_[0-9].*)?", part.name):
                found.setdefault(name, files)
    known = [name for name in ("train", "dev", "test") if name in found]
    return {name: found[name] for name in dict.fromkeys([*known, *found])}


def _splits_in(folder: Path) -> dict[str, tuple[Path, ...]]:
    files = {path.stem: path for path in sorted(folder.glob("*.json"))}
    train = [files.pop(name) for name in _TRAIN if name in files]
    if len(train) > 1 and train[-1].stem == "train":  # Spider's two files take precedence
        train.pop()
    lines = {path.stem: (path,) for path in sorted(folder.glob("*.jsonl"))}
    splits = {name: (path,) for name, path in files.items() if name not in _SCHEMAS}
    return {**lines, **({"train": tuple(train)} if train else {}), **splits}


def no_split(folder: Path, split: str, name: str) -> ConfigurationError:
    """Return the error for a folder that lacks a split.

    Args:
        folder: The folder.
        split: The split.
        name: Name of the data set in the message.
    """
    if splits := splits_of(folder):
        listed = ", ".join(map(repr, splits))
        return ConfigurationError(
            f"{name} has no split {split!r}: it has {listed}. Use one of these."
        )
    return ConfigurationError(
        f"{folder} has no questions: it needs a {split}.json or {split}.jsonl with db_id, question"
        " and query."
    )


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        ConfigurationError: The file cannot be read or parsed.
    """
    try:
        return parse_json(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise ConfigurationError(f"{path} {error}.") from None


def read_entries(file: Path) -> list[Any]:
    """Read the entries of one file of a split: a JSON list or JSON lines.

    Raises:
        ConfigurationError: The file cannot be read, or has a different structure.
    """
    if file.suffix == ".jsonl":
        try:
            return list(JsonLines(file))
        except ValueError as problem:
            raise ConfigurationError(f"a line of {file} {problem}.") from None
    entries = read_json(file)
    if not isinstance(entries, list):
        raise ConfigurationError(f"{file} is not a list of entries.")
    return entries


def read_split(
    files: tuple[Path, ...], split: str, databases: Path
) -> tuple[list[SqlTask], dict[str, TaskRefused]]:
    """Read the JSON files of a split. Entries that cannot be used are rejected.

    Args:
        files: The files of the split.
        split: Name of the split, which is part of the ids of entries without an `id`.
        databases: The folder with the databases.

    Raises:
        ConfigurationError: A file cannot be read, or no entry can be used.
    """
    found, keys = DatabaseFiles(databases, split), foreign_keys_of(files[0].parent)
    tasks: dict[str, SqlTask] = {}
    refused: dict[str, TaskRefused] = {}
    number = itertools.count()
    for file in files:
        for place, entry in enumerate(read_entries(file)):
            name, where = f"{split}-{next(number):05d}", f"{file}, entry {place}"
            try:
                task = read_entry(entry, own_id(entry) or name, found, keys, where)
                if task.id in tasks:
                    reason = f"{where}: another entry has the id {task.id!r}."
                    raise TaskRefused(name, "duplicate_id", reason)
                tasks[task.id] = task
            except TaskRefused as refusal:
                refused[refusal.task_id] = refusal.with_traceback(None)
    if not tasks:
        first = next(iter(refused.values()), None)
        why = first.reason if first else f"{files[0]} is an empty list."
        raise ConfigurationError(f"split {split!r} of {files[0].parent} has no usable entry: {why}")
    return list(tasks.values()), refused


def own_id(entry: Any) -> str:
    """Return the `id` of an entry as text, or "" if it has none."""
    value = entry.get("id") if isinstance(entry, dict) else None
    return str(value).strip() and str(value) if isinstance(value, str | int) else ""


def read_entry(entry: Any, name: str, found: DatabaseFiles, keys: Keys, where: str) -> SqlTask:
    """Return an entry as a task.

    Args:
        entry: The parsed JSON.
        name: The id of the task.
        found: Finds the file of the database.
        keys: Foreign keys that the database files do not declare, by database.
        where: File and position of the entry, which are stated if the entry is rejected.

    Raises:
        TaskRefused: The entry cannot be used.
    """
    if not isinstance(entry, dict):
        raise TaskRefused(name, "not_an_object", f"{where}: it is not a JSON object.")
    answerable = entry.get("answerable", True)
    if not isinstance(answerable, bool):
        reason = f"{where}: 'answerable' must be true or false, got {answerable!r}."
        raise TaskRefused(name, "not_a_boolean", reason)
    texts: dict[str, Any] = {"query": entry.get("query") or entry.get("SQL")} if answerable else {}
    texts |= {key: entry.get(key) for key in ("db_id", "question")}
    for key, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            reason = f"{where}: {key!r} is missing or is not a text."
            raise TaskRefused(name, "missing_key", reason)
    database = found.find(texts["db_id"])
    if isinstance(database, tuple):
        raise TaskRefused(name, database[0], f"{where}: {database[1]}")
    hardness, evidence = entry.get("hardness", entry.get("difficulty")), entry.get("evidence")
    return SqlTask(
        id=name,
        question=texts["question"],
        item=texts["db_id"],
        gold_sql=texts.get("query", ""),
        database=database,
        hardness=hardness if isinstance(hardness, str) else None,
        evidence=evidence if isinstance(evidence, str) else "",
        foreign_keys=keys.get(texts["db_id"], ()),
        answerable=answerable,
    )


def foreign_keys_of(folder: Path) -> Keys:
    """Return the well-formed foreign keys in the `tables.json` of a folder, by database.

    Raises:
        ConfigurationError: A file cannot be read.
    """
    keys: dict[str, tuple[ForeignKey, ...]] = {}
    for name in _SCHEMAS:
        file = folder / f"{name}.json"
        entries = read_json(file) if file.is_file() else []
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict) and isinstance(entry.get("db_id"), str):
                keys[entry["db_id"]] = tuple(_keys_of(entry))
    return keys


def _keys_of(entry: Mapping[str, Any]) -> Iterator[ForeignKey]:
    tables: Any = entry.get("table_names_original")
    columns: Any = entry.get("column_names_original")
    pairs = entry.get("foreign_keys")
    for pair in pairs if isinstance(pairs, list) else ():
        try:
            (table, column), (to_table, to_column) = (columns[place] for place in pair)
            names = tables[table], column, tables[to_table], to_column
        except (TypeError, ValueError, LookupError):
            continue
        if all(isinstance(name, str) for name in names):
            yield ForeignKey(*names)
