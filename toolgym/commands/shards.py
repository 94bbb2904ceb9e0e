"""The options of `toolgym eval` by which several machines share one measurement.

Each machine plays a shard, some of the tasks (`--shard`) or some of the tries (`--start`), and
writes its episodes with `--out`. `--merge` reads these files and reports on all of them as on one
run; it plays nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgym.errors import ConfigurationError
from toolgym.runs.files import read_lines
from toolgym.tries import Shard

if TYPE_CHECKING:
    from toolgym.records import EpisodeRecord, Evaluation

Start = Annotated[
    int | None,
    typer.Option(min=0, help="Number of the first try at each task, for a shard by tries."),
]
ShardOf = Annotated[
    str | None, typer.Option(metavar="I/N", help="Play only the I-th of N parts of the tasks.")
]
Merge = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Play nothing, but report on the episodes that shards wrote with --out; may be "
        "repeated. Only --out, --json and --transcripts go with it.",
    ),
]


def part_of(start: int | None, shard: str | None) -> dict[str, Any]:
    """What was asked for of `start` and `shard`, as `rollout.evaluate` takes it.

    Raises:
        ConfigurationError: There is no such shard.
    """
    given: dict[str, Any] = {} if start is None else {"start": start}
    return given if shard is None else {**given, "shard": Shard.parse(shard)}


def merged_files(
    env_id: str, files: Iterable[Path], out: Path | None
) -> tuple[Evaluation, dict[str, Any]]:
    """The episodes of several files as one evaluation, and what it is an evaluation of.

    Args:
        env_id: The environment that all of them are of.
        files: As `--out` wrote them.
        out: Where they are to be written together.

    Raises:
        ConfigurationError: A file is missing or damaged, or they cannot be put together, or `out`
            cannot be written.
    """
    from toolgym.records import Evaluation

    check_out(out)
    paths = list(files)
    merged = Evaluation.merged(_evaluation(path, env_id) for path in paths)
    setting = {"env_id": env_id, "merged": [str(path) for path in paths], "k": merged.k}
    return merged, setting


def _evaluation(path: Path, env_id: str) -> Evaluation:
    from toolgym.records import Evaluation

    if not path.is_file():
        raise ConfigurationError(f"--merge {path}: there is no such file.")
    records = tuple(read_lines(path, _episode, lambda: _cut(path)))
    for record in records:
        if record.env_id != env_id:
            raise ConfigurationError(f"{path} has episodes of {record.env_id}, not of {env_id}.")
    return Evaluation(records)


def _episode(record: Any) -> EpisodeRecord:
    from toolgym.records import EpisodeRecord

    if not isinstance(record, dict):
        raise ConfigurationError("a line must be an episode, as `toolgym eval --out` writes it")
    return EpisodeRecord.from_json(record)


def _cut(path: Path) -> None:
    raise ConfigurationError(
        f"the last line of {path} was cut off, so its shard was not written to the end; play it"
        " again."
    )


def check_out(out: Path | None) -> None:
    """Refuse a file that cannot be written.

    Raises:
        ConfigurationError: It is a folder or lies in one that is not there.
    """
    if out is not None and out.is_dir():
        raise ConfigurationError(f"--out {out} is a folder; name a file in it.")
    if out is not None and not out.absolute().parent.is_dir():
        raise ConfigurationError(f"--out {out}: there is no folder {out.parent}; make it first.")
