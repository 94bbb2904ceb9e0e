"""Many episodes over HTTP, each at its own address.

`POST /episodes` begins an episode; the body is `{"task_id": ...}`, `{"seed": ...}` or `{}`.

`POST /episodes/{id}/mcp` accepts requests of the Model Context Protocol for that episode.

`DELETE /episodes/{id}` closes the episode; the response contains the score.

The protocol (version 2026-07-28) has no sessions over HTTP, so the address identifies the episode.
Ids are generated with `secrets` and cannot be guessed. A client can choose a task, but not a path,
a backend or a parsing mode. Each request first passes the checks of `adapters.serving.guard`.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import anyio.to_thread
import mcp_types as types
from mcp import MCPError
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from adapters.mcp.server import FAULT, Session, build_server, summary
from adapters.serving.guard import LONGEST_BODY, LOOPBACK, guarded
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError, EnvironmentFault, TaskRefused
from toolgym.records import EpisodeRecord

_logger = logging.getLogger(__name__)
_UNKNOWN: Final = "There is no such episode, or it was closed. POST /episodes begins one."


class Wanted(BaseModel):
    """The body of `POST /episodes`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    task_id: str | None = Field(None, max_length=1000)
    seed: int | None = Field(None, ge=0, lt=2**31)


def application(
    env_id: str,
    env_kwargs: Mapping[str, Any],
    *,
    most: int = 64,
    idle: float = 900.0,
    on_close: Callable[[EpisodeRecord], None] = lambda record: None,
) -> ASGIApp:
    """Return the ASGI application.

    Args:
        env_id: Id of a registered environment.
        env_kwargs: Arguments of the environment.
        most: Maximum number of open episodes.
        idle: Seconds without calls after which a new episode may replace an open one.
        on_close: Function that is called with the record of each closed episode.
    """
    sessions: dict[str, Session | None] = {}  # None while the episode begins

    def refusal(status: int, sentence: str) -> Response:
        return JSONResponse({"error": sentence}, status)

    def session_of(context: Any) -> Session:
        session = sessions.get(context.request.path_params["episode"])
        if session is None:
            raise MCPError(types.INVALID_PARAMS, _UNKNOWN)
        session.last_used = anyio.current_time()
        return session

    def opened(wanted: Wanted) -> ToolEnv[Any]:
        env = registration.make(env_id, **env_kwargs)
        options = None if wanted.task_id is None else {"task_id": wanted.task_id}
        env.reset(seed=wanted.seed, options=options)
        return env

    async def begin(request: Request) -> Response:
        try:
            wanted = Wanted.model_validate_json(await request.body())
        except ValidationError:
            return refusal(400, 'The body must be {"task_id": "..."}, {"seed": 0}, or {}.')
        for name, session in list(sessions.items()):
            until = anyio.current_time() - idle
            if session and session.last_used < until and not session.lock.locked():
                await close(name)
        if len(sessions) >= most:
            return refusal(503, "Too many open episodes. DELETE one of yours, or try later.")
        name = secrets.token_urlsafe(24)
        sessions[name] = None
        try:
            env = await anyio.to_thread.run_sync(opened, wanted)
            sessions[name] = Session(env, env_id)
        except (ConfigurationError, TaskRefused) as mistake:
            return refusal(404, str(mistake))
        except EnvironmentFault as fault:
            _logger.error("no episode could begin: %s", fault)
            return refusal(503, FAULT)
        finally:
            if sessions[name] is None:
                del sessions[name]
        address = f"/episodes/{name}/mcp"
        return JSONResponse({"episode": name, "mcp": address, "task_id": env.task.id}, 201)

    async def close(name: str) -> EpisodeRecord | None:
        session = sessions.get(name)
        if session is None:
            return None
        del sessions[name]
        record = await session.close()
        await anyio.to_thread.run_sync(on_close, record)
        return record

    async def end(request: Request) -> Response:
        record = await close(request.path_params["episode"])
        if record is None:
            return refusal(404, _UNKNOWN)
        return JSONResponse(summary(record))

    @asynccontextmanager
    async def life(server: Any) -> AsyncIterator[None]:
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                for name in list(sessions):
                    await close(name)

    env = registration.make(env_id, **env_kwargs)
    app = build_server(env, session_of, life).streamable_http_app(
        streamable_http_path="/episodes/{episode}/mcp",
        json_response=True,
        stateless_http=True,
        max_request_body_size=LONGEST_BODY,
        custom_starlette_routes=[
            Route("/episodes", begin, methods=["POST"]),
            Route("/episodes/{episode}", end, methods=["DELETE"]),
        ],
    )
    return guarded(app, LOOPBACK)
