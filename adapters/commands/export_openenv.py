"""`toolgym export openenv`: an environment as a folder for OpenEnv."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adapters.commands.serving import Idle, MaxSessions, Parsing
from toolgym.commands import (
    AsJson,
    Dataset,
    OneSplit,
    Settings,
    StepLimit,
    arguments_for,
    check_folder,
    environments,
    print_json,
    say,
)

Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder to write; it must be absent or empty.")
]
Served = Annotated[
    str,
    typer.Option("--env", help="Environment to serve.", autocompletion=environments),
]


def openenv(
    out: Folder,
    env_id: Served = "sqlgym/Explore-v0",
    dataset: Dataset = None,
    split: OneSplit = None,
    step_limit: StepLimit = None,
    parsing: Parsing = None,
    settings: Settings = None,
    max_sessions: MaxSessions = 64,
    idle: Idle = 900.0,
    as_json: AsJson = False,
) -> None:
    """Write an environment as a folder for OpenEnv.

    It holds a client for trainers and a server with its Dockerfile; the environment and its
    arguments are fixed in server/app.py. The extra openenv is not needed to write it.

    Example:
        toolgym export openenv toolgym_env
        toolgym export openenv compose_env --env aflowgym/Compose-v0 --split train
    """
    from adapters.export.folder import check_place
    from adapters.export.openenv_folder import write_folder

    check_place(out)
    check_folder(out)
    env_options = {"dataset": dataset, "split": split, "step_limit": step_limit, "parsing": parsing}
    env_kwargs = arguments_for(env_id, settings, **env_options)
    files = write_folder(out, env_id, env_kwargs, max_sessions=max_sessions, idle=idle)
    if as_json:
        print_json({"out": out, "env_id": env_id, "env_kwargs": env_kwargs, "files": files})
    else:
        say(f"{out}: {env_id} for OpenEnv: {', '.join(files)}")
