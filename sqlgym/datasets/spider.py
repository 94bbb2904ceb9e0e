"""Questions in the Spider layout, and in BIRD's.

    folder/
      tables.json                         optional; its foreign keys complement the declared ones
      train_spider.json train_others.json or train.json     split "train"
      dev.json, test.json                 splits "dev", "test"; any other NAME.json is split NAME
      database/<db_id>/<db_id>.sqlite     or dev_databases/, train_databases/, test_database/

An entry has `db_id`, `question` and the gold SQL as `query` (Spider) or `SQL` (BIRD); `evidence`,
`id` and `hardness` or `difficulty` are taken where they are there. An entry with `"answerable":
false` asks for what its database does not have, and needs no SQL. Only the structure is looked
at: no gold is run, and of each database only the first bytes are read, once. A file that cannot be
read as a whole is a `ConfigurationError`; a bad entry is recorded as a `Problem`, and the others
load. BIRD's `train/` and `dev_20240627/` may also lie side by side in the folder that is given.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sqlgym.database.schema import ForeignKey
from sqlgym.database.sqlite_file import HEADER
from sqlgym.datasets.rows import Unreadable
from toolgym.errors import ConfigurationError

# Where the file of a database lies, by its id, in all the layouts that data sets come in.
#
#     FOLDER/database/<db_id>/<db_id>.sqlite            Spider; also databases/, test_database/
#     FOLDER/dev_databases/<db_id>/<db_id>.sqlite       BIRD; also train_databases/
#     FOLDER/<db_id>/<db_id>.sqlite, FOLDER/<db_id>.sqlite
#
# The ending may also be `.sqlite3` or `.db`. Of a file the first bytes are read, once, when its
# database is first asked for; nothing is opened.

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


def database_files(folder: Path) -> list[Path]:
    """The files in a folder, or up to two folders deeper, that are named like databases."""
    paths = (path for pattern in ("*", "*/*", "*/*/*") for path in folder.glob(pattern))
    return sorted(path for path in paths if path.suffix in ENDINGS and path.is_file())


_TRAIN = (("train_spider.json", "train_others.json"), ("train.json",))
_NOT_QUESTIONS = frozenset({"tables", "dev_tables", "train_tables", "test_tables", "build"})


@dataclass(frozen=True, slots=True)
class SpiderQuestion:
    """One entry of a split.

    Attributes:
        id: The entry's own `id`, or `<split>-<index>`; unique within the split.
        query: The gold SQL.
        hardness: As the entry tells it, or None.
        evidence: What BIRD adds to a question; may be empty.
        answerable: Whether the database has an answer; if not, there is no gold SQL.
    """

    id: str
    db_id: str
    question: str
    query: str
    split: str
    hardness: str | None
    database: Path
    evidence: str = ""
    answerable: bool = True


@dataclass(frozen=True, slots=True)
class Problem:
    """An entry that cannot be used.

    Attributes:
        id: The entry's id, as a question would have it.
        code: `not_an_object`, `missing_key`, `duplicate_id`, `unknown_database`, `not_a_database`.
        reason: One sentence that names file and entry.
    """

    id: str
    code: str
    reason: str


@dataclass(frozen=True)
class SpiderFolder:
    """The content of a folder: the usable questions, the problems, and further foreign keys.

    Attributes:
        questions: In the order of the files.
        problems: Entries that were left out.
        foreign_keys: By db_id, the references in `tables.json`; for `Schema.with_references`.
    """

    path: Path
    questions: tuple[SpiderQuestion, ...]
    problems: tuple[Problem, ...] = ()
    foreign_keys: dict[str, tuple[ForeignKey, ...]] = field(default_factory=dict)


def load_spider(
    folder: Path | str,
    split: str | None = None,
    databases: Path | None = None,
    name: str = "",
) -> SpiderFolder:
    """Load one split of a folder, or all that it has.

    Args:
        split: "train", "dev", "test", or the name of another JSON file; None loads train, dev and
            test.
        databases: Where the databases lie, if not in the folder.
        name: How errors call the data set; the folder without it.

    Raises:
        ConfigurationError: The folder or the split's file is missing, is not a JSON list, or holds
            no usable entry.
    """
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise ConfigurationError(f"there is no folder {path}; give one in the Spider layout.")
    path = _part_of(path, split)
    splits = splits_of(path)
    if not splits or (split is not None and split not in splits):
        raise _no_split(path, split, splits, name)
    questions: list[SpiderQuestion] = []
    problems: list[Problem] = []
    for each in [split] if split is not None else _known(splits):
        usable, unusable = _load_split(path, each, splits[each], databases)
        questions += usable
        problems += unusable
    return SpiderFolder(path, tuple(questions), tuple(problems), foreign_keys_of(path))


def _no_split(
    folder: Path, split: str | None, splits: Iterable[str], name: str
) -> ConfigurationError:
    """What is told of a folder in which the questions that are asked for are not."""
    names = [*splits, *sorted(path.stem for path in folder.glob("*.jsonl"))]
    if split is not None and names:
        listed = ", ".join(map(repr, names))
        return ConfigurationError(
            f"{name or folder} has no split {split!r}: it has {listed}. Name one of these as the"
            " split."
        )
    databases = len(database_files(folder))
    held = f"{databases:,} database{'' if databases == 1 else 's'} but no questions"
    file = f"{split or 'train'}.json or {split or 'train'}.jsonl with db_id, question and query"
    return ConfigurationError(
        f"{folder} has {held if databases else 'no questions'}: it needs a {file}."
    )


def _part_of(folder: Path, split: str | None) -> Path:
    """The folder with this split's questions: `split/` or `split_DATE/`, where BIRD keeps them."""
    if split is None or split in splits_of(folder):
        return folder
    parts = [folder / split, *sorted(folder.glob(f"{glob.escape(split)}_[0-9]*"), reverse=True)]
    return next((part for part in parts if split in splits_of(part)), folder)


