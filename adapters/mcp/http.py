"""Many episodes over HTTP, each under an id of its own.

    POST   /episodes              {"task_id": ...} or {"seed": ...} or {}: begin one
    POST   /episodes/{id}/mcp     the Model Context Protocol, for that episode
    DELETE /episodes/{id}         close it: its score

The protocol has no sessions over HTTP (2026-07-28), so the address says which episode is meant; the
tools stay as they are. Ids are drawn by `secrets`: whoever was not told one cannot guess it.

Safe by default: the server listens on the loopback interface only. A client chooses a task, and
never a path, a backend or a way of parsing. Before anything else, each request is held to the
address that the server has (a web page that rebinds a name to 127.0.0.1 sends another Host or an
Origin), to JSON, to 1 MB and to ten seconds. Episodes are counted, and those that nobody plays are
closed. Sessions of older protocols are not kept at all.
"""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import anyio.to_thread
import mcp_types as types
import uvicorn
from mcp import MCPError
from mcp.server.transport_security import (
    RequestBodyLimitMiddleware,
    TransportSecurityMiddleware,
    TransportSecuritySettings,
)
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from adapters.mcp.server import FAULT, Session, build_server, summary
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError, EnvironmentFault, TaskRefused
from toolgym.records import EpisodeRecord

LOOPBACK: Final = "127.0.0.1"
LONGEST_BODY: Final = 1_000_000
PATIENCE: Final = 10.0
"""Seconds that a request may take to arrive, its head and its body each."""
MOST_CONNECTIONS: Final = 512
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

    names = [f"{name}:{port}" for name in (LOOPBACK, "localhost")]
    security = TransportSecuritySettings(
        allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
    )
    app = build_server(env, session_of, episodes.running).streamable_http_app(
        streamable_http_path="/episodes/{episode}/mcp",
        json_response=True,
        stateless_http=True,
        max_request_body_size=LONGEST_BODY,
        transport_security=security,
        custom_starlette_routes=[
            Route("/episodes", begin, methods=["POST"]),
            Route("/episodes/{episode}", close, methods=["DELETE"]),
        ],
    )
    return Guarded(app, security)


def refusal(status: int, sentence: str) -> Response:
    """What a client is told that asked for something else than there is."""
    return JSONResponse({"error": sentence}, status)


Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]


class TooSlow(Exception):
    """A body did not arrive in time."""


class Guarded:
    """An application behind the checks that every request passes, whatever its path."""

    def __init__(self, app: Any, security: TransportSecuritySettings) -> None:
        self._app = RequestBodyLimitMiddleware(app, LONGEST_BODY)
        self._security = TransportSecurityMiddleware(security)

    async def __call__(self, scope: Any, receive: Receive, send: Any) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        has_body = request.method == "POST"
        answer = await self._security.validate_request(request, is_post=has_body)
        if answer is None and request.method not in ("POST", "DELETE"):
            answer = Response(status_code=405, headers={"Allow": "POST, DELETE"})
        if answer is not None:
            await answer(scope, receive, send)
            return
        try:
            await self._app(scope, in_time(receive), send)
        except TooSlow:
            await Response("Request body too slow", 408)(scope, receive, send)


def in_time(receive: Receive) -> Receive:
    """The same, but a body has to be whole within `PATIENCE`; what comes later may take longer."""
    deadline = anyio.current_time() + PATIENCE
    is_whole = False

    async def timed() -> Message:
        nonlocal is_whole
        if is_whole:
            return await receive()
        message: Message | None = None
        with anyio.move_on_at(deadline):
            message = await receive()
        if message is None:
            raise TooSlow
        is_whole = not message.get("more_body", False)
        return message

    return timed


class ImpatientProtocol(H11Protocol):  # type: ignore[misc, unused-ignore]
    """HTTP as uvicorn reads it, and no connection is kept on which no request begins.

    The library closes a connection that is silent between two requests, but waits for ever for the
    first one, and for the end of one that has begun.
    """

    def connection_made(self, transport: Any) -> None:
        """Wait for a request from now on."""
        super().connection_made(transport)
        self._impatience: Any = None
        self._await_request()

    def data_received(self, data: bytes) -> None:
        """Read on; what has arrived is a whole head, or it is still awaited."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._impatience is None:
            self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Await nothing."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        self._impatience = self.loop.call_later(PATIENCE, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._impatience is not None:
            self._impatience.cancel()
            self._impatience = None


def open_socket(port: int) -> socket.socket:
    """A socket that listens on the loopback interface; port 0 takes a free one.

    Raises:
        ConfigurationError: The port is taken.
    """
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as problem:
        raise ConfigurationError(
            f"port {port} of {LOOPBACK} cannot be used ({problem.strerror}); take another one,"
            " or 0 for any that is free."
        ) from problem


async def serve_http(env: ToolEnv[Any], episodes: Episodes, listening: socket.socket) -> None:
    """Serve until the process is told to end; episodes that are open then are closed."""
    config = uvicorn.Config(
        application(env, episodes, listening.getsockname()[1]),
        http=ImpatientProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=16_384,
        timeout_graceful_shutdown=2,
    )
    await uvicorn.Server(config).serve(sockets=[listening])
