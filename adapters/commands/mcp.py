"""`toolgym mcp`: serve episodes over the Model Context Protocol.

Over stdin and stdout, a process serves one episode and writes only protocol messages to stdout.
Over HTTP, a process serves many episodes, and clients choose their tasks.
"""

from __future__ import annotations

from typing import Annotated

import typer

from adapters.commands.serving import Idle, Out, adapter_module, keeping
from toolgym.commands import Dataset, EnvId, OneSplit, Settings, StepLimit, arguments_for, say
from toolgym.errors import ConfigurationError

TaskId = Annotated[str | None, typer.Option(help="Id of the task.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Random seed that selects the task.")]
Http = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65535,
        metavar="PORT",
        help="Serve many episodes over HTTP on this port of 127.0.0.1; 0: any free port.",
    ),
]
Most = Annotated[
    int,
    typer.Option("--max-episodes", min=1, help="Maximum number of open episodes with --http."),
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

    Without --http, the server runs one episode over stdin and stdout, for an MCP host that starts
    this command. With --http, a client starts an episode with POST /episodes and {"task_id": ...}
    or {"seed": ...}; the response contains the URL of the episode.

    Example:
        toolgym mcp sqlgym/Explore-v0 --seed 3
        toolgym mcp sqlgym/Explore-v0 --task-id mountain_huts-039 --out episodes.jsonl
        toolgym mcp aflowgym/Compose-v0 --http 8765
    """
    from toolgym import registration

    if (task_id is not None) + (seed is not None) + (http is not None) > 1:
        raise ConfigurationError(
            "--task-id and --seed both choose the task, and with --http a client chooses it; give"
            " only one of these options."
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
    say(f"Serving {env_id} at http://127.0.0.1:{listening.getsockname()[1]}/episodes")
    serve(app, listening)
