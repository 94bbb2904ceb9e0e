"""Episodes in files: a folder of `toolgym eval --out`, a run's, or a file with one a line.

    config.json      what was played by whom, and the circumstances
    rollouts.jsonl   one episode a line, in the phase `eval`
    summary.json     the figures

It is a run folder without metrics, so whatever reads a run's episodes reads these.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolgym.errors import ConfigurationError
from toolgym.records import EpisodeRecord, Evaluation
from toolgym.runs.files import Record, read_lines
from toolgym.runs.run import ALL_PHASES, EVALUATION, Run, reproducibility

_KIND = "evaluation"


def is_evaluation(config: Mapping[str, Any]) -> bool:
    """Whether a `config.json` is that of an evaluation, in which nothing was trained."""
    return bool(config.get("kind") == _KIND)


def read_episodes(path: Path | str, phase: str | None = None) -> list[EpisodeRecord]:
    """The episodes of a run, of an evaluation, or of a file of `toolgym eval --out FILE.jsonl`.

    A last line that was cut off by a crash is left out with a warning.

    Args:
        path: A folder or a file.
        phase: Of a run: `before`, `grpo`, `after` or another one; None means all.

    Raises:
        ConfigurationError: There is nothing of the kind, a line before the last is damaged, or a
            file was asked for a phase.
    """
    path = Path(path)
    if not path.exists():
        raise ConfigurationError(
            f"there is no {path}: name a run folder, or a file of `toolgym eval --out`."
        )
    if path.is_file():
        if phase is not None:
            raise ConfigurationError(f"{path} is a file and has no phases: leave `phase` out.")
        notes: list[str] = []
        note = f"The last line of {path} was cut off and is left out."
        records = list(read_lines(path, episode_of, lambda: notes.append(note)))
    else:
        run = Run.open(path)
        records = [episode_of(record) for record in run.rollouts(phase)]
        notes = run.notes
    for sentence in notes:
        warnings.warn(sentence, stacklevel=2)
    return records


def rollouts_of(path: Path, phases: Sequence[str] | None = None) -> Iterator[Record]:
    """The lines of a run, an evaluation or a file, one at a time, for the commands.

    Args:
        phases: Of a run, those that are wanted; None or none at all means all.

    Raises:
        ConfigurationError: There is no such run or phase, or a line of its file is damaged.
    """
    if unknown := set(phases or ()) - set(ALL_PHASES):
        names = ", ".join(ALL_PHASES)
        raise ConfigurationError(f"there is no phase {min(unknown)!r}; a run has {names}.")
    if path.is_file() and phases:
        raise ConfigurationError("--phase is for run folders; leave it out for a file.")
    if path.is_file():
        return read_lines(path, _line_of, lambda: None)
    rollouts = Run.open(path).rollouts()
    return (each for each in rollouts if not phases or each["phase"] in phases)


def _line_of(record: Any) -> Record:
    if not isinstance(record, dict) or not {"env_id", "turns"} <= record.keys():
        raise ConfigurationError("a line must be an episode, as `toolgym eval --out` writes it")
    return record


def episode_of(record: Any) -> EpisodeRecord:
    """The episode in a line.

    Raises:
        ConfigurationError: It holds none.
    """
    if not isinstance(record, dict):
        raise ConfigurationError("a line must be an episode, as `toolgym eval --out` writes it")
    return EpisodeRecord.from_json(record)


def create_evaluation(path: Path, config: Mapping[str, Any]) -> Run:
    """Make the folder of an evaluation, before it is played.

    Args:
        path: Where; a folder that is taken gets a counter, as that of a run.
        config: `env_id`, `policy`, and `settings` with the `env_kwargs`.

    Raises:
        ConfigurationError: It cannot be made there.
    """
    run = Run.create(path, {"kind": _KIND, **config, "reproducibility": reproducibility()})
    run.write_summary({"status": "interrupted"})
    return run


def log_episode(run: Run, record: EpisodeRecord) -> None:
    """Append an episode to the folder of an evaluation."""
    run.log_rollouts([{"phase": EVALUATION, **record.to_json()}])


def finish_evaluation(run: Run, evaluation: Evaluation, facts: Mapping[str, Any]) -> None:
    """Write the figures of an evaluation, and that it came to its end.

    Args:
        facts: What else `summary.json` tells of it: `name`, `temperature`.
    """
    figures = {**facts, "tries": evaluation.k, "after": evaluation.summary()}
    run.write_summary({"status": "complete", "evaluations": [figures]})
