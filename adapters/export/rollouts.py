"""The rollouts of a run, or of an evaluation, as rows: the chat, the reward and the outcome.

What a run keeps of an episode is its question and its turns. The prompt is the environment's own,
so the environment is made again, with the arguments that the run recorded for the phase; a file of
`toolgym eval` has none, and whoever exports it says them.

A rollout that a fault left unscored is a row too, with no reward: a null here was written, and
means that there is no number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, Final

from adapters.export.demonstrations import Arguments, chat_of, message_columns, notes
from adapters.export.tables import Column, Export, LeftOut, Row, json_text, rounded
from adapters.export.tasks import WHOLE, Progress, origin_facts
from adapters.training.runs.audit import phase_arguments
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.messages import recorded_messages
from toolgym.records import EpisodeRecord
from toolgym.registration import dataset_of
from toolgym.runs.episodes import rollouts_of
from toolgym.runs.files import Record
from toolgym.runs.run import Run

SEVERAL_CALLS: Final = "several_calls"
"""The code of an episode that is left out because its record joins the results of several calls."""

COLUMNS: Final = (
    Column("env_id", "string", "the environment"),
    Column("task_id", "string", "the task"),
    Column("phase", "string", "of the run, such as `before`, `grpo`, `after`, `eval`; or null"),
    Column("step", "int64", "of the training; null outside of it"),
    Column("number", "int64", "which try at the task it is, from 0; null where tries have none"),
    Column("seed", "int64", "what the episode drew by"),
    Column("reward", "float64", "the score of the episode, at most 1; null if it was not scored"),
    Column("correct", "bool", "the answer was right"),
    Column("scored", "bool", "no fault of the machine left it unscored"),
    Column("answered", "bool", "it ended with an answer"),
    Column("progress_bin", "int64", "how near it came, in the bins of the reward"),
    Column("mistake", "string", "where questions may have no answer, what was mistaken; or null"),
    Column("fault", "string", "what left it unscored; empty if nothing did"),
    Column("reward_parts", "string", "the parts of the reward, as JSON text"),
    Column("turn_rewards", ["float64"], "what each turn changed of the score"),
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
    """The rollouts of a run folder, or of a file of `toolgym eval --out`, as a table.

    Args:
        path: The folder or file; it is read twice.
        phases: Of a run, those that are wanted; None means all.
        n: The first so many; None takes all.
        settings: Of the environment, over those that were recorded.
        arguments: How the arguments of calls are written.
        progress: Called with how many are done and how many there are.

    Raises:
        ConfigurationError: There is no such run or phase, a line of it is damaged, or it has no
            rollout.
    """
    total, env_ids = 0, set()
    for record in islice(rollouts_of(path, phases), n):
        env_ids.add(str(record.get("env_id")))
        total += 1
    if not total:
        where = f" of phase {' or '.join(phases)}" if phases else ""
        raise ConfigurationError(f"{path} has no rollouts{where}.")
    environments = _Environments(path, dict(settings or {}))
    left_out: list[LeftOut] = []

    def noted(records: Iterable[Record]) -> Iterator[Record]:
        for done, record in enumerate(records, 1):
            yield record
            if progress is not None:
                progress(done, total)

    records = noted(islice(rollouts_of(path, phases), n))
    return Export(
        title=f"Rollouts of {', '.join(sorted(env_ids))}",
        about="One row for each recorded episode: the chat as the model saw it, what it earned, and"
        " how it ended. Rewards are rounded to nine decimals.",
        columns=(*COLUMNS, *message_columns(arguments)),
        splits={WHOLE: _rows(records, environments, arguments, left_out)},
        facts={
            "environment": ", ".join(f"`{env_id}`" for env_id in sorted(env_ids)),
            **environments.origin(min(env_ids)),
            "run": path.resolve().name,
            "phases": ", ".join(phases) if phases else "all",
            "arguments of the environment": environments.told,
            "toolgym": version("toolgym"),
        },
        left_out=left_out,
        notes=notes(arguments),
    )


def _rows(
    records: Iterable[Record],
    environments: _Environments,
    arguments: Arguments,
    left_out: list[LeftOut],
) -> Iterator[Row]:
    for record in records:
        episode = EpisodeRecord.from_json(record)
        env = environments.of(episode.env_id, record.get("phase"))
        try:
            chat = recorded_messages(env, episode)
        except ConfigurationError as problem:
            left_out.append(LeftOut(WHOLE, episode.task_id, SEVERAL_CALLS, str(problem)))
            continue
        yield {**_facts(record, episode), **chat_of(env, chat, arguments)}


def _facts(record: Mapping[str, Any], episode: EpisodeRecord) -> Row:
    """What a row has besides the chat."""
    parts = {name: rounded(value) for name, value in episode.reward_parts.items()}
    return {
        "env_id": episode.env_id,
        "task_id": episode.task_id,
        "phase": record.get("phase"),
        "step": record.get("step"),
        "number": episode.number,
        "seed": episode.seed,
        "reward": rounded(episode.score),
        "correct": episode.correct,
        "scored": episode.scored,
        "answered": episode.answered,
        "progress_bin": episode.progress_bin,
        "mistake": episode.mistake,
        "fault": episode.fault,
        "reward_parts": json_text(parts),
        "turn_rewards": [rounded(turn["reward"]) for turn in episode.turns],
        "turn_valid": [bool(turn["valid"]) for turn in episode.turns],
        "repairs": [code for turn in episode.turns for code in turn["repairs"]],
        "errors": [code for turn in episode.turns for code in turn["errors"]],
    }


class _Environments:
    """The environments that were played, each made once for its arguments.

    Args:
        path: The run or file.
        settings: Arguments over the recorded ones.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._recorded: dict[str, Mapping[str, Any]] = {}
        self._made: dict[str, ToolEnv[Any]] = {}
        self._is_run = path.is_dir()
        if self._is_run:
            _, self._recorded = phase_arguments(Run.open(path))

    @property
    def told(self) -> str:
        """Where the arguments come from, for the card."""
        given = f"`{json_text(self._settings)}`" if self._settings else ""
        if self._is_run:
            return f"as the run recorded them{', and ' + given if given else ''}"
        return given or "its own (a file records none)"

    def origin(self, env_id: str) -> dict[str, str]:
        """The data set that was played and its splits, for the card."""
        played = [{**each, **self._settings} for each in self._recorded.values() or [{}]]
        splits = {str(each["split"]) for each in played if each.get("split") is not None}
        named = {"splits played": ", ".join(sorted(splits))} if splits else {}
        return origin_facts(env_id, dataset_of(registration.recorded(env_id), played[0])) | named

    def of(self, env_id: str, phase: Any) -> ToolEnv[Any]:
        """The environment of a phase.

        Raises:
            ConfigurationError: It cannot be made.
        """
        kwargs = {**self._recorded.get(str(phase), {}), **self._settings}
        key = f"{env_id} {json_text(kwargs)}"
        if key not in self._made:
            self._made[key] = registration.make(registration.recorded(env_id), **kwargs)
        return self._made[key]
