"""Writes folders in the Spider layout atomically.

* `OUT/tables.json`: The schemas, for Spider's own tools.
* `OUT/train_spider.json`, `OUT/dev.json` and so on: The questions of each split.
* `OUT/database/<db_id>/<db_id>.sqlite`: Copies of the databases, or links to them.
* `OUT/NOTE`: A description of how the folder was created.

A folder is written under a temporary name in the parent folder of `OUT`, and then renamed. An
existing folder is replaced only on request, and only if it contains the file NOTE, which shows that
the same command wrote it. Other files of the user are therefore never removed.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlgym.database.schema import Schema
from sqlgym.datasets.synthesized import Files, bare_databases, read_options, write_all
from sqlgym.tasks.splits import SHARES, check_shares, divide
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.family import SynthesisOrder
from toolgym.runs.files import encode, replace_folder
from toolgym.workers import Progress

SYNTHESIS: Final = "SYNTHESIS.md"
_NUMBERS: Final = ("INT", "REAL", "FLOA", "DOUB", "NUM", "DEC")


@contextmanager
def replacing(out: Path, note: str, text: str, overwrite: bool) -> Iterator[Path]:
    """Context manager for a new folder that becomes `out` if the block ends without an error.

    Args:
        out: The final path of the folder.
        note: File name of the note.
        text: Content of the note.
        overwrite: Whether to replace an existing folder that contains a file with the name of the
            note.

    Raises:
        ConfigurationError: `out` exists and may not be replaced.
        EnvironmentFault: The folder cannot be written.
    """
    check_place(out, note, overwrite)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{out.name}-", dir=out.parent, ignore_cleanup_errors=True
        ) as temporary:
            built = Path(temporary) / "built"
            built.mkdir()
            yield built
            (built / note).write_text(text, "utf-8")
            replace_folder(built, out, Path(temporary) / "old")
    except OSError as problem:
        raise EnvironmentFault(f"{out} cannot be written: {problem}.") from problem


def check_place(out: Path, note: str, overwrite: bool) -> None:
    """Check that a folder can be created, or may be replaced.

    Raises:
        ConfigurationError: `out` exists and may not be replaced.
    """
    if (out.is_dir() and not any(out.iterdir())) or not (out.exists() or out.is_symlink()):
        return
    if not overwrite:
        raise ConfigurationError(
            f"{out} already exists: choose another folder, or add --overwrite."
        )
    if not (out / note).is_file():
        raise ConfigurationError(
            f"{out} was not written by this command (it has no {note}), so --overwrite does not"
            " remove it: choose another folder."
        )


def write_json(path: Path, value: object) -> None:
    """Write a JSON list with one element per line."""
    path.write_bytes(encode(json.dumps(value, ensure_ascii=False, indent=1) + "\n"))


def write_synthesis(order: SynthesisOrder, progress: Progress | None = None) -> dict[str, Any]:
    """Write tasks for databases, as `toolgym tasks synth` does, and return a summary as plain data.

    Raises:
        ConfigurationError: A source is not a database, the folder already exists, or a split has no
            task.
        EnvironmentFault: The folder cannot be written.
    """
    options = read_options(order.options)
    shares = order.splits or SHARES
    check_shares(shares)
    files = _databases(order.sources)
    out = order.out.expanduser().absolute()
    check_place(out, SYNTHESIS, order.force)  # fail before the work starts
    written, refused = write_all(files, options, progress, order.map)
    entries = [entry for one in written.values() for entry in one["entries"]]
    parts = divide(entries, shares)
    if not order.splits:
        parts = {name: part for name, part in parts.items() if part or name == "train"}
    if empty := [name for name, part in parts.items() if not part]:
        reasons = " ".join(refusal.reason for refusal in refused.values())
        cure = "Write more tasks with --n, or use fewer splits: --splits train=0.8,dev=0.2."
        raise ConfigurationError(f"there are no tasks for {', '.join(empty)}. {reasons or cure}")
    result = {
        "out": str(order.out),
        "splits": {name: len(part) for name, part in parts.items()},
        "dropped": len(entries) - sum(map(len, parts.values())),
        "sources": {db_id: one["report"] for db_id, one in written.items()},
        "refused": {name: refusal.reason for name, refusal in refused.items()},
    }
    settings = ", ".join(
        f"{name} {value}" for name, value in options.model_dump().items() if value is not None
    )
    note = f"# Synthesized tasks\n\nWritten by `toolgym tasks synth` ({settings}).\n"
    with replacing(out, SYNTHESIS, note, order.force) as built:
        used = [(db_id, file) for db_id, file in files if db_id in written]
        for db_id, file in used:
            place = built / "database" / db_id / f"{db_id}.sqlite"
            place.parent.mkdir(parents=True)
            place.symlink_to(file) if order.link else shutil.copyfile(file, place)
        write_json(built / "tables.json", [spider_schema(*named) for named in used])
        for split, part in parts.items():
            plain = [{k: v for k, v in entry.items() if k != "canonical"} for entry in part]
            write_json(built / f"{'train_spider' if split == 'train' else split}.json", plain)
    return result


def _databases(sources: Sequence[Path]) -> Files:
    files: dict[str, Path] = {}
    for source in sources:
        path = source.expanduser()
        own = bare_databases(path.resolve()) if path.exists() else ()
        if not own:
            kind = "an SQLite file or a folder of SQLite files"
            if not path.exists():
                raise ConfigurationError(f"{source} does not exist: use {kind}.")
            raise ConfigurationError(f"{source} is not {kind} without questions.")
        for db_id, file in own:
            if files.setdefault(db_id, file) != file:
                raise ConfigurationError(
                    f"{files[db_id]} and {file} have the same name: rename one of them."
                )
    return tuple(sorted(files.items()))


def spider_schema(db_id: str, path: Path) -> Mapping[str, Any]:
    """Return the entry of a database in `tables.json`.

    Columns are numbered across all tables, and number 0 is `*`. `primary_keys` lists every column
    of a composite key. Foreign keys to unknown columns are omitted.
    """
    tables = Schema.read(path).tables
    columns = [(t, column) for t, table in enumerate(tables) for column in table.columns]
    number = {(tables[t].name, column.name): n for n, (t, column) in enumerate(columns, start=1)}
    keys = [key for table in tables for key in table.foreign_keys]

    def plain(name: str) -> str:
        return name.replace("_", " ").lower()

    return {
        "column_names": [[-1, "*"], *([t, plain(column.name)] for t, column in columns)],
        "column_names_original": [[-1, "*"], *([t, column.name] for t, column in columns)],
        "column_types": ["text", *(_spider_type(column.type) for _, column in columns)],
        "db_id": db_id,
        "foreign_keys": [
            [number[key.table, key.column], number[key.to_table, key.to_column]]
            for key in keys
            if (key.to_table, key.to_column) in number
        ],
        "primary_keys": [number[tables[t].name, c.name] for t, c in columns if c.primary_key],
        "table_names": [plain(table.name) for table in tables],
        "table_names_original": [table.name for table in tables],
    }


def _spider_type(declared: str) -> str:
    if "DATE" in declared.upper() or "TIME" in declared.upper():
        return "time"
    return "number" if any(part in declared.upper() for part in _NUMBERS) else "text"
