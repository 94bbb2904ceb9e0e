"""`Run`: a folder with the files of a training run or an evaluation, which is readable after a
crash.

* `config.json`: The settings, and `reproducibility`. The file is written once, before all others.
* `metrics.jsonl`: One JSON object per line, with `phase`, `step` (from 1 within the phase) and
  numbers.
* `rollouts.jsonl`: One episode per line, with `phase`, `step` (or null) and the episode's record.
* `preflight.json`: The result of the check before training, with `verdict` (go or no-go), `figures`
  and `findings`. Each finding has a `check`, a `level` (no-go or warn), a `reason` and an `advice`.
* `summary.json`: The result, which is always replaced completely. The `status` is `interrupted`
  until the run ends. Then it is `complete`, `refused` (by the preflight), `stopped` (by the guards)
  or `failed` (by an error). A refused, stopped or failed run also has a `diagnosis`.
* `checkpoints/`: One folder for each checkpoint, written by the trainer. The `toolgym.json` in a
  folder contains the environment and the data (`toolgym.runs.checkpoints`).
* `report.html`: The report, which `toolgym.report` makes from these files.
* `.lock`: The lock of the process that writes the run.

A run is written by one process, which may be killed at any time. Each record is one line, written
in a single operation. An incomplete last line is dropped with a note in `Run.notes`. Any other
damaged line raises an error that names the file and line. Nothing is overwritten: if a folder
exists, a number is appended to the name of the new folder. The values nan and infinity are written
as null under their keys. This module reads no clock; times are measured by the caller.
"""

from __future__ import annotations

import itertools
import math
import os
import platform
import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

from toolgym.errors import ConfigurationError
from toolgym.records import html_table
from toolgym.runs.files import (
    Record,
    append_lines,
    line_text,
    object_text,
    plain,
    read_lines,
    read_object,
    replace_file,
)

CONFIG, SUMMARY = "config.json", "summary.json"
LOCK = ".lock"
METRICS, ROLLOUTS = "metrics.jsonl", "rollouts.jsonl"
SELECTION = "selection"
"""The phase of the evaluations during reinforcement learning. The step of such an evaluation is the
training step, or 0 before the first step.
"""
METRIC_PHASES = ("sft", "grpo", SELECTION)
"""The phases that have steps with metrics."""
ITEMS = "-items"
"""Suffix of phases whose tasks are on items that are absent from training."""
SAMPLED = "-sampled"
"""Suffix of phases in which the model samples at the training temperature."""
ROLLOUT_PHASES = (
    *("before", "after", "grpo"),
    *(f"{when}{suffix}" for suffix in (ITEMS, SAMPLED) for when in ("before", "after")),
)
"""Phases of rollouts: the evaluations before and after training, training itself, and the
evaluations on unseen items and with sampling.
"""
KIND = "evaluation"
"""The `kind` in the `config.json` of an evaluation by `toolgym eval`."""
EVALUATION = "eval"
"""The phase of the episodes in an output folder of `toolgym eval`."""
ALL_PHASES = (*ROLLOUT_PHASES, SELECTION, EVALUATION)
RECORDED_PACKAGES = (
    *("toolgym", "gymnasium", "pydantic", "numpy", "sqlglot", "sqlite-utils"),
    *("rapidfuzz", "torch", "transformers", "tokenizers", "trl", "datasets", "accelerate", "peft"),
)
"""Packages whose versions are recorded, because they affect the numbers of a run."""
_TRAININGS = {"sft": ("SFT", "sft_steps"), "grpo": ("GRPO", "steps")}
"""The name of each training phase, and the setting with its number of steps."""
_STATES = {
    "running": "Still running",
    "interrupted": "Interrupted",
    "refused": "Refused by the preflight check, so GRPO did not start",
    "stopped": "Stopped by the guards",
    "failed": "Failed",
}
SHOWN = ("env_id", "dataset", "model", "policy", "trainer", "status")
"""Keys of the config and the summary that a notebook shows."""


