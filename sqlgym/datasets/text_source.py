r"""Reading a database from text: one JSON for its schema, one CSV per table, questions beside them.

This is the form in which the bundled databases are kept, because a person can read it and a diff
can show it: `<db_id>/schema.json` has the tables in order with columns, keys, and what they mean
in words; `<db_id>/<table>.csv` the rows; `train.json`, `dev.json` and `test.json`, or some of them,
the questions. A data set that takes its databases from several folders is described by a
`dataset.json`, see below.

In CSV `\N` is NULL, and types come from the schema, never from guessing. A cell that does not fit
its column, a key that occurs twice or points nowhere, a question without its database: each is an
`EnvironmentFault` that names the file and the place in it. Nothing is repaired, since whatever is
wrong here would be wrong in the gold answers too.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from datetime import date, time
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from sqlgym.datasets.layout import (
    ColumnSource,
    ColumnType,
    DatabaseSource,
    FolderSource,
    TableSource,
    Value,
)
from toolgym.errors import EnvironmentFault

NULL: Final = r"\N"
SPLITS: Final = ("train", "dev")
"""Those of a folder that a `dataset.json` takes databases from; any other may have these:"""
PARTS: Final = ("train", "dev", "test")
_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_REAL: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")

T = TypeVar("T")


class Strict(BaseModel):
    """No key that is not known, no value of another type than written."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ColumnEntry(Strict):
    """A column in `schema.json`; `references` is "table.column" of a table above or of this one."""

    name: str
    type: ColumnType
    description: str
    nullable: bool = False
    references: str | None = None


class TableEntry(Strict):
    """A table in `schema.json`."""

    name: str
    description: str
    primary_key: list[str]
    columns: list[ColumnEntry]


class SchemaEntry(Strict):
    """The whole of `schema.json`."""

    description: str
    tables: list[TableEntry]


class QuestionEntry(Strict):
    """One question of `train.json`, `dev.json` or `test.json`."""

    id: str
    db_id: str
    question: str
    query: str
    hardness: Literal["easy", "medium", "hard", "extra"]


def read_source(source: Path) -> FolderSource:
    """Read and check all databases and questions under a folder.

    Raises:
        EnvironmentFault: A file is missing or damaged; the message names it and the place in it.
    """
    folders = sorted(path.parent for path in source.glob("*/schema.json"))
    if not folders:
        raise damaged(source, "it has no database: there is no */schema.json")
    databases = tuple(map(read_database, folders))
    paths = {split: source / f"{split}.json" for split in PARTS}
    by_split = {split: read_questions(path) for split, path in paths.items() if path.is_file()}
    if not by_split:
        raise damaged(source, f"it has no questions: there is none of {', '.join(PARTS)} (.json)")
    check_questions(
        {paths[split]: questions for split, questions in by_split.items()},
        {database.db_id for database in databases},
    )
    parts = {
        split: tuple(one.model_dump() for one in questions) for split, questions in by_split.items()
    }
    return FolderSource(databases, *(parts.get(split, ()) for split in PARTS))


def check_questions(files: Mapping[Path, list[QuestionEntry]], db_ids: set[str]) -> None:
    """Make sure that every question has its database, and an id of its own.

    Raises:
        EnvironmentFault: One has not; the message names the file and its place there.
    """
    seen: set[str] = set()
    for path, questions in files.items():
        for n, question in enumerate(questions):
            if question.db_id not in db_ids:
                raise damaged(path, f"no database {question.db_id!r}", str(n))
            if question.id in seen:
                raise damaged(path, f"id {question.id!r} occurs twice", str(n))
            seen.add(question.id)


