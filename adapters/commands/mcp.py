"""`toolgym mcp`: serve episodes over the Model Context Protocol.

Over stdin and stdout one process is one episode, and nothing but the protocol goes to stdout. Over
HTTP one process serves many episodes at once, and a client chooses the task of each.
"""

from __future__ import annotations

from typing import Annotated

import typer

from adapters.commands.serving import Idle, Out, adapter_module, keeping
from toolgym.commands import Dataset, EnvId, OneSplit, Settings, StepLimit, arguments_for, say
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


def command(
    env_id: EnvId,
    task_id: TaskId = None,
    seed: Seed = None,
    dataset: Dataset = None,
    split: OneSplit = None,
    step_limit: StepLimit = None,
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

    if (task_id is not None) + (seed is not None) + (http is not None) > 1:
        raise ConfigurationError(
            "--task-id and --seed both choose the task, and with --http a client does: give one of"
            " the three."
        )
    env_kwargs = arguments_for(
        env_id, settings, dataset=dataset, split=split, step_limit=step_limit
    )
    env = registration.make(env_id, **env_kwargs)
    keep = keeping(out)
    if http is None:
        env.reset(seed=seed, options=None if task_id is None else {"task_id": task_id})
        server = adapter_module("mcp", "server")
        import anyio

        keep(anyio.run(server.serve_stdio, env, env_id))
        return
    episodes = adapter_module("mcp", "http")
    from adapters.serving.guard import open_socket, serve

    listening = open_socket(http)
    app = episodes.application(env_id, env_kwargs, most=most, idle=idle, on_close=keep)
    say(f"{env_id} is served at http://127.0.0.1:{listening.getsockname()[1]}/episodes")
    serve(app, listening)
