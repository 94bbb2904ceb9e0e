"""`toolgym mcp`: serve episodes by the Model Context Protocol.

Over stdin and stdout one process is one episode: the host starts it, the model plays, and the
episode is closed when the host leaves. Over HTTP one process serves many episodes at once, and a
client chooses the task of each. With stdin and stdout, nothing but the protocol goes to stdout.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from adapters.commands.serving import Out, Parsing, keeping, server_module
from toolgym.commands import (
    Dataset,
    EnvId,
    OneSplit,
    Settings,
    StepLimit,
    arguments_for,
    say,
)
from toolgym.errors import ConfigurationError

TaskId = Annotated[str | None, typer.Option(help="Id of the episode's task.")]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Random seed that selects the episode's task.")
]
Http = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65535,
        metavar="PORT",
        help="Serve many episodes on this port of 127.0.0.1; 0 takes a free port.",
    ),
]
Most = Annotated[
    int,
    typer.Option("--max-episodes", min=1, help="With --http, maximum number of open episodes."),
]
Idle = Annotated[
    float, typer.Option(min=1, help="With --http, seconds until an idle episode is closed.")
]


def command(
    env_id: EnvId,
    task_id: TaskId = None,
    seed: Seed = None,
    dataset: Dataset = None,
    split: OneSplit = None,
    step_limit: StepLimit = None,
    parsing: Parsing = None,
    settings: Settings = None,
    http: Http = None,
    most: Most = 64,
    idle: Idle = 900.0,
    out: Out = None,
) -> None:
    """Serve episodes over the Model Context Protocol (MCP).

    Without --http the host starts this command and talks to it over stdin and stdout: one process
    is one episode. With --http a client begins an episode by POST /episodes with {"task_id": ...}
    or {"seed": ...}, and the response holds its address.

    Example:
        toolgym mcp sqlgym/Explore-v0 --seed 3
        toolgym mcp sqlgym/Explore-v0 --task-id mountain_huts-039 --out episodes.jsonl
        toolgym mcp aflowgym/Compose-v0 --http 8765
    """
    from toolgym import registration

    if task_id is not None and seed is not None:
        raise ConfigurationError("--task-id and --seed both choose the task; give one of them.")
    if http is not None and (task_id is not None or seed is not None):
        raise ConfigurationError(
            "with --http a client chooses the task of each episode: leave --task-id and --seed out."
        )
    env_options = {"dataset": dataset, "split": split, "step_limit": step_limit, "parsing": parsing}
    env_kwargs = arguments_for(env_id, settings, **env_options)
    env = registration.make(env_id, **env_kwargs)
    if http is None:
        env.reset(seed=seed, options=None if task_id is None else {"task_id": task_id})
    server = server_module("toolgym mcp", "mcp", "mcp 2.3 or newer")
    import anyio

    keep = keeping(out)
    if http is None:
        keep(anyio.run(server.serve_stdio, env, env_id))
        return
    from adapters.mcp.http import Episodes, application
    from adapters.serving.guard import open_socket, serve

    def make() -> Any:
        return registration.make(env_id, **env_kwargs)

    listening = open_socket(http)
    port = listening.getsockname()[1]
    say(f"{env_id} is served at http://127.0.0.1:{port}/episodes")
    episodes = Episodes(make, env_id, most=most, idle=idle, on_close=keep)
    anyio.run(serve, application(env, episodes, port), listening)
