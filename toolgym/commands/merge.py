"""`toolgym merge`: merge the parts of an evaluation that ran on several machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgym.commands import AsJson
from toolgym.commands.evaluate import Out, Transcripts, print_object, print_results
from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from toolgym.records import EpisodeRecord

Parts = Annotated[
    list[Path],
    typer.Argument(
        metavar="PART",
        help="Folders or files written by `toolgym eval --shard I/N --out`, in the order of I.",
    ),
]


def command(
    parts: Parts,
    out: Out = None,
    as_json: AsJson = False,
    transcripts: Transcripts = 0,
) -> None:
    """Merge the parts of an evaluation and print the results.

    The parts must have the same settings and no tasks in common.

    Example:
        toolgym eval sqlgym/Explore-v0 --policy random --shard 1/2 --out one.jsonl
        toolgym eval sqlgym/Explore-v0 --policy random --shard 2/2 --out two.jsonl
        toolgym merge one.jsonl two.jsonl --out whole.jsonl
    """
    from toolgym.commands.episode_output import Output
    from toolgym.records import Evaluation
    from toolgym.runs.episodes import setting_of

    output = Output(out)
    merged = Evaluation.merged(Evaluation(_read(part)) for part in parts)
    played = [setting_of(part) for part in parts]
    setting: dict[str, Any] = {}
    if all(each == played[0] for each in played):  # a file does not record them
        setting = {name: value for name, value in played[0].items() if value is not None}
    setting |= {"env_id": merged.records[0].env_id, "merged": [*map(str, parts)], "k": merged.k}
    with output.writing(setting, {}) as on_episode:
        if on_episode is not None:
            for record in merged:
                on_episode(record)
        output.finish(merged)
    (print_object if as_json else print_results)(merged, setting, transcripts)


def _read(path: Path) -> tuple[EpisodeRecord, ...]:
    """Return the episodes of one part.

    Raises:
        ConfigurationError: The part does not exist or is incomplete.
    """
    from toolgym.records import EpisodeRecord
    from toolgym.runs.episodes import rollouts_of
    from toolgym.runs.run import Run

    is_whole = path.is_file() or Run.open(path).is_complete
    cut: list[str] = []
    records = tuple(map(EpisodeRecord.from_json, rollouts_of(path, notes=cut)))
    if cut or not is_whole:
        raise ConfigurationError(
            f"{path} is incomplete, because its evaluation was interrupted. Run it again."
        )
    return records
