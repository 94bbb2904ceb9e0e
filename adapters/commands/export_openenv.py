"""`toolgym export openenv`: an environment as a folder that OpenEnv builds, serves and publishes.

The folder is text, so nothing of the extra `openenv` is needed to write it; `toolgym serve` is the
same server without a folder. Options and the folder are checked before any work.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adapters.commands.serve import Idle, MaxSessions
from adapters.commands.serving import Parsing
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

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write.")]
Served = Annotated[
    str,
    typer.Option("--env", help="Environment to serve.", autocompletion=environments),
]
Wheels = Annotated[
    list[Path] | None,
    typer.Option(
        "--wheel",
        metavar="FILE.whl",
        help="Wheel file that the container installs, such as that of toolgym where no package "
        "index has it; may be repeated.",
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace a folder that an earlier export wrote.")
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
    wheel: Wheels = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write an environment as a folder for OpenEnv.

    It holds a client for trainers and a server with its Dockerfile; the environment and its
    arguments are fixed in server/app.py.

    Example:
        toolgym export openenv toolgym_env
        toolgym export openenv compose_env --env aflowgym/Compose-v0 --split train
    """
    from adapters.export.openenv_folder import Packed, check_place, write_folder

    check_place(out, overwrite)
    check_folder(out)
    env_options = {"dataset": dataset, "split": split, "step_limit": step_limit, "parsing": parsing}
    env_kwargs = arguments_for(env_id, settings, **env_options)
    packed = Packed(env_id, env_kwargs, max_sessions, idle, tuple(wheel or ()))
    files = write_folder(packed, out, overwrite=overwrite)
    if as_json:
        print_json({"out": out, "env_id": env_id, "env_kwargs": env_kwargs, "files": files})
        return
    say(f"{out}: {env_id} for OpenEnv: {', '.join(files)}")