def read_bytes(path: Path) -> bytes:
    """The content of a file of the source. Raises `EnvironmentFault` when it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise damaged(path, f"it cannot be read ({error.strerror})") from error


def damaged(path: Path, why: str, place: str = "") -> EnvironmentFault:
    """The fault that is raised for a damaged source file."""
    where = f"{path}, {place}" if place else str(path)
    return EnvironmentFault(f"{where}: {why}.", "Restore the file, or install toolgym again.")


def read_questions(path: Path) -> list[QuestionEntry]:
    """The questions of one file. Raises `EnvironmentFault` where it is missing or damaged."""
    return validated(path, TypeAdapter(list[QuestionEntry]))


def validated(path: Path, adapter: TypeAdapter[T]) -> T:
    """The content of a JSON file as a type. Raises `EnvironmentFault` where it does not fit."""
    try:
        return adapter.validate_json(read_bytes(path))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise damaged(path, first["msg"], place) from error


def read_database(folder: Path) -> DatabaseSource:
    """One database from its folder. Raises `EnvironmentFault` where it is missing or damaged."""
    schema = validated(folder / "schema.json", TypeAdapter(SchemaEntry))
    tables: dict[str, TableSource] = {}
    for entry in schema.tables:
        path = folder / f"{entry.name}.csv"
        table = _read_header(folder / "schema.json", entry)
        table = TableSource(table.name, table.columns, table.primary_key, tuple(_rows(path, table)))
        tables[table.name] = table
        _check_keys(path, table, tables)
    return DatabaseSource(folder.name, tuple(tables.values()))


def _read_header(path: Path, entry: TableEntry) -> TableSource:
    """One table of a schema, still without rows."""
    names = [column.name for column in entry.columns]
    if len(set(names)) != len(names) or not set(entry.primary_key) <= set(names):
        why = "its column names must differ, and the primary key be among them"
        raise damaged(path, why, f"table {entry.name}")
    columns = []
    for column in entry.columns:
        table, dot, target = (column.references or "").partition(".")
        references = (table, target) if dot else None
        columns.append(ColumnSource(column.name, column.type, column.nullable, references))
    return TableSource(entry.name, tuple(columns), tuple(entry.primary_key))


def _rows(path: Path, table: TableSource) -> Iterator[tuple[Value, ...]]:
    """The rows of one CSV file, converted; an error names the line on which the row ends."""
    names = [column.name for column in table.columns]
    try:
        text = read_bytes(path).decode("utf-8")
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        if next(reader, None) != names:
            raise damaged(path, f"the header must be {','.join(names)}", "line 1")
        for cells in reader:
            place = f"line {reader.line_num}"
            if len(cells) != len(names):
                raise damaged(path, f"it has {len(cells)} cells, not {len(names)}", place)
            pairs = zip(table.columns, cells, strict=True)
            yield tuple(_value(path, place, column, cell) for column, cell in pairs)
    except UnicodeDecodeError as error:
        raise damaged(path, f"it is not UTF-8 ({error})") from error
    except csv.Error as error:
        raise damaged(path, f"it is not CSV ({error})", f"line {reader.line_num}") from error


def _value(path: Path, place: str, column: ColumnSource, cell: str) -> Value:
    """A cell as its column's type says; only the plain spelling counts: no blanks, no exponents."""
    if cell == NULL:
        if column.nullable:
            return None
        raise damaged(path, f"{column.name} may not be NULL", place)
    if column.type == "TEXT":
        return cell
    if column.type == "INTEGER" and _INTEGER.fullmatch(cell):
        return int(cell)
    if column.type == "REAL" and _REAL.fullmatch(cell):
        return float(cell)
    if column.type in ("DATE", "TIME") and _is_moment(column.type, cell):
        return cell
    raise damaged(path, f"{cell!r} in {column.name} is no {column.type}", place)


def _is_moment(kind: str, cell: str) -> bool:
    """Whether a cell is an ISO date (2024-05-31) or a time of day (07:45), written in full."""
    try:
        if kind == "DATE":
            return date.fromisoformat(cell).isoformat() == cell
        return time.fromisoformat(cell).isoformat("minutes") == cell
    except ValueError:
        return False


def _check_keys(path: Path, table: TableSource, tables: Mapping[str, TableSource]) -> None:
    """Every primary key must occur once, and every reference find its row."""
    names = [column.name for column in table.columns]
    allowed = {n: _targets(path, one, tables) for n, one in enumerate(table.columns)}
    seen: set[tuple[Value, ...]] = set()
    for number, row in enumerate(table.rows, start=1):
        key = tuple(row[names.index(name)] for name in table.primary_key)
        if key and (None in key or key in seen):
            raise damaged(path, f"the key {key} is NULL or occurs twice", f"row {number}")
        seen.add(key)
        for n, values in allowed.items():
            if values is not None and row[n] is not None and row[n] not in values:
                raise damaged(path, f"{names[n]} {row[n]!r} points to no row", f"row {number}")