def splits_of(folder: Path) -> dict[str, tuple[Path, ...]]:
    """The splits of a folder, each with its files; known ones first."""
    present = {path.stem: path for path in sorted(folder.glob("*.json"))}
    train = [tuple(folder / n for n in names if (folder / n).is_file()) for names in _TRAIN]
    splits = {"train": next(filter(None, train))} if any(train) else {}
    used = {Path(name).stem for names in _TRAIN for name in names} | _NOT_QUESTIONS
    rest = sorted(present.keys() - used, key=lambda name: (name not in {"dev", "test"}, name))
    return splits | {name: (present[name],) for name in rest}


def _known(splits: Iterable[str]) -> list[str]:
    """The splits to load when none is named: other JSON files may be anything."""
    names = list(splits)
    return [name for name in names if name in {"train", "dev", "test"}] or names


def read_json(path: Path) -> Any:
    """A JSON file.

    Raises:
        ConfigurationError: It cannot be read, or is not JSON; says where.
    """
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8: byte {error.start}.") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ConfigurationError(f"{path} is not JSON: {error.msg} at {where}.") from error
    except ValueError:
        raise ConfigurationError(f"{path} cannot be read: a number in it is too long.") from None
    except RecursionError:
        raise ConfigurationError(
            f"{path} is not a list of entries: it is nested too deeply."
        ) from None


