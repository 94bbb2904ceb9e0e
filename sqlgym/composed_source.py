"""A data set of databases that lie in several folders of text, each read where it is.

`dataset.json` says which databases belong to which split, and in which other folders they may lie:

    {"splits": {"train": ["elements"], "dev": ["rivers"], "test": ["olympics"]},
     "sources": ["../sql"],
     "facts": ["elements", "rivers", "olympics"]}

A database of this folder is `<db_id>/schema.json` with its CSV files, and its questions are
`questions/<db_id>.json`. A database of a further folder is taken with those of its questions there
that name it, ids and all. So a set that grows out of an older one copies none of its text, and what
was published under the older name stays as it was. `facts` names the databases that hold facts of
the world, for the data card; a `SOURCE.md` beside such a database says where they come from.

A database belongs to one split only. Whatever is wrong is an `EnvironmentFault` that names file and
place, as in `sqlgym.text_source`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import Field, TypeAdapter

from sqlgym.layout import FolderSource
from sqlgym.text_source import (
    SPLITS,
    QuestionEntry,
    Strict,
    check_questions,
    damaged,
    read_database,
    read_questions,
    validated,
)

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
    """What `dataset.json` says. Raises `EnvironmentFault` where it is missing or damaged."""
    return validated(source / FILE, TypeAdapter(DatasetEntry))


def _place(source: Path, db_id: str) -> Path:
    """The folder in which a database lies."""
    for folder in (source, *others(source)):
        if (folder / db_id / "schema.json").is_file():
            return folder
    raise damaged(source / FILE, f"there is no folder {db_id!r} with a schema.json")


def _questions(source: Path, place: Path, db_id: str) -> Iterator[QuestionEntry]:
    """The questions on one database."""
    if place == source:
        path = source / "questions" / f"{db_id}.json"
        for n, question in enumerate(read_questions(path)):
            if question.db_id != db_id:
                raise damaged(path, f"it is on {question.db_id!r}, not on {db_id!r}", str(n))
            yield question
        return
    for split in SPLITS:
        yield from (
            question
            for question in read_questions(place / f"{split}.json")
            if question.db_id == db_id
        )
