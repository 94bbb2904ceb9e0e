"""Many episodes over HTTP, each under an id of its own.

    POST   /episodes              {"task_id": ...} or {"seed": ...} or {}: begin one
    POST   /episodes/{id}/mcp     the Model Context Protocol, for that episode
    DELETE /episodes/{id}         close it: its score

The protocol has no sessions over HTTP (2026-07-28), so the address says which episode is meant; the
tools stay as they are. Ids are drawn by `secrets`: whoever was not told one cannot guess it.

Safe by default: the server listens on the loopback interface only. A client chooses a task, and
never a path, a backend or a way of parsing. Each request passes `adapters.serving.guard` first.
Episodes are counted, and those that nobody plays are closed. Sessions of older protocols are not
kept at all.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import anyio.to_thread
import mcp_types as types
from mcp import MCPError
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from adapters.mcp.server import FAULT, Session, build_server, summary
from adapters.serving.guard import LONGEST_BODY, Guarded, Names
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError, EnvironmentFault, TaskRefused
from toolgym.records import EpisodeRecord

_logger = logging.getLogger(__name__)
_UNKNOWN: Final = "There is no such episode, or it was closed. POST /episodes begins one."


class Wanted(BaseModel):
    """The body of `POST /episodes`: a task by its id, or by a seed, or any."""

    model_config = ConfigDict(extra="forbid", strict=True)

    task_id: str | None = Field(None, max_length=1000)
    seed: int | None = Field(None, ge=0, lt=2**31)


class Full(Exception):
    """As many episodes are open as may be."""


class Episodes:
    """The open episodes by id.

    Args:
        make: Makes an environment.
        env_id: What it is called.
        most: Episodes that may be open at once.
        idle: Seconds after which an episode that nobody plays is closed.
        on_close: Is given the record of each closed episode.
    """

    def __init__(
        self,
        make: Callable[[], ToolEnv[Any]],
        env_id: str,
        *,
        most: int = 64,
        idle: float = 900.0,
        on_close: Callable[[EpisodeRecord], None] = lambda record: None,
    ) -> None:
        self._make, self._env_id = make, env_id
        self._most, self._idle, self._on_close = most, idle, on_close
        self._open: dict[str, Session] = {}
        self._beginning = 0

    def __len__(self) -> int:
        return len(self._open)

    async def begin(self, wanted: Wanted) -> tuple[str, Session]:
        """Begin an episode: its id, and its session.

        Raises:
            Full: There are too many.
            ConfigurationError: There is no such task.
            TaskRefused: The task cannot be played fairly.
            EnvironmentFault: The machine failed.
        """
        await self.close_idle()
        if len(self._open) + self._beginning >= self._most:
            raise Full
        self._beginning += 1
        try:
            session = Session(await anyio.to_thread.run_sync(self._reset, wanted), self._env_id)
        finally:
            self._beginning -= 1
        name = secrets.token_urlsafe(24)
        self._open[name] = session
        return name, session

    def _reset(self, wanted: Wanted) -> ToolEnv[Any]:
        env = self._make()
        named = wanted.task_id
        env.reset(seed=wanted.seed, options=None if named is None else {"task_id": named})
        return env

    def find(self, name: str) -> Session | None:
        """The open episode of this id."""
        session = self._open.get(name)
        if session is not None:
            session.last_used = anyio.current_time()
        return session

    async def close(self, name: str) -> EpisodeRecord | None:
        """Close an episode; None if it is not open."""
        session = self._open.pop(name, None)
        if session is None:
            return None
        record = await session.close()
        await anyio.to_thread.run_sync(self._on_close, record)
        return record

    async def close_idle(self, idle: float | None = None) -> None:
        """Close the episodes that nobody has played for a while.

        Args:
            idle: Seconds; None means those that the table was made with.
        """
        until = anyio.current_time() - (self._idle if idle is None else idle)
        for name, session in list(self._open.items()):
            if session.last_used <= until and not session.lock.locked():
                await self.close(name)

    @asynccontextmanager
    async def running(self, server: Any = None) -> AsyncIterator[None]:
        """The life of a server: idle episodes are closed from time to time, all in the end."""

        async def keep_tidy() -> None:
            while True:
                await anyio.sleep(min(self._idle, 60.0))
                await self.close_idle()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep_tidy)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    for name in list(self._open):
                        await self.close(name)


def application(env: ToolEnv[Any], episodes: Episodes, port: int) -> Guarded:
    """The application behind its guard.

    Args:
        env: Any instance of the environment, for tools and instructions.
        port: At which it is reached.
    """

    def session_of(context: Any) -> Session:
        session = episodes.find(context.request.path_params["episode"])
        if session is None:
            raise MCPError(types.INVALID_PARAMS, _UNKNOWN)
        return session

    async def begin(request: Request) -> Response:
        try:
            wanted = Wanted.model_validate_json(await request.body())
        except ValidationError:
            return refusal(400, 'The body is JSON: {"task_id": "..."}, {"seed": 0}, or {}.')
        try:
            name, session = await episodes.begin(wanted)
        except Full:
            return refusal(503, "Too many episodes are open: DELETE one of yours, or try later.")
        except (ConfigurationError, TaskRefused) as mistake:
            return refusal(404, str(mistake))
        except EnvironmentFault as fault:
            _logger.error("no episode could begin: %s", fault)
            return refusal(503, FAULT)
        address = f"/episodes/{name}/mcp"
        return JSONResponse({"episode": name, "mcp": address, "task_id": session.env.task.id}, 201)

    async def close(request: Request) -> Response:
        record = await episodes.close(request.path_params["episode"])
        if record is None:
            return refusal(404, _UNKNOWN)
        return JSONResponse({"task_id": record.task_id, **summary(record)})

    app = build_server(env, session_of, episodes.running).streamable_http_app(
        streamable_http_path="/episodes/{episode}/mcp",
        json_response=True,
        stateless_http=True,
        max_request_body_size=LONGEST_BODY,
        # The guard looks at names, on every path and not on that of the protocol only.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        custom_starlette_routes=[
            Route("/episodes", begin, methods=["POST"]),
            Route("/episodes/{episode}", close, methods=["DELETE"]),
        ],
    )
    return Guarded(app, Names.at(port), refuse_methods)


def refusal(status: int, sentence: str) -> Response:
    """What a client is told that asked for something else than there is."""
    return JSONResponse({"error": sentence}, status)


def refuse_methods(request: Request) -> Response | None:
    """The answer to a method that nothing here has."""
    if request.method in ("POST", "DELETE"):
        return None
    return Response(status_code=405, headers={"Allow": "POST, DELETE"})
