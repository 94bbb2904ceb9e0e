"""What the commands that serve episodes share: options, the server's module, and kept records.

A server needs packages that the base install does not have, so its module is imported by its
command when that is run, and never before.
"""

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

Parsing = Annotated[
    str | None,
    typer.Option(
        help="lenient (repairs malformed calls) or strict.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE.jsonl", help="Append each episode to this file when it is closed."),
]


def server_module(command: str, extra: str, package: str) -> Any:
    """The module `server` of the adapter that is called as its extra is.

    Args:
        command: Who needs it, such as `toolgym mcp`.
        extra: What to install.
        package: What that brings, with its version.

    Raises:
        ConfigurationError: The extra is not installed, or another version.
    """
    try:
        return importlib.import_module(f"adapters.{extra}.server")
    except ImportError as problem:
        raise ConfigurationError(
            f"{command} needs the package {package} ({problem}); run:"
            f" pip install 'toolgym[{extra}]'"
        ) from problem


def keeping(out: Path | None) -> Callable[[EpisodeRecord], None]:
    """A function that keeps the record of an episode.

    Raises:
        ConfigurationError: The file cannot be written to.
    """
    if out is None:
        return lambda record: None
    try:
        out.open("a", encoding="utf-8").close()
    except OSError as problem:
        raise ConfigurationError(f"--out {out} cannot be written: {problem.strerror}.") from problem

    alone = threading.Lock()  # several episodes may be closed at once, and a line must stay one

    def keep(record: EpisodeRecord) -> None:
        with alone, out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record.to_json()) + "\n")

    return keep
