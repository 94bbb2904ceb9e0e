"""Options and functions shared by the commands `serve`, `mcp` and `export openenv`."""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from toolgym.records import EpisodeRecord

Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE.jsonl", help="File to append each closed episode to."),
]
MaxSessions = Annotated[int, typer.Option(min=1, help="Maximum number of open sessions.")]
Idle = Annotated[float, typer.Option(min=1, help="Seconds after which an idle session is closed.")]


def adapter_module(extra: str, name: str) -> Any:
    """Import a module of the adapter that has the same name as an extra.

    Raises:
        ConfigurationError: The extra is not installed, or has an unsupported version.
    """
    try:
        return importlib.import_module(f"adapters.{extra}.{name}")
    except ImportError as problem:
        raise ConfigurationError(
            f"a package is missing or has an unsupported version ({problem}); run:"
            f" pip install 'toolgym[{extra}]'"
        ) from problem


def keeping(out: Path | None) -> Callable[[EpisodeRecord], None]:
    """Return a function that appends the record of an episode to a file.

    Raises:
        ConfigurationError: The file cannot be written to.
    """
    if out is None:
        return lambda record: None
    try:
        out.open("a", encoding="utf-8").close()
    except OSError as problem:
        raise ConfigurationError(f"--out {out} cannot be written: {problem.strerror}.") from problem
    lock = threading.Lock()  # episodes may be closed in several threads at once

    def keep(record: EpisodeRecord) -> None:
        with lock, out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record.to_json()) + "\n")

    return keep
