"""`toolgym serve`: serve episodes over OpenEnv, to trainers that use an OpenEnv client."""

from __future__ import annotations

from typing import Annotated

import typer

from adapters.commands.serving import Idle, MaxSessions, Out, adapter_module, keeping
from toolgym.commands import Dataset, EnvId, OneSplit, Settings, StepLimit, arguments_for, say
from toolgym.errors import ConfigurationError

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free port.")]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Additional host name under which clients reach the server; may be repeated.",
    ),
]


def command(
    env_id: EnvId,
    dataset: Dataset = None,
    split: OneSplit = None,
    step_limit: StepLimit = None,
    settings: Settings = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    allow_host: AllowHost = None,
    max_sessions: MaxSessions = 64,
    idle: Idle = 900.0,
    out: Out = None,
) -> None:
    """Serve episodes over OpenEnv.

    Each session is a WebSocket connection to /ws. The client chooses the task of an episode by its
    id, by split and index, or by a seed. Without --split, all splits are served.

    Example:
        toolgym serve sqlgym/Explore-v0
        toolgym serve aflowgym/Compose-v0 --port 8001 --split train --max-sessions 16
        toolgym serve sqlgym/Explore-v0 --host 0.0.0.0 --allow-host box.example
    """
    env_kwargs = arguments_for(
        env_id, settings, dataset=dataset, split=split, step_limit=step_limit
    )
    if host in ("0.0.0.0", "::") and not allow_host:
        raise ConfigurationError(
            f"--host {host} listens on all addresses and needs --allow-host NAME, the host name"
            " that clients use. Requests for other hosts are refused."
        )
    server = adapter_module("openenv", "server")
    from adapters.openenv.catalogue import Catalogue
    from adapters.serving.guard import open_socket, serve

    keep = keeping(out)
    catalogue = Catalogue(env_id, env_kwargs)
    listening = open_socket(port, host)
    hosts = [host, *(allow_host or ())]
    app = server.application(catalogue, hosts, max_sessions=max_sessions, idle=idle, on_close=keep)
    url = f"http://{host}:{listening.getsockname()[1]}"
    say(f"Serving {env_id} ({', '.join(catalogue.splits)}) over OpenEnv at {url}")
    serve(app, listening)
