"""The server: OpenEnv's routes behind the checks of `adapters.serving.guard`.

The WebSocket `/ws` serves a session with the messages reset, step, state and close. GET requests to
`/health`, `/metadata`, `/schema`, `/openapi.json` and `/list_environments` return information about
the server. GET `/toolgym/splits` returns the splits. POST requests to `/toolgym/num_tasks`,
`/toolgym/tasks`, `/toolgym/task` and `/toolgym/task_range` return the number of tasks in a split,
or some of these tasks.

OpenEnv's production mode omits `/reset`, `/step` and `/state` over HTTP. These routes would create
a new environment for each request, so no episode could continue.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.types import ConcurrencyConfig, ServerMode
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from adapters.openenv.catalogue import Catalogue
from adapters.openenv.environment import ToolgymEnvironment
from adapters.openenv.models import ToolgymAction, ToolgymObservation
from adapters.serving.guard import LOOPBACK, guarded
from toolgym.records import EpisodeRecord

NAME: Final = "toolgym"
"""Name of the environment in the URLs of tasks."""
_BODY: Final = (
    'The body is JSON: {"split": "..."}; with "index" for a task; with "start" and "stop", or'
    " without, for a range."
)


def application(
    catalogue: Catalogue,
    hosts: Sequence[str],
    *,
    max_sessions: int = 64,
    idle: float = 900.0,
    on_close: Callable[[EpisodeRecord], None] = lambda record: None,
) -> ASGIApp:
    """Return the application.

    Args:
        catalogue: The environment and its tasks.
        hosts: Names by which clients reach the server, in addition to those of the loopback
            interface.
        max_sessions: Maximum number of open sessions.
        idle: Seconds after which a session without messages is closed.
        on_close: Function that is called with the record of each episode that ends or is abandoned.
    """
    app = create_fastapi_app(
        functools.partial(ToolgymEnvironment, catalogue, on_close),
        ToolgymAction,
        ToolgymObservation,
        concurrency_config=ConcurrencyConfig(
            max_concurrent_envs=max_sessions, session_timeout=idle
        ),
        env_name=NAME,
        mode=ServerMode.PRODUCTION,
    )
    app.add_exception_handler(RequestValidationError, _refuse_body)
    return guarded(app, [*LOOPBACK, *hosts])


async def _refuse_body(request: Request, problem: Exception) -> Response:
    """Respond to an invalid body; FastAPI's own response fails if the body contains a nan."""
    return JSONResponse({"detail": _BODY}, 422)


def exported_application(
    env_id: str, env_kwargs: Mapping[str, Any], max_sessions: int, idle: float
) -> ASGIApp:
    """Return the ASGI application of an exported folder.

    The application accepts requests for the name of a Hugging Face Space (`SPACE_HOST`) and for the
    names in the variable `TOOLGYM_HOSTS`, which are separated by commas.
    """
    named = f"{os.environ.get('SPACE_HOST', '')},{os.environ.get('TOOLGYM_HOSTS', '')}"
    hosts = [name.strip() for name in named.split(",") if name.strip()]
    return application(Catalogue(env_id, env_kwargs), hosts, max_sessions=max_sessions, idle=idle)
