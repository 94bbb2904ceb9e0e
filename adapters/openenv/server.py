"""The server: OpenEnv's own routes, those of them that are safe, behind the guard.

    WS    /ws                               a session: reset, step, state, close
    GET   /health  /metadata  /schema  /openapi.json  /list_environments
    GET   /toolgym/splits
    POST  /toolgym/num_tasks  /toolgym/tasks  /toolgym/task  /toolgym/task_range

A client chooses tasks, and nothing else. OpenEnv offers more, and it is refused here: `/reset` and
`/step` over HTTP make an environment for each request, which no limit counts and in which no
episode lives longer than it; the sessions of `/mcp` outlive those who open them. Each request
passes `adapters.serving.guard` first.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.types import ServerMode
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from adapters.openenv.catalogue import Catalogue
from adapters.openenv.environment import ToolgymEnvironment
from adapters.openenv.models import ToolgymAction, ToolgymObservation, ToolgymState
from adapters.serving.guard import Guarded, Names, Sockets, open_socket, serve
from toolgym.records import EpisodeRecord

NAME: Final = "toolgym"
"""What OpenEnv calls the environment in the addresses of tasks."""
SESSIONS: Final = 64
IDLE: Final = 900.0
_GET: Final = re.compile(
    rf"/(health|metadata|schema|openapi\.json|list_environments|{NAME}/splits)"
)
_POST: Final = re.compile(rf"/{NAME}/(num_tasks|tasks|task|task_range)")
_BY_SOCKET: Final = "An episode is played over the WebSocket /ws, in which it lives."
_BODY: Final = (
    'The body is JSON: {"split": "..."}; with "index" for a task; with "start" and "stop", or'
    " without, for a range."
)
_NO_MCP: Final = "MCP is not served here; `toolgym mcp` serves it."


def application(
    catalogue: Catalogue,
    names: Names,
    *,
    max_sessions: int = SESSIONS,
    idle: float = IDLE,
    on_close: Callable[[EpisodeRecord], None] | None = None,
) -> Guarded:
    """The application behind its guard.

    Args:
        catalogue: What is served.
        names: By which the server is reached.
        max_sessions: Sessions that may be open at once; one more is told so and closed.
        idle: Seconds after which a session is closed in which nothing is said.
        on_close: Is given the record of each episode that is over or left.
    """
    app = create_fastapi_app(
        functools.partial(ToolgymEnvironment, catalogue, on_close),
        ToolgymAction,
        ToolgymObservation,
        max_concurrent_envs=max_sessions,
        env_name=NAME,
        state_cls=ToolgymState,
        mode=ServerMode.SIMULATION,
    )
    app.add_exception_handler(RequestValidationError, refuse_body)
    return Guarded(app, names, refuse_routes, Sockets("/ws", idle))


async def refuse_body(request: Request, problem: Exception) -> Response:
    """The answer to a body that is not what a route takes.

    FastAPI's own quotes the body, and fails where that holds a nan or half a character.
    """
    return JSONResponse({"detail": _BODY}, 422)


def refuse_routes(request: Request) -> Response | None:
    """The answer to a request for what is not served; None for what is."""
    path, method = request.url.path, request.method
    if path == "/mcp" and method == "POST":  # `openenv validate --url` looks for JSON-RPC there
        error = {"code": -32601, "message": _NO_MCP}
        return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error})
    if path in ("/reset", "/step", "/state", "/ws"):
        return JSONResponse({"detail": _BY_SOCKET}, 409)
    methods = [name for name, known in (("GET", _GET), ("POST", _POST)) if known.fullmatch(path)]
    if not methods:
        return JSONResponse({"detail": "There is nothing here."}, 404)
    if method not in methods:
        return Response(status_code=405, headers={"Allow": ", ".join(methods)})
    return None


def names_of_container(more: Iterable[str] = ()) -> Names:
    """The names of a server in a container, which does not know under which port it is reached.

    Those of the loopback interface, the one that Hugging Face gives a Space (`SPACE_HOST`), and
    what `TOOLGYM_HOSTS` lists with commas.

    Args:
        more: Other ones.
    """
    given = os.environ.get("TOOLGYM_HOSTS", "").split(",")
    space = os.environ.get("SPACE_HOST", "")
    return Names(["127.0.0.1", "localhost", space, *(each.strip() for each in given), *more])


def exported_application(
    env_id: str, env_kwargs: Mapping[str, Any], max_sessions: int, idle: float
) -> Guarded:
    """What the `server/app.py` of an exported folder serves."""
    catalogue = Catalogue(env_id, env_kwargs)
    return application(catalogue, names_of_container(), max_sessions=max_sessions, idle=idle)


def run(app: Guarded, host: str, port: int) -> None:
    """Serve an exported application until the process is told to end.

    Raises:
        ConfigurationError: The port is taken, or the address is none of this machine.
    """
    import anyio

    async def serving() -> None:
        await serve(app, open_socket(port, host), sockets=True)

    anyio.run(serving)
