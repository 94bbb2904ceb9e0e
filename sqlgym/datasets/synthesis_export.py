"""Writing synthesised tasks as a folder in the Spider layout, whole or not at all.

    OUT/SYNTHESIS.md                          how it was made, and what is in it
    OUT/tables.json                           the schemas, as Spider's tools want them
    OUT/dev.json, train_spider.json, ...      the questions of each split
    OUT/database/<db_id>/<db_id>.sqlite       copies of the databases, or links to them

The folder is written under a temporary name beside its place and moved there by one rename. A
folder that is there already is replaced only if it was asked for, and only if such a folder was
written there before: nobody's own files are removed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Final

from sqlgym.database.schema import Column, Schema, Table
from sqlgym.datasets.layout import (
    ColumnSource,
    ColumnType,
    DatabaseSource,
    TableSource,
    spider_schema,
    write_json,
)
from sqlgym.datasets.synthesised import (
    Files,
    SynthesisOptions,
    Written,
    bare_databases,
    read_options,
    write_all,
)
from sqlgym.tasks.splits import SHARES, Entry, check_shares, divide
from toolgym.errors import ConfigurationError, EnvironmentFault, TaskRefused
from toolgym.family import SynthesisOrder
from toolgym.runs.files import replace_folder
from toolgym.workers import Progress

NOTE: Final = "SYNTHESIS.md"
_TITLE: Final = "# Synthesised tasks"


def write_folder(order: SynthesisOrder, progress: Progress | None = None) -> dict[str, Any]:
    """Write the folder that was ordered, and return a summary as plain data.

    Raises:
        ConfigurationError: A source is no database, the folder is there already, or there is no
            task for a split.
        EnvironmentFault: The folder cannot be written.
    """
    options = read_options(order.options)
    shares = order.splits or SHARES
    check_shares(shares)
    files = _files(order.sources)
    out = order.out.expanduser().absolute()
    _check_place(out, order.force)
    written, refused = write_all(files, options, progress, order.map)
    entries = [entry for one in written for entry in one.entries]
    parts = divide(entries, shares)
    if not order.splits:
        parts = {name: part for name, part in parts.items() if part or name == "train"}
    _check_parts(parts, refused)
    result = {
        "out": str(order.out),
        "splits": {name: len(part) for name, part in parts.items()},
        "dropped": len(entries) - sum(map(len, parts.values())),
        "sources": {one.db_id: one.summary() for one in written},
        "refused": {name: refusal.reason for name, refusal in refused.items()},
    }
    try:
        _install(out, written, parts, _note(result, options), order.link)
    except OSError as problem:
        raise EnvironmentFault(f"{out} cannot be written: {problem}.") from problem
    return result


def _files(sources: Sequence[Path]) -> Files:
    files: dict[str, Path] = {}
    for source in sources:
        path = source.expanduser()
        own = bare_databases(path.resolve()) if path.exists() else ()
        if not own:
            why = "has questions, or no database" if path.exists() else "is not there"
            raise ConfigurationError(f"{source} {why}: give an SQLite file, or a folder of them.")
        for db_id, file in own:
            if files.setdefault(db_id, file) != file:
                raise ConfigurationError(f"{files[db_id]} and {file} have one name: rename one.")
    return tuple(sorted(files.items()))


def _check_place(out: Path, force: bool) -> None:
    if out.is_dir() and not any(out.iterdir()):
        return
    if not out.exists() and not out.is_symlink():
        return
    if not force:
        raise ConfigurationError(
            f"{out} is there already: name another folder, or add --overwrite."
        )
    note = out / NOTE
    if not note.is_file() or not note.read_text("utf-8", "replace").startswith(_TITLE):
        raise ConfigurationError(
            f"{out} is not a folder of synthesised tasks (it has no {NOTE}), so --overwrite does"
            " not remove it: name another folder."
        )


def _check_parts(parts: Mapping[str, list[Entry]], refused: Mapping[str, TaskRefused]) -> None:
    empty = [name for name, part in parts.items() if not part]
    if empty:
        reasons = " ".join(refusal.reason for refusal in refused.values())
        cure = "Write more tasks with --n, or take fewer splits, as in --splits train=0.8,dev=0.2."
        raise ConfigurationError(f"there are no tasks for {', '.join(empty)}. {reasons or cure}")


def _install(
    out: Path,
    written: Sequence[Written],
    parts: Mapping[str, list[Entry]],
    note: str,
    link: bool,
) -> None:
    """Write everything beside its place, and move it there."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix=f".{out.name}-", dir=out.parent, ignore_cleanup_errors=True
    ) as name:
        built = Path(name) / "built"
        for one in written:
            place = built / "database" / one.db_id / f"{one.db_id}.sqlite"
            place.parent.mkdir(parents=True)
            place.symlink_to(one.database) if link else shutil.copyfile(one.database, place)
        schemas = [spider_schema(schema_source(one.db_id, one.database)) for one in written]
        write_json(built / "tables.json", schemas)
        for split, entries in parts.items():
            file = "train_spider.json" if split == "train" else f"{split}.json"
            plain = [{k: v for k, v in entry.items() if k != "canonical"} for entry in entries]
            write_json(built / file, plain)
        (built / NOTE).write_text(note, "utf-8")
        replace_folder(built, out, Path(name) / "old")


def schema_source(db_id: str, path: Path) -> DatabaseSource:
    """The schema of a file in the words of `sqlgym.datasets.layout`, without rows."""
    tables = Schema.read(path).tables
    columns = {(table.name, column.name) for table in tables for column in table.columns}
    return DatabaseSource(db_id, tuple(_table(table, columns) for table in tables))


def _table(table: Table, existing: Set[tuple[str, str]]) -> TableSource:
    """A table, without the references that lead nowhere."""
    targets = {key.column: (key.to_table, key.to_column) for key in table.foreign_keys}
    references = {column: target for column, target in targets.items() if target in existing}
    columns = tuple(
        ColumnSource(column.name, _type(column), references=references.get(column.name))
        for column in table.columns
    )
    keys = tuple(column.name for column in table.columns if column.primary_key)
    return TableSource(table.name, columns, keys)


def _type(column: Column) -> ColumnType:
    declared = column.type.upper()
    if "DATE" in declared or "TIME" in declared:
        return "DATE"
    if any(part in declared for part in ("INT", "REAL", "FLOA", "DOUB", "NUM", "DEC")):
        return "REAL"
    return "TEXT"


def _note(result: Mapping[str, Any], options: SynthesisOptions) -> str:
    """The page that says how the folder was made."""
    settings = ", ".join(
        f"{name} {value}" for name, value in options.model_dump().items() if value is not None
    )
    lines = [
        _TITLE,
        "",
        f"Written by `toolgym tasks synth` ({settings}). Edit nothing by hand.",
        "",
    ]
    lines += [f"* {split}: {count:,} tasks" for split, count in result["splits"].items()]
    for db_id, source in result["sources"].items():
        levels = ", ".join(f"{count} {level}" for level, count in source["by_hardness"].items())
        lines += ["", f"## {db_id}", "", f"{source['kept']:,} tasks: {levels}."]
        lines += [f"No {level}: {why}" for level, why in source["missing"].items()]
        lines += [f"{table} is left out: {why}" for table, why in source["left_out"].items()]
    return "\n".join(lines) + "\n"
