"""Rollouts of a run or an evaluation as rows: the chat, the reward and the outcome.

A run records the question and the turns of an episode. The prompt comes from the environment, which
is made again with the arguments that were recorded for the phase. A file written by `toolgym eval`
does not contain the environment arguments. A rollout that is unscored because of an infrastructure
error becomes a row whose reward is null.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, Final

from adapters.export.demonstrations import Arguments, chat_of, message_columns, notes
from adapters.export.tables import Column, Export, Row, json_text, rounded
from adapters.export.tasks import WHOLE, Progress, origin_facts
from adapters.training.runs.audit import phase_arguments
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.messages import recorded_messages
from toolgym.records import EpisodeRecord
from toolgym.registration import dataset_of
from toolgym.runs.episodes import rollouts_of
from toolgym.runs.run import Run

_OF_RECORD: Final = (  # columns that are fields of `EpisodeRecord`
    Column("env_id", "string", "the environment"),
    Column("task_id", "string", "the task"),
    Column("number", "int64", "number of the attempt at the task, from 0; or null"),
    Column("seed", "int64", "seed of the episode"),
    Column("correct", "bool", "whether the answer is correct"),
    Column("scored", "bool", "false if a fault of the environment left the episode unscored"),
    Column("answered", "bool", "whether the episode ended with an answer"),
    Column("progress_bin", "int64", "bin of the best progress"),
    Column("mistake", "string", "kind of mistake, if questions may have no answer; or null"),
    Column("fault", "string", "the fault; empty if there was none"),
)
_COLUMNS: Final = (
    *_OF_RECORD,
    Column("phase", "string", "phase of the run: `before`, `grpo`, `after`, `eval`; or null"),
    Column("step", "int64", "step of the training; or null"),
    Column("reward", "float64", "the score of the episode, at most 1; null if it is unscored"),
    Column("reward_parts", "string", "the parts of the reward, as JSON text"),
    Column("turn_rewards", ["float64"], "change of the score by each turn"),
    Column("turn_valid", ["bool"], "whether every call of the turn was bound"),
    Column("repairs", ["string"], "the codes of all repairs"),
    Column("errors", ["string"], "the codes of all errors"),
)


def rollout_export(
    path: Path,
    *,
    phases: Sequence[str] | None = None,
    n: int | None = None,
    settings: Mapping[str, Any] | None = None,
    arguments: Arguments = "text",
    progress: Progress | None = None,
) -> Export:
    """Return the rollouts in a run folder, or in a file of `toolgym eval --out`, as a table.

    Args:
        path: The folder or file, which is read twice.
        phases: Phases of the run to export; None means all.
        n: Maximum number of rollouts, from the beginning; None means all.
        settings: Arguments of the environment that override the recorded ones.
        arguments: Format of call arguments.
        progress: Function that is called with the number of written rollouts and the total.

    Raises:
        ConfigurationError: If there is no such run or phase, a line is corrupt, there are no
            rollouts, or the environment cannot be made.
    """
    given = dict(settings or {})
    env_ids = [str(each.get("env_id")) for each in islice(rollouts_of(path, phases), n)]
    if not env_ids:
        where = f" of phase {' or '.join(phases)}" if phases else ""
        raise ConfigurationError(f"{path} has no rollouts{where}.")
    recorded = phase_arguments(Run.open(path))[1] if path.is_dir() else {}
    played = {phase: {**kwargs, **given} for phase, kwargs in recorded.items()}

    @functools.cache
    def environment(env_id: str, env_kwargs: str) -> ToolEnv[Any]:
        return registration.make(registration.recorded(env_id), **json.loads(env_kwargs))

    def rows() -> Iterator[Row]:
        for done, record in enumerate(islice(rollouts_of(path, phases), n), 1):
            episode = EpisodeRecord.from_json(record)
            env_kwargs = played.get(str(record.get("phase")), given)
            env = environment(episode.env_id, json_text(env_kwargs))
            parts = {name: rounded(value) for name, value in episode.reward_parts.items()}
            yield {
                **{each.name: getattr(episode, each.name) for each in _OF_RECORD},
                "phase": record.get("phase"),
                "step": record.get("step"),
                "reward": rounded(episode.score),
                "reward_parts": json_text(parts),
                "turn_rewards": [rounded(turn["reward"]) for turn in episode.turns],
                "turn_valid": [bool(turn["valid"]) for turn in episode.turns],
                "repairs": [code for turn in episode.turns for code in turn["repairs"]],
                "errors": [code for turn in episode.turns for code in turn["errors"]],
                **chat_of(env, recorded_messages(env, episode), arguments),
            }
            if progress is not None:
                progress(done, len(env_ids))

    names, first = sorted(set(env_ids)), next(iter(played.values()), given)
    return Export(
        title=f"Rollouts of {', '.join(names)}",
        about="One row for each recorded episode: the chat as the model saw it, the reward, and the"
        " outcome. Rewards are rounded to nine decimals.",
        columns=(*_COLUMNS, *message_columns(arguments)),
        splits={WHOLE: rows()},
        facts={
            "environment": ", ".join(f"`{env_id}`" for env_id in names),
            **origin_facts(names[0], dataset_of(registration.recorded(names[0]), first)),
            "run": path.resolve().name,
            "phases": ", ".join(phases) if phases else "all",
            "arguments of the environment": f"`{json_text(played or given)}`",
            "toolgym": version("toolgym"),
        },
        notes=notes(arguments),
    )
