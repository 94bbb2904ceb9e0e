"""Reads the episodes of a run folder, a folder of `toolgym eval --out`, or a file.

A folder of `toolgym eval --out` is a run folder without metrics:

* `config.json`: The environment, policy, settings and software versions.
* `rollouts.jsonl`: One episode per line, in the phase `eval`.
* `summary.json`: The results of the evaluation.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from toolgym.errors import ConfigurationError
from toolgym.records import EpisodeRecord
from toolgym.runs.files import Record, read_lines
from toolgym.runs.run import ALL_PHASES, KIND, Run

LONGEST_LINE: Final = 2**20


def is_evaluation(config: Mapping[str, Any]) -> bool:
    """Return whether a `config.json` belongs to an evaluation rather than to a training run."""
    return bool(config.get("kind") == KIND)


def setting_of(path: Path) -> dict[str, Any]:
    """Return the policy, data set and split of an evaluation or a run, or None if they are not
    recorded.

    Raises:
        ConfigurationError: The file or folder does not exist.
    """
    config: Mapping[str, Any] = {} if path.is_file() else Run.open(path).config
    settings = config.get("settings")
    settings = settings if isinstance(settings, Mapping) else {}
    kwargs = settings.get("env_kwargs")
    known = {**(kwargs if isinstance(kwargs, Mapping) else {}), **settings, **config}
    return {
        "policy": known.get("policy", known.get("model")),
        "dataset": known.get("dataset"),
        "split": known.get("split"),
    }


def read_episodes(path: Path | str, phase: str | None = None) -> list[EpisodeRecord]:
    """Read the episodes of a run, an evaluation, or a file of `toolgym eval --out FILE.jsonl`.

    If a crash cut off the last line, that line is omitted with a warning.

    Args:
        path: A folder or a file.
        phase: A phase of the run, such as `before`, `grpo` or `after`; None means all phases.

    Raises:
        ConfigurationError: The file, folder or phase does not exist, or a line other than the last
            is damaged.
    """
    path = Path(path)
    notes: list[str] = []
    records = [
        EpisodeRecord.from_json(line)
        for line in rollouts_of(path, None if phase is None else [phase], notes)
    ]
    for sentence in notes:
        warnings.warn(sentence, stacklevel=2)
    return records


def rollouts_of(
    path: Path, phases: Sequence[str] | None = None, notes: list[str] | None = None
) -> Iterator[Record]:
    """Yield the lines of a run, an evaluation or a file.

    Args:
        path: A folder or a file.
        phases: The phases of the run; None means all.
        notes: List to which a sentence is appended if the last line was cut off.

    Raises:
        ConfigurationError: The run or phase does not exist, or a line of its file is damaged.
    """
    if unknown := set(phases or ()) - set(ALL_PHASES):
        names = ", ".join(ALL_PHASES)
        raise ConfigurationError(f"there is no phase {min(unknown)!r}; a run has {names}.")
    notes = [] if notes is None else notes
    if path.is_file():
        if phases:
            raise ConfigurationError(
                f"{path} is a file and has no phases: phases are for run folders."
            )
        note = f"The last line of {path} was cut off and is omitted."
        yield from read_lines(path, _episode_line, lambda: notes.append(note))
        return
    run = Run.open(path)
    for record in run.rollouts():
        if not phases or record["phase"] in phases:
            yield record
    notes += run.notes


def is_log(path: Path) -> bool:
    """Return whether a path is a file without recorded episodes, such as a log."""
    return path.is_file() and '"turns"' not in next(log_lines(path), "")


def log_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file in any encoding, truncated to `LONGEST_LINE` characters."""
    with path.open(encoding="utf-8", errors="replace") as stream:
        is_start = True
        while line := stream.readline(LONGEST_LINE):
            if is_start:
                yield line
            is_start = line.endswith("\n")


def _episode_line(record: Record) -> Record:
    """Check that a line contains an episode, and return the episode."""
    EpisodeRecord.from_json(record)
    return record
