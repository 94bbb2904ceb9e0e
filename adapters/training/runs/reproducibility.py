"""Reproducibility record of a run: versions, machine, threads and data.

The record is written to `config.json` when a run begins. A run that is resumed on another machine
lists the differences, since its results may differ from that point on.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adapters.training.runs.evaluations import evaluations, played_with
from adapters.training.settings import TrainSettings
from toolgym import registration
from toolgym.runs import run
from toolgym.tasks import Task, TaskSet

_LARGE = 64 * 2**20  # bytes; only the size of a larger file is hashed


def reproducibility(settings: TrainSettings, threads: int) -> dict[str, Any]:
    """Return the reproducibility record of a run.

    Args:
        settings: Settings of the run.
        threads: Number of threads of PyTorch.

    Returns:
        The record of `toolgym.runs.run`, extended by `threads` and by `data`, a hash of all tasks
        and their files.
    """
    digest = hashlib.sha256()
    for env_kwargs in played_with(settings, evaluations(settings)):
        digest.update(data_hash(registration.make(settings.env_id, **env_kwargs).tasks).encode())
    return {**run.reproducibility(), "threads": threads, "data": digest.hexdigest()[:16]}


def data_hash(tasks: TaskSet[Task]) -> str:
    """Return a SHA-256 hash of the text and numbers of all tasks and of the content of their files.

    Paths are not hashed, so the same data have the same hash on every machine.
    """
    digest, files = hashlib.sha256(), dict[Path, str]()
    for task in tasks:
        for field in dataclasses.fields(task):
            value = getattr(task, field.name)
            if isinstance(value, Path):
                if value not in files:
                    files[value] = _file_hash(value)
                value = files[value]
            if value is None or isinstance(value, str | int | float | bool):
                digest.update(f"{field.name}={value!r}\n".encode())
    return digest.hexdigest()


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the differences between two records, each as `name then -> now`.

    Packages are listed by name.
    """
    before, after = ({**each, **each.get("packages", {}), "packages": 0} for each in (then, now))
    return [
        f"{name} {before.get(name)} -> {after.get(name)}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def _file_hash(path: Path) -> str:
    try:
        size = path.stat().st_size
        is_large = size > _LARGE
        return f"{size} bytes" if is_large else hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "unreadable"