def _targets(
    path: Path, column: ColumnSource, tables: Mapping[str, TableSource]
) -> set[Value] | None:
    """The values that a column may take, or None where it points nowhere."""
    if column.references is None:
        return None
    name, target = column.references
    names = [one.name for one in tables[name].columns] if name in tables else []
    if target not in names:
        raise damaged(path, f"{column.name} points to {name}.{target}, which is not above it")
    return {row[names.index(target)] for row in tables[name].rows}


# A data set of databases that lie in several folders of text, each read where it is.
#
#     {"splits": {"train": ["elements"], "dev": ["rivers"], "test": ["olympics"]},
#      "sources": ["../sql"],
#      "facts": ["elements", "rivers", "olympics"]}
#
# is a `dataset.json`: which databases belong to which split (one each), and in which other folders
# they may lie. A database of this folder is `<db_id>/schema.json` with its CSV files, and its
# questions are `questions/<db_id>.json`. A database of a further folder is taken with those of its
# questions there that name it, ids and all; a `questions/<db_id>.json` here adds to them. So a set
# that grows out of an older one copies none of its text, and what was published under the older
# name stays as it was. `facts` names the databases that hold facts of the world, for the data card;
# a `SOURCE.md` beside one names their source.

FILE: Final = "dataset.json"


class SplitsEntry(Strict):
    """Which databases are in which split, by their ids."""

    train: list[str]
    dev: list[str]
    test: list[str]


class DatasetEntry(Strict):
    """The whole of `dataset.json`; `sources` are folders, as seen from its own."""

    splits: SplitsEntry
    sources: list[str] = Field(default_factory=list)
    facts: list[str] = Field(default_factory=list)


def is_composed(source: Path) -> bool:
    """Whether a folder of text has a `dataset.json`."""
    return (source / FILE).is_file()


def others(source: Path) -> list[Path]:
    """The further folders that a folder of text takes databases from; none without the file."""
    if not is_composed(source):
        return []
    return [source / name for name in entry_of(source).sources]


def read(source: Path) -> FolderSource:
    """Read and check the databases and questions that a `dataset.json` names.

    Raises:
        EnvironmentFault: A file is missing or damaged; the message names it and the place in it.
    """
    splits = entry_of(source).splits.model_dump()
    db_ids = [db_id for split in splits.values() for db_id in split]
    twice = sorted({db_id for db_id in db_ids if db_ids.count(db_id) > 1})
    if twice:
        raise damaged(source / FILE, f"{twice[0]!r} occurs twice")
    places = {db_id: _place(source, db_id) for db_id in db_ids}
    databases = tuple(read_database(place / db_id) for db_id, place in places.items())
    questions: dict[str, list[dict[str, Any]]] = {split: [] for split in splits}
    by_file: dict[Path, list[QuestionEntry]] = {}
    for split, members in splits.items():
        for db_id in members:
            own = list(_questions(source, places[db_id], db_id))
            by_file[places[db_id] / db_id] = own
            questions[split] += [question.model_dump() for question in own]
    check_questions(by_file, set(db_ids))
    return FolderSource(databases, *(tuple(entries) for entries in questions.values()))


def entry_of(source: Path) -> DatasetEntry:
    """The content of `dataset.json`. Raises `EnvironmentFault` where it is missing or damaged."""
    return validated(source / FILE, TypeAdapter(DatasetEntry))


def _place(source: Path, db_id: str) -> Path:
    """The folder in which a database lies."""
    for folder in (source, *others(source)):
        if (folder / db_id / "schema.json").is_file():
            return folder
    raise damaged(source / FILE, f"there is no folder {db_id!r} with a schema.json")


def _questions(source: Path, place: Path, db_id: str) -> Iterator[QuestionEntry]:
    """The questions on one database: those of the folder in which it lies, then those added."""
    if is_composed(place):
        yield from _questions_in(_file_of(place, db_id), db_id)
    else:
        for split in SPLITS:
            yield from (
                question
                for question in read_questions(place / f"{split}.json")
                if question.db_id == db_id
            )
    if place != source and _file_of(source, db_id).is_file():
        yield from _questions_in(_file_of(source, db_id), db_id)


def _file_of(folder: Path, db_id: str) -> Path:
    return folder / "questions" / f"{db_id}.json"


def _questions_in(path: Path, db_id: str) -> Iterator[QuestionEntry]:
    """The questions of a file that is named after their database."""
    for n, question in enumerate(read_questions(path)):
        if question.db_id != db_id:
            raise damaged(path, f"it is on {question.db_id!r}, not on {db_id!r}", str(n))
        yield question