class Run:
    """A run folder, created by `Run.create` or opened by `Run.open`.

    Attributes:
        path: The folder.
        config: The content of `config.json`.
        notes: Sentences about cut-off lines that were dropped while reading or appending.
    """

    def __init__(self, path: Path, config: Record) -> None:
        self.path = path
        self.config = config
        self.notes: list[str] = []

    @classmethod
    def create(cls, path: Path | str, config: Mapping[str, Any]) -> Run:
        """Create a new run folder: `path`, or `path-2`, `path-3` and so on if it exists.

        An existing empty folder is used as if it were new.

        Raises:
            ConfigurationError: `config` cannot be converted to JSON, or the folder cannot be
                created.
        """
        record = plain(config, "config")
        path = Path(path)
        if path.name in ("", ".."):
            path = path.resolve()
        names = itertools.chain([path.name], (f"{path.name}-{n}" for n in itertools.count(2)))
        folder = next(path.parent / name for name in names if _claim(path.parent / name, record))
        return cls(folder, record)

    @classmethod
    def open(cls, path: Path | str) -> Run:
        """Open an existing run folder, complete or not.

        Raises:
            ConfigurationError: The folder does not exist, or has no readable `config.json`.
        """
        path = Path(path)
        cure = "Run folders are written by `toolgym train` and `toolgym eval --out FOLDER`."
        if path.is_file():
            raise ConfigurationError(f"{path} is a file, not a run folder. {cure}")
        if not path.is_dir():
            raise ConfigurationError(f"There is no run folder {path}. {cure}")
        if not (path / CONFIG).is_file():
            if inside := sorted(file.parent.name for file in path.glob(f"*/{CONFIG}")):
                cure = f"It contains the runs {', '.join(inside)}: name one of them."
            raise ConfigurationError(f"{path} is not a run folder: {CONFIG} is missing. {cure}")
        return cls(path, read_object(path / CONFIG))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the folder while this process writes the run, so that readers can tell that the run
        is in progress.

        The operating system releases the lock when the process ends, for whatever reason.

        Raises:
            ConfigurationError: Another process has locked the folder.
        """
        with (self.path / LOCK).open("wb") as stream:
            if not _lock(stream, shared=False):
                raise ConfigurationError(
                    f"{self.path} is being written by another process: wait for it, or stop it."
                )
            yield

    @property
    def is_held(self) -> bool:
        """Whether a process is writing the run."""
        file = self.path / LOCK
        if not file.is_file():
            return False
        with file.open("rb") as stream:
            return not _lock(stream, shared=True)

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.path.resolve().name

    def log_metrics(self, record: Mapping[str, Any]) -> None:
        """Append the numbers of one step to `metrics.jsonl`.

        Args:
            record: A dict with `phase` (one of `METRIC_PHASES`), `step` (from 1) and numbers by
                name.

        Raises:
            ConfigurationError: Phase or step is invalid, or a value cannot be converted to JSON.
        """
        self._append(METRICS, [_checked(plain(record, "metrics"), METRIC_PHASES)])

    def metrics(self, phase: str | None = None) -> list[Record]:
        """Return all records of `metrics.jsonl`, or the records of one phase, in order.

        Raises:
            ConfigurationError: A line other than the last is damaged. The message names the
                file and the line.
        """
        records = self._lines(METRICS)
        return [record for record in records if phase is None or record["phase"] == phase]

    def cut_metrics(self, phase: str, after_step: int) -> None:
        """Remove the records of a phase that follow a step, so that a resumed run can write them
        again.
        """
        self._cut(METRICS, phase, after_step)

    def log_rollouts(self, rollouts: Iterable[Mapping[str, Any]]) -> None:
        """Append episodes to `rollouts.jsonl`.

        Args:
            rollouts: Dicts `{"phase": ..., "step": int or None, **record}`. The phase is one of
                `ALL_PHASES`; `step` is None before and after training.

        Raises:
            ConfigurationError: Phase or step is invalid, or a value cannot be converted to JSON. In
                this case, nothing is written.
        """
        self._append(ROLLOUTS, [_checked(plain(item, "rollout"), ALL_PHASES) for item in rollouts])

    def rollouts(self, phase: str | None = None) -> Iterator[Record]:
        """Yield all episodes of `rollouts.jsonl`, or the episodes of one phase.

        Raises:
            ConfigurationError: A line other than the last is damaged. The message names the
                file and the line.
        """
        records = self._lines(ROLLOUTS)
        return (record for record in records if phase is None or record["phase"] == phase)

    def cut_rollouts(self, phase: str, after_step: int = 0) -> None:
        """Remove the episodes of a phase that follow a step, and all episodes of the phase without
        a step.
        """
        self._cut(ROLLOUTS, phase, after_step)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Replace the complete `summary.json`."""
        replace_file(self.path / SUMMARY, [object_text(plain(summary, "summary"))])

    @property
    def summary(self) -> Record:
        """The content of `summary.json`; empty if the file does not exist."""
        file = self.path / SUMMARY
        return read_object(file) if file.is_file() else {}

    @property
    def evaluations(self) -> list[Record]:
        """The evaluations that the summary lists."""
        listed = self.summary.get("evaluations")
        return [e for e in listed if isinstance(e, dict)] if isinstance(listed, list) else []

    @property
    def status(self) -> str:
        """The status: `running` while a process writes the run, or else the status in the
        summary.
        """
        status = str(self.summary.get("status", "interrupted"))
        return "running" if self.is_held and status != "complete" else status

    @property
    def is_complete(self) -> bool:
        """Whether the status of the run is `complete`."""
        return self.status == "complete"

    @property
    def progress(self) -> str:
        """The progress of a training run, such as `step 12 of 60 of GRPO`; "" before the first
        step."""
        steps = [each for each in self.metrics() if each["phase"] in _TRAININGS]
        if not steps:
            return ""
        name, setting = _TRAININGS[steps[-1]["phase"]]
        settings = self.config.get("settings")
        total = settings.get(setting) if isinstance(settings, dict) else None
        of = f" of {total}" if isinstance(total, int) else ""
        return f"step {steps[-1]['step']}{of} of {name}"

    @property
    def state(self) -> str:
        """A sentence about an incomplete run, with the command that continues a training run.

        The sentence is "" for a complete run. For an evaluation, the sentence contains the number
        of finished tasks.
        """
        status = self.status
        if status == "complete":
            return ""
        if self.config.get("kind") == KIND:
            played = len({str(each.get("task_id")) for each in self.rollouts()})
            state = "Still running" if status == "running" else "Incomplete"
            return f"{state}: {played:,} task{'s' * (played != 1)} played so far."
        state = f"{_STATES.get(status, 'Incomplete')}: {self.progress or 'before any step'}."
        if status == "running":
            return state
        option = " --no-preflight" if status == "refused" else ""
        how = "Train anyway" if status in ("refused", "stopped") else "Continue"
        return f"{state} {how}: toolgym train --resume {shlex.quote(str(self.path))}{option}"

    def _repr_html_(self) -> str:
        """Return the settings and the result as an HTML table, for notebooks."""
        summary = self.summary
        known = {**self.config, **summary, "status": self.state or "complete"}
        facts = {name: known.get(name) for name in SHOWN}
        first, *_ = *self.evaluations, summary
        for when in ("before", "after"):
            found = first.get(when)
            if isinstance(found, dict):
                facts |= {f"{name} {when}": found.get(name) for name in ("accuracy", "interval")}
        return html_table(f"Run {self.name}", facts)

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints, which may not exist yet."""
        return self.path / "checkpoints"

    def _append(self, name: str, records: Sequence[Record]) -> None:
        if append_lines(self.path / name, records):
            self._note_cut(name)

    def _lines(self, name: str) -> Iterator[Record]:
        phases = METRIC_PHASES if name == METRICS else ALL_PHASES
        return read_lines(
            self.path / name, lambda record: _checked(record, phases), lambda: self._note_cut(name)
        )

    def _note_cut(self, name: str) -> None:
        note = f"The last line of {name} was cut off and is omitted."
        if note not in self.notes:
            self.notes.append(note)

    def _cut(self, name: str, phase: str, after_step: int) -> None:
        if not (self.path / name).is_file():
            return
        remaining = (
            record
            for record in self._lines(name)
            if record["phase"] != phase
            or (math.inf if record["step"] is None else record["step"]) <= after_step
        )
        replace_file(self.path / name, (line_text(record) for record in remaining))


def reproducibility() -> Record:
    """Return the software and hardware that may affect the numbers of a run.

    Returns:
        A dict with `python`, `implementation`, `platform`, `machine`, `cpus`, `sqlite`, and
        `packages` (the versions of installed packages by name).
    """
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "sqlite": sqlite3.sqlite_version,
        "packages": {name: found for name in RECORDED_PACKAGES if (found := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _lock(stream: IO[bytes], *, shared: bool) -> bool:
    """Lock a file until it is closed. Return False if another process has locked the file."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        return True
    try:
        fcntl.flock(stream, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _claim(folder: Path, config: Record) -> bool:
    """Create the folder and its config. Return False if the folder is not empty."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            return False
        with (folder / CONFIG).open("xb") as stream:  # of two processes, only one succeeds
            stream.write(object_text(config))
    except FileExistsError:
        return False
    except OSError as problem:
        raise ConfigurationError(
            f"The run folder {folder} cannot be created: {problem.strerror}. Choose another folder."
        ) from None
    return True


def _checked(record: Any, phases: tuple[str, ...]) -> Record:
    """Check the phase and step of a record, and return the record. Only rollouts may have the step
    None."""
    if not isinstance(record, dict):
        raise ConfigurationError(f"a record must be a JSON object, not {type(record).__name__}")
    phase, step = record.get("phase"), record.get("step")
    if phase not in phases:
        raise ConfigurationError(f"`phase` must be one of {', '.join(phases)}, not {phase!r}")
    least = 0 if phase == SELECTION else 1
    if not ((step is None and phases is ALL_PHASES) or (type(step) is int and step >= least)):
        raise ConfigurationError(f"`step` must be a whole number from {least}, not {step!r}")
    return {**record, "step": step}
