"""How tasks are made from the entries of a data set: all at once, or one by one.

`RowTasks` is a sequence that makes a task from its row when it is asked for one, so that two
million rows start at once. What the loader of a whole folder tells when it loads, a row tells when
it is asked for: an entry that cannot be used is a task with a `problem`, and is refused when it is
drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

from sqlgym.database.schema import ForeignKey
from sqlgym.datasets.spider import (
    DatabaseFiles,
    Problem,
    SpiderQuestion,
    foreign_keys_of,
    own_id,
    read_entry,
)
from sqlgym.tasks.task import SqlTask


def task_of(question: SpiderQuestion, foreign_keys: tuple[ForeignKey, ...]) -> SqlTask:
    """A usable entry as a task."""
    return SqlTask(
        id=question.id,
        question=question.question,
        item=question.db_id,
        gold_sql=question.query,
        database=question.database,
        hardness=question.hardness,
        evidence=question.evidence,
        foreign_keys=foreign_keys,
    )


class RowTasks(Sequence[SqlTask]):
    """Tasks that are made from their rows when they are asked for.

    The id is `<split>-<index>`, so that it is found without reading the others; an id that the
    entry gives itself is in `extra`.

    Args:
        rows: The entries.
        split: Their split.
        databases: The folder with their databases.
        origin: The file, and what a row of it is called, for the reasons of refusals.
    """

    def __init__(
        self, rows: Sequence[Any], split: str, databases: Path, origin: tuple[str, str, int]
    ) -> None:
        self._rows, self._split, self._origin = rows, split, origin
        self._files = DatabaseFiles(databases, split)
        self._keys = foreign_keys_of(databases)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> SqlTask: ...
    @overload
    def __getitem__(self, index: slice) -> list[SqlTask]: ...
    def __getitem__(self, index: int | slice) -> SqlTask | list[SqlTask]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        entry = self._rows[place]
        origin, row, first = self._origin
        where = f"{origin}, {row} {place + first}"
        name = f"{self._split}-{place:05d}"
        found = read_entry(entry, name, self._split, self._files, where)
        if isinstance(found, Problem):
            return SqlTask(name, "", problem=(found.code, found.reason))
        given = own_id(entry)
        extra = {"id": given} if given else {}
        return replace(task_of(found, self._keys.get(found.db_id, ())), extra=extra)

    def place_of(self, task_id: str) -> int | None:
        """The place of the task with this id; None if there is none."""
        prefix, _, digits = task_id.rpartition("-")
        if prefix != self._split or not (digits.isascii() and digits.isdigit()):
            return None
        place = int(digits[:19])
        return place if place < len(self) and task_id == f"{prefix}-{place:05d}" else None
