r"""Reading a database from text: one JSON for its schema, one CSV per table, questions beside them.

This is the form in which the bundled databases are kept, because a person can read it and a diff
can show it: `<db_id>/schema.json` has the tables in order with columns, keys, and what they mean
in words; `<db_id>/<table>.csv` the rows; `train.json`, `dev.json` and `test.json`, or some of them,
the questions.

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
from typing import Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

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
SPLITS: Final = ("train", "dev", "test")
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
    paths = {split: source / f"{split}.json" for split in SPLITS}
    by_split = {split: read_questions(path) for split, path in paths.items() if path.is_file()}
    if not by_split:
        raise damaged(source, f"it has no questions: there is none of {', '.join(SPLITS)} (.json)")
    check_questions(
        {paths[split]: questions for split, questions in by_split.items()},
        {database.db_id for database in databases},
    )
    parts = {
        split: tuple(one.model_dump() for one in questions) for split, questions in by_split.items()
    }
    return FolderSource(databases, *(parts.get(split, ()) for split in SPLITS))


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
