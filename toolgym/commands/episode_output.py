"""What `toolgym eval` keeps, and what it puts together: `--out` and `--merge`.

`--out` names a folder, which is like a run's and gets each episode once it is played, or a file of
one episode a line, which is written at the end. Several machines can share one measurement: each
plays a shard and keeps its episodes, and `--merge` reads them all as one run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from toolgym.commands import (
    check_folder,
    say,
)
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.records import EpisodeRecord, Evaluation
from toolgym.runs.dashboards import check_services, reported
from toolgym.runs.episodes import (
    create_evaluation,
    episode_of,
    finish_evaluation,
    log_episode,
    read_episodes,
)
from toolgym.runs.files import read_lines
from toolgym.runs.run import Run

FILES: Final = (".jsonl", ".json", ".ndjson")
"""Endings by which `--out` names a file of episodes; any other name is that of a folder."""


def check_out(out: Path | None) -> None:
    """Refuse a file or folder that cannot be written.

    Raises:
        ConfigurationError: There is a folder where a file is to be, or a file where a folder is to
            be, or the folder around it is not there.
    """
    if out is None:
        return
    if out.suffix in FILES and out.is_dir():
        raise ConfigurationError(f"--out {out} is a folder; name a file in it.")
    if out.suffix not in FILES and out.is_file():
        raise ConfigurationError(f"--out {out} is a file; name a folder, or a file like one.jsonl.")
    if out.is_dir() and any(out.iterdir()) and not (out / "config.json").is_file():
        raise ConfigurationError(
            f"--out {out} is a folder with other things in it; name a new one, or a file in it such"
            f" as {out / 'one.jsonl'}."
        )
    if _names_a_folder(out):
        return check_folder(out)
    if not out.absolute().parent.is_dir():
        raise ConfigurationError(f"--out {out}: there is no folder {out.parent}; make it first.")
    if not os.access(out if out.exists() else out.absolute().parent, os.W_OK):
        raise ConfigurationError(f"--out {out} cannot be written: you may not write there.")


def check_report_to(out: Path | None, report_to: Sequence[str]) -> None:
    """Refuse a dashboard that is not there, or that has no folder to be told of.

    Raises:
        ConfigurationError: The library is missing, or `--out` names no folder.
    """
    check_services(report_to)
    if report_to and (out is None or not _names_a_folder(out)):
        raise ConfigurationError(
            "--report-to shows what is kept in a folder: name one, as in --out runs/evaluation."
        )


def _names_a_folder(out: Path) -> bool:
    """Not the name of a file, nor that of a device such as /dev/stdout."""
    return out.suffix not in FILES and (out.is_dir() or not out.exists())


class Output:
    """The place where the episodes of an evaluation are kept, if any was asked for.

    Args:
        out: What `--out` was given.
        setting: What is played, by whom and how.
        env_kwargs: Of the environment, so that its episodes can be judged again.
        report_to: Dashboards that the figures are shown on too.

    Raises:
        ConfigurationError: The folder cannot be made.
    """

    def __init__(
        self,
        out: Path | None,
        setting: Mapping[str, Any],
        env_kwargs: Mapping[str, Any],
        report_to: Sequence[str] = (),
    ) -> None:
        self._out, self._setting, self._report_to = out, dict(setting), report_to
        self._folder: Run | None = None
        if out is not None and _names_a_folder(out):
            how = {name: value for name, value in setting.items() if name not in env_kwargs}
            about = {name: setting.get(name) for name in ("env_id", "policy", "dataset")}
            settings = {**how, "env_kwargs": dict(env_kwargs)}
            self._folder = create_evaluation(out, {**about, "settings": settings})

    @contextmanager
    def writing(self) -> Iterator[Callable[[EpisodeRecord], None] | None]:
        """Hold the folder, and yield what each episode is to be given to; None for a file."""
        if self._folder is None:
            yield None
            return
        with self._folder.held(), reported(self._folder, self._report_to) as folder:
            self._folder = folder
            yield lambda record: log_episode(folder, record)

    def finish(self, evaluation: Evaluation) -> None:
        """Write the figures beside the episodes, or the episodes into the file.

        Raises:
            EnvironmentFault: The file cannot be written.
        """
        if self._folder is None:
            return write_records(evaluation, self._out)
        names = [str(self._setting[key]) for key in ("dataset", "split") if key in self._setting]
        facts = {"name": " ".join(names), "temperature": self._setting.get("temperature", 0.0)}
        finish_evaluation(self._folder, evaluation, facts)
        say(f"Evaluation: {self._folder.path}", err=True)

    def keep(self, evaluation: Evaluation) -> None:
        """Write an evaluation that is whole already."""
        with self.writing() as on_episode:
            if on_episode is not None:
                for record in evaluation:
                    on_episode(record)
            self.finish(evaluation)


def write_records(evaluation: Evaluation, out: Path | None) -> None:
    """Write every episode as one line of JSON; None writes nothing.

    Raises:
        EnvironmentFault: The file cannot be written.
    """
    if out is None:
        return
    lines = (json.dumps(record.to_json()) + "\n" for record in evaluation.records)
    try:
        with out.open("w", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as problem:
        raise EnvironmentFault(f"{out} cannot be written: {problem.strerror}.") from problem


def merged_files(
    env_id: str, files: Iterable[Path], out: Path | None, report_to: Sequence[str] = ()
) -> tuple[Evaluation, dict[str, Any]]:
    """The episodes of several files as one evaluation, kept, and what it is an evaluation of.

    Args:
        env_id: The environment that all of them are of.
        files: As `--out` wrote them.
        out: Where they are to be written together.
        report_to: Dashboards that the figures are shown on too.

    Raises:
        ConfigurationError: A file is missing or damaged, or they cannot be put together, or `out`
            cannot be written.
    """
    check_report_to(out, report_to)
    check_out(out)
    paths = list(files)
    merged = Evaluation.merged(_evaluation(path, env_id) for path in paths)
    setting = {"env_id": env_id, "merged": [str(path) for path in paths], "k": merged.k}
    Output(out, setting, {}, report_to).keep(merged)
    return merged, setting


def _evaluation(path: Path, env_id: str) -> Evaluation:
    if not path.exists():
        raise ConfigurationError(f"--merge {path}: there is no such file or folder.")
    if path.is_dir() and not Run.open(path).is_complete:
        _cut(path)
    records = (
        tuple(read_episodes(path))
        if path.is_dir()
        else tuple(read_lines(path, episode_of, lambda: _cut(path)))
    )
    for record in records:
        if record.env_id != env_id:
            raise ConfigurationError(f"{path} has episodes of {record.env_id}, not of {env_id}.")
    return Evaluation(records)


def _cut(path: Path) -> None:
    raise ConfigurationError(
        f"{path} was not written to its end, so its shard is not whole; play it again."
    )