def _load_split(
    folder: Path, split: str, files: tuple[Path, ...], databases: Path | None
) -> tuple[list[SpiderQuestion], list[Problem]]:
    files_of = DatabaseFiles(databases or folder, split)
    questions: dict[str, SpiderQuestion] = {}
    problems: list[Problem] = []
    earlier = 0
    for file in files:
        entries = read_json(file)
        if not isinstance(entries, list):
            raise ConfigurationError(
                f"{file} is not a list of entries, but a JSON {_kind(entries)}."
            )
        for place, entry in enumerate(entries):
            name, where = f"{split}-{earlier + place:05d}", f"{file}, entry {place}"
            outcome = read_entry(entry, own_id(entry) or name, split, files_of, where)
            if outcome.id in questions:
                reason = f"{where}: its id {outcome.id!r} is taken."
                problems.append(Problem(name, "duplicate_id", reason))
            elif isinstance(outcome, SpiderQuestion):
                questions[outcome.id] = outcome
            else:
                problems.append(outcome)
        earlier += len(entries)
    if not questions:
        why = problems[0].reason if problems else f"{files[0]} is an empty list."
        raise ConfigurationError(f"split {split!r} of {folder} has no usable entry: {why}")
    return list(questions.values()), problems


def own_id(entry: Any) -> str:
    """The id that an entry gives itself; "" if it has none."""
    value = entry.get("id") if isinstance(entry, dict) else None
    return str(value).strip() and str(value) if isinstance(value, str | int) else ""


def read_entry(
    entry: Any, name: str, split: str, files_of: DatabaseFiles, where: str
) -> SpiderQuestion | Problem:
    """An entry as a question, or what is wrong with it.

    Args:
        name: The id that it gets.
        where: Its file and place, for the problem's reason.
    """
    if isinstance(entry, Unreadable):
        return Problem(name, "not_an_object", f"{where}: {entry}.")
    if not isinstance(entry, dict):
        return Problem(
            name, "not_an_object", f"{where}: it is a JSON {_kind(entry)}, not an object."
        )
    answerable = entry.get("answerable") is not False
    query = entry.get("query", entry.get("SQL"))
    texts: dict[str, Any] = {k: entry.get(k) for k in ("db_id", "question")}
    if answerable:
        texts = {"query": query, **texts}
    for key, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            return Problem(name, "missing_key", f"{where}: {key!r} is missing or is no text.")
    database = files_of.find(texts["db_id"])
    if isinstance(database, Missing):
        return Problem(name, database.code, f"{where}: {database.reason}")
    hardness = entry.get("hardness", entry.get("difficulty"))
    return SpiderQuestion(
        id=name,
        db_id=texts["db_id"],
        question=texts["question"],
        query=texts.get("query", ""),
        split=split,
        hardness=hardness if isinstance(hardness, str) else None,
        database=database,
        evidence=entry["evidence"] if isinstance(entry.get("evidence"), str) else "",
        answerable=answerable,
    )


def foreign_keys_of(folder: Path) -> dict[str, tuple[ForeignKey, ...]]:
    """The references that the `tables.json` of a folder tells; a malformed entry tells none."""
    keys: dict[str, tuple[ForeignKey, ...]] = {}
    for name in ("tables.json", "train_tables.json", "dev_tables.json", "test_tables.json"):
        if (folder / name).is_file():
            entries = read_json(folder / name)
            for entry in entries if isinstance(entries, list) else []:
                if isinstance(entry, dict) and isinstance(entry.get("db_id"), str):
                    keys[entry["db_id"]] = tuple(_keys_of(entry))
    return keys


def _keys_of(entry: dict[str, Any]) -> Iterator[ForeignKey]:
    tables = entry.get("table_names_original")
    columns = entry.get("column_names_original")
    pairs = entry.get("foreign_keys")
    if not (isinstance(tables, list) and isinstance(columns, list) and isinstance(pairs, list)):
        return
    for pair in pairs:
        try:
            (table, column), (to_table, to_column) = (columns[place] for place in pair)
            names = tables[table], column, tables[to_table], to_column
        except (TypeError, ValueError, IndexError):
            continue
        if all(isinstance(name, str) for name in names):
            yield ForeignKey(*names)


def _kind(value: Any) -> str:
    kinds = {dict: "object", list: "list", str: "string", bool: "boolean", type(None): "null"}
    return kinds.get(type(value), "number")
