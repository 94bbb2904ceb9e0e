"""A database without questions as a data set: tasks are written for it, and kept.

    load_tasks("my.db", "train"), or a folder of such files

The tasks of a file are written by `sqlgym.synthesis` when they are first asked for, and kept in the
cache folder under the hash of the file's content, of the options and of this package's source, so
they are there at once the next time, and are others only where something that decides over them
has changed. Several processes may ask at once: each writes, and one file comes out whole.

They are divided into `train`, `dev` and `test` as `sqlgym.tasks.splits` says; `all` is all of them.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sqlgym.database.sqlite_file import connect_readonly
from sqlgym.tasks.source_state import source_state
from toolgym import long_work
from toolgym.cache import cache_folder
from toolgym.errors import ConfigurationError, refused_fields
from toolgym.family import Progress

Level = Literal["easy", "medium", "hard", "extra"]
KEPT: Final = (
    "candidates",
    "kept",
    "rejected",
    "by_hardness",
    "by_shape",
    "missing",
    "tables_left_out",
    "references",
)
"""What is kept of the report of a synthesis."""


class SynthesisOptions(BaseModel):
    """What `load_tasks(..., synthesis={...})` may say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int = Field(500, ge=1)
    """Tasks of each database at most."""
    seed: int = 0
    """Chooses among the tasks that can be written."""
    hardness: dict[Level, float] | None = None
    """Shares of the hardness levels; None takes what there is, as evenly as it goes."""
    tables: tuple[str, ...] | None = None
    """Tables that questions may be about; None means all."""
    variants: int = Field(4, ge=1)
    """Tasks that may differ in their literals only."""
    wording: str = "en"
    """The language of the questions."""


@dataclass(frozen=True)
class Written:
    """The tasks of one database.

    Attributes:
        db_id: Its name.
        database: Its file.
        entries: In the Spider layout, with `id`, `hardness`, `shape` and `canonical`.
        report: What was tried, kept and left out, as plain data.
    """

    db_id: str
    database: Path
    entries: tuple[dict[str, Any], ...]
    report: dict[str, Any]

    @property
    def is_empty(self) -> bool:
        """No task could be written."""
        return not self.entries

    @property
    def why_empty(self) -> str:
        """Why no task could be written, as far as is known."""
        counted = sorted(self.report["rejected"].items(), key=lambda pair: -pair[1])[:3]
        reasons = [f"{count:,} candidates {code}" for code, count in counted]
        reasons += [f"{name}: {why}" for name, why in self.report["tables_left_out"].items()][:3]
        return f"no task can be written for {self.db_id}: {'; '.join(reasons) or 'it is empty'}."


def read_options(given: Mapping[str, Any] | None) -> SynthesisOptions:
    """The options of a synthesis.

    Raises:
        ConfigurationError: One is unknown or out of range.
    """
    try:
        return SynthesisOptions.model_validate(dict(given or {}))
    except (ValidationError, TypeError, ValueError) as problem:
        told = refused_fields(problem) if isinstance(problem, ValidationError) else problem
        known = ", ".join(SynthesisOptions.model_fields)
        raise ConfigurationError(
            f"these options of a synthesis are refused: {told}. There are {known}."
        ) from None


def write_tasks(
    database: Path, db_id: str, options: SynthesisOptions, progress: Progress | None = None
) -> Written:
    """The tasks of one database, from the cache if they are there.

    Args:
        database: An SQLite file.
        db_id: What the tasks call it.
        options: How many, and which.
        progress: Called with how many tasks are found and how many are wanted; without it whoever
            listens to long work is told.

    Raises:
        ConfigurationError: An option does not fit this database.
        EnvironmentFault: The file cannot be read as a database.
    """
    connect_readonly(database).close()  # a file that cannot be read has no content to hash
    file = _file(database, db_id, options)
    body = _recall(file)
    if body is None:
        body = _write(database, db_id, options, progress)
        _keep(file, body)
    return Written(db_id, database, tuple(body["entries"]), body["report"])


def _write(
    database: Path, db_id: str, options: SynthesisOptions, progress: Progress | None
) -> dict[str, Any]:
    from sqlgym.synthesis import synthesize  # imports a parser: only where tasks are written

    def tell(done: int, total: int) -> None:
        long_work.tell(f"writing tasks for {db_id}", done, total)

    made = synthesize(database, **options.model_dump(), progress=progress or tell)
    if progress is None:
        tell(options.n, options.n)  # a database may be exhausted before
    entries = []
    for task in made.tasks:
        mark = hashlib.sha256(task.canonical.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        named = {"id": f"{db_id}-{mark}", **task.entry(db_id)}
        entries.append({**named, "canonical": task.canonical})
    report = {name: getattr(made.report, name) for name in KEPT}
    plain: dict[str, Any] = json.loads(json.dumps({"entries": entries, "report": report}))
    return plain


def _recall(file: Path) -> dict[str, Any] | None:
    """What is kept; None where there is nothing, or nothing whole."""
    try:
        body = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    return body if isinstance(body, dict) and body.keys() == {"entries", "report"} else None


def _keep(file: Path, body: Mapping[str, Any]) -> None:
    """Put a file in its place by one rename; where nothing can be written, nothing is kept."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, fresh = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(json.dumps(body).encode())
            Path(fresh).replace(file)
        finally:
            Path(fresh).unlink(missing_ok=True)
    except OSError:
        return


def _file(database: Path, db_id: str, options: SynthesisOptions) -> Path:
    status = database.stat()
    content = content_hash(database, status.st_size, status.st_mtime_ns)
    state = source_state()
    key = json.dumps([content, db_id, options.model_dump(), state], sort_keys=True)
    name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return cache_folder() / "sql" / "synthesized" / f"{name}.json"


@functools.lru_cache(maxsize=1_024)
def content_hash(path: Path, size: int, changed: int) -> str:
    """The sha256 of a file; size and time of change are its key in this process."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def summary(written: Sequence[Written]) -> dict[str, Any]:
    """The reports of several databases as plain data, by name."""
    return {
        one.db_id: {
            "candidates": one.report["candidates"],
            "kept": len(one.entries),
            "by_hardness": one.report["by_hardness"],
            "rejected": one.report["rejected"],
            "missing": one.report["missing"],
            "left_out": one.report["tables_left_out"],
        }
        for one in written
    }
