"""Writes the episodes of `toolgym eval` and `toolgym merge` to the folder or file of `--out`.

A folder has the layout of a run folder, and episodes are appended after each batch. A file has one
episode per line, and is written at the end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from toolgym.commands import check_folder, say
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.records import EpisodeRecord, Evaluation
from toolgym.runs.dashboards import check_services, reported
from toolgym.runs.run import EVALUATION, KIND, Run, reproducibility

FILES: Final = (".jsonl", ".json", ".ndjson")
"""File extensions of `--out` for a file of episodes; any other name is a folder."""


class Output:
    """The output of an evaluation: a folder, a file, or none.

    Args:
        out: The value of `--out`.
        report_to: Names of dashboards to log the results to. They need a folder.

    Raises:
        ConfigurationError: The path cannot be written to or is not the output of an evaluation, or
            a dashboard is not installed.
    """

    def __init__(self, out: Path | None, report_to: Sequence[str] = ()) -> None:
        check_services(report_to)
        self._out, self._report_to = out, report_to
        self._run: Run | None = None
        # A device such as /dev/stdout is not a folder.
        self._is_folder = (
            out is not None and out.suffix not in FILES and (out.is_dir() or not out.exists())
        )
        if report_to and not self._is_folder:
            raise ConfigurationError(
                "--report-to needs an output folder; add --out, as in --out runs/evaluation."
            )
        if out is None:
            return
        if self._is_folder:
            if out.is_dir() and any(out.iterdir()) and not (out / "config.json").is_file():
                raise ConfigurationError(
                    f"--out {out} is not an empty folder; choose a new folder, or a file in it such"
                    f" as {out / 'one.jsonl'}."
                )
            return check_folder(out)
        parent = out.absolute().parent
        if out.is_dir():
            raise ConfigurationError(f"--out {out} is a folder; choose a file in it.")
        if out.is_file() and out.suffix not in FILES:
            raise ConfigurationError(
                f"--out {out} is an existing file; choose a folder, or a file such as one.jsonl."
            )
        if not parent.is_dir():
            raise ConfigurationError(
                f"--out {out}: the folder {out.parent} does not exist; create it."
            )
        if not os.access(out if out.exists() else parent, os.W_OK):
            raise ConfigurationError(
                f"--out {out} cannot be written: permission denied. Choose another place."
            )

    @contextmanager
    def writing(
        self, setting: Mapping[str, Any], env_kwargs: Mapping[str, Any]
    ) -> Iterator[Callable[[EpisodeRecord], None] | None]:
        """Create and lock the folder, and yield the function that writes an episode to it.

        If there is no folder, yield None.

        Args:
            setting: The settings of the evaluation, such as environment, policy and seed.
            env_kwargs: Arguments of the environment, which `toolgym audit` uses to check episodes.
        """
        if self._out is None or not self._is_folder:
            yield None
            return
        how = {name: value for name, value in setting.items() if name not in env_kwargs}
        about = {name: setting.get(name) for name in ("env_id", "policy", "dataset", "split")}
        settings = {**how, "env_kwargs": dict(env_kwargs)}
        config = {**about, "settings": settings, "reproducibility": reproducibility()}
        made = Run.create(self._out, {"kind": KIND, **config})
        made.write_summary({"status": "interrupted"})
        with made.held(), reported(made, self._report_to) as run:
            self._run = run
            yield lambda record: run.log_rollouts([{"phase": EVALUATION, **record.to_json()}])

    def finish(self, evaluation: Evaluation) -> None:
        """Write the results to the folder, or the episodes to the file.

        Raises:
            EnvironmentFault: The file cannot be written.
        """
        if self._run is not None:
            config = self._run.config
            figures = {
                "name": " ".join(str(config[key]) for key in ("dataset", "split") if config[key]),
                "temperature": config["settings"].get("temperature", 0.0),
                "tries": evaluation.k,
                "after": evaluation.summary(),
            }
            self._run.write_summary({"status": "complete", "evaluations": [figures]})
            say(f"Evaluation: {self._run.path}", err=True)
        elif self._out is not None:
            write_records(evaluation, self._out)


def write_records(evaluation: Evaluation, out: Path) -> None:
    """Write each episode as one line of JSON.

    Raises:
        EnvironmentFault: The file cannot be written.
    """
    lines = (json.dumps(record.to_json()) + "\n" for record in evaluation.records)
    try:
        with out.open("w", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as problem:
        raise EnvironmentFault(f"{out} cannot be written: {problem.strerror}.") from problem
