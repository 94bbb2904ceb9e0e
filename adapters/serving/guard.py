"""The HTTP server, and the checks that every request passes before a framework reads it.

- Hosts: `Host` must name the server, and `Origin`, which browsers send, must match it. Thus a web
  page of another site cannot reach the server, even under a host name that resolves to 127.0.0.1.

- Sizes: A request body or a WebSocket message has at most 1 MB.

- Times: The first header of a connection, and each body, must arrive within `PATIENCE` seconds.

- Connections: At most `MOST_CONNECTIONS` connections are open at the same time.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any, Final

import anyio
import uvicorn
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolgym.errors import ConfigurationError

LOOPBACK: Final = ("127.0.0.1", "localhost")
LONGEST_BODY: Final = 1_000_000
PATIENCE: Final = 10.0
MOST_CONNECTIONS: Final = 512


class RequestChecks:
    """ASGI middleware that rejects requests from other sites and bodies that arrive too late."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        is_whole = scope["type"] != "http"
        until = anyio.current_time() + PATIENCE

        async def receive_in_time() -> Message:
            nonlocal is_whole
            if is_whole:
                return await receive()
            with anyio.move_on_after(until - anyio.current_time()):
                message = await receive()
                is_whole = not message.get("more_body", False)
                return message
            raise HTTPException(408)

        if scope["type"] in ("http", "websocket"):
            headers = Headers(scope=scope)
            origin = headers.get("origin")
            if origin is not None and origin.partition("://")[2] != headers.get("host"):
                await PlainTextResponse("Invalid origin header", 403)(scope, receive, send)
                return
        await self.app(scope, receive_in_time, send)


class PatientProtocol(H11Protocol):  # type: ignore[misc, unused-ignore]
    """HTTP protocol of uvicorn with a time limit until the first request.

    Without this limit, uvicorn keeps a connection open until a request begins.
    """

    def connection_made(self, transport: Any) -> None:
        """Start the time limit of a new connection."""
        super().connection_made(transport)
        self.loop.call_later(
            PATIENCE,
            lambda: self.cycle is None and self in self.connections and transport.abort(),
        )


def guarded(app: ASGIApp, hosts: Sequence[str]) -> ASGIApp:
    """Return the application wrapped in the checks.

    Args:
        app: The application.
        hosts: Names by which clients reach the server, without ports.
    """
    limited = RequestBodyLimitMiddleware(RequestChecks(app), max_body_size=LONGEST_BODY)
    return TrustedHostMiddleware(limited, allowed_hosts=hosts, www_redirect=False)


def open_socket(port: int, host: str = LOOPBACK[0]) -> socket.socket:
    """Return a listening socket. Port 0 means any free port.

    Raises:
        ConfigurationError: If the port is in use, or the address does not belong to this machine.
    """
    try:
        return socket.create_server((host, port))
    except OSError as problem:
        raise ConfigurationError(
            f"port {port} of {host} cannot be used ({problem.strerror}). Choose another port, or 0"
            " for a free one."
        ) from problem


def serve(app: Any, listening: socket.socket) -> None:
    """Serve an application until the process is stopped."""
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="auto",  # none if websockets is not installed
        ws_max_size=LONGEST_BODY,
        ws_per_message_deflate=False,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=16_384,
        timeout_graceful_shutdown=2,
    )
    uvicorn.Server(config).run(sockets=[listening])
