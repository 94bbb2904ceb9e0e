"""The reproducibility record: versions, machine, threads and data, which decide over the numbers.

It goes into `config.json` when a run begins. When the run is taken up again elsewhere, what
differs is named, since from there on its numbers may differ too.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolgym import registration
from toolgym.runs import run
from toolgym.tasks import Task, TaskSet

_LARGE = 64 * 2**20  # bytes; of a larger file only the size is taken


def reproducibility(env_id: str, threads: int, *splits: Mapping[str, Any]) -> dict[str, Any]:
    """The record.

    Args:
        threads: That PyTorch computes with.
        splits: Arguments of the environment, for training and for evaluation.

    Returns:
        That of `toolgym.runs.run`, and `threads`, and `data`: a hash of all tasks and their files.
    """
    digest = hashlib.sha256()
    for env_kwargs in splits:
        digest.update(data_hash(registration.make(env_id, **env_kwargs).tasks).encode())
    return {**run.reproducibility(), "threads": threads, "data": digest.hexdigest()[:16]}


def data_hash(tasks: TaskSet[Task]) -> str:
    """The sha256 of a task set: every task's texts and numbers, and the content of its files.

    Paths do not count, so the same data has the same hash wherever it lies.
    """
    digest, files = hashlib.sha256(), dict[Path, str]()
    for task in tasks:
        for field in dataclasses.fields(task):
            value = getattr(task, field.name)
            if isinstance(value, Path):
                value = files.setdefault(value, "") or _file_hash(value)
                files[getattr(task, field.name)] = value
            if value is None or isinstance(value, str | int | float | bool):
                digest.update(f"{field.name}={value!r}\n".encode())
    return digest.hexdigest()


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The differences of two records, each as `name then -> now`; packages by their own names."""
    before = {**then, **then.get("packages", {})}
    after = {**now, **now.get("packages", {})}
    names = sorted((before.keys() | after.keys()) - {"packages"})
    return [
        f"{name} {before.get(name)} -> {after.get(name)}"
        for name in names
        if before.get(name) != after.get(name)
    ]


def _file_hash(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > _LARGE:
            return f"{size} bytes"
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "unreadable"
