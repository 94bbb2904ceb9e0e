"""The guard of a server: the checks that every request passes before a framework reads it.

* **Names.** `Host`, and `Origin` where there is one, must name the server as it is reached. A web
  page that points a name of its own at 127.0.0.1 sends that name, and is refused.
* **Sizes.** A body, or a message of a WebSocket, has at most 1 MB.
* **Times.** The head and the body of a request each arrive within ten seconds, and a WebSocket on
  which nothing is said for a while is closed.

The body is read whole before the application is called, so that no framework has to be trusted to
stop reading. A connection on which no request begins is dropped (`ImpatientProtocol`): uvicorn
would keep it for ever.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import uvicorn
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolgym.errors import ConfigurationError

LOOPBACK: Final = "127.0.0.1"
LONGEST_BODY: Final = 1_000_000
PATIENCE: Final = 10.0
"""Seconds that a request may take to arrive, its head and its body each."""
MOST_CONNECTIONS: Final = 512
_TOO_BIG: Final = 1009
_GOING_AWAY: Final = 1001
_REFUSED: Final = 1008

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Check = Callable[[Request], Response | None]
"""Looks at a request that passed the guard; a response of it is the answer."""


class Names:
    """The names by which a server is reached.

    Args:
        names: `NAME:PORT` for one port, or `NAME` for any.

    >>> names = Names(["127.0.0.1:8000", "box.example"])
    >>> [names.has_host(each) for each in ("127.0.0.1:8000", "127.0.0.1:1", "BOX.example:9", "")]
    [True, False, True, False]
    >>> names.has_origin("http://box.example:9", host="box.example:9")
    True
    >>> names.has_origin("http://box.example:1", host="box.example:9")
    False
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(each.lower() for each in names if each)

    @classmethod
    def at(cls, port: int, host: str = LOOPBACK, more: Iterable[str] = ()) -> Names:
        """The names of a server that listens at a port: of the loopback interface, and its own."""
        own = [LOOPBACK, "localhost", host]
        # A client leaves out the port that the scheme implies.
        return cls([*(f"{name}:{port}" for name in own), *(own if port == 80 else ()), *more])

    def has_host(self, host: str | None) -> bool:
        """Whether a `Host` names the server."""
        text = (host or "").lower()
        name, colon, port = text.rpartition(":")
        return text in self._names or bool(colon and port.isdigit() and name in self._names)

    def has_origin(self, origin: str, host: str | None) -> bool:
        """Whether a page of this origin is one of the server itself."""
        try:
            parts = urlsplit(origin.lower())
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or parts.path:
            return False
        is_own = ":" in parts.netloc and parts.netloc in self._names
        return is_own or parts.netloc == (host or "").lower()


@dataclass(frozen=True)
class Sockets:
    """What is served by WebSocket, and for how long one may be silent.

    Attributes:
        path: The one path.
        idle: Seconds after which one is closed that has said nothing.
    """

    path: str
    idle: float


class Refused(Exception):
    """A body that is too long, or did not arrive in time.

    Args:
        status: Of the answer.
        sentence: Its text.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(status, sentence)
        self.status, self.sentence = status, sentence


class Guarded:
    """An application behind the guard.

    Args:
        app: An ASGI application.
        names: By which it is reached.
        check: What else is asked of an HTTP request.
        sockets: None where no WebSocket is served.
    """

    def __init__(
        self,
        app: Any,
        names: Names,
        check: Check = lambda request: None,
        sockets: Sockets | None = None,
    ) -> None:
        self._app, self._names, self._check, self._sockets = app, names, check, sockets
        self._open_sockets = 0

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] == "websocket":
            await self._serve_socket(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve_request(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _stranger(self, connection: HTTPConnection) -> Response | None:
        """The answer to whoever calls the server by another name."""
        host, origin = connection.headers.get("host"), connection.headers.get("origin")
        if not self._names.has_host(host):
            return Response("Invalid Host header", 421)
        if origin is not None and not self._names.has_origin(origin, host):
            return Response("Invalid Origin header", 403)
        return None

    async def _serve_request(self, scope: Any, receive: Receive, send: Send) -> None:
        request = Request(scope)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        answer = self._stranger(request)
        if answer is None and request.method == "POST" and kind != "application/json":
            answer = Response("Invalid Content-Type header", 400)
        answer = answer or self._check(request)
        if answer is not None:
            await answer(scope, receive, send)
            return
        try:
            body = await whole_body(request, receive)
        except Refused as refused:
            await Response(refused.sentence, refused.status)(scope, receive, send)
            return
        await self._app(scope, after(body, receive), send)

    async def _serve_socket(self, scope: Any, receive: Receive, send: Send) -> None:
        served, connection = self._sockets, HTTPConnection(scope)
        if (
            served is None
            or scope["path"] != served.path
            or scope["query_string"]  # it could name the session of somebody else
            or self._stranger(connection) is not None
            or self._open_sockets >= MOST_CONNECTIONS
        ):
            await send({"type": "websocket.close", "code": _REFUSED})  # not accepted yet: 403
            return
        self._open_sockets += 1
        try:
            await self._app(scope, patient(receive, send, served.idle), send)
        finally:
            self._open_sockets -= 1


async def whole_body(request: Request, receive: Receive) -> Message:
    """The body of a request as one message.

    Raises:
        Refused: It is too long, or too slow.
    """
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > LONGEST_BODY:
        raise Refused(413, "Request body too large")
    pieces: list[bytes] = []
    size = 0
    with anyio.move_on_after(PATIENCE):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return message
            size += len(message.get("body", b""))
            if size > LONGEST_BODY:
                raise Refused(413, "Request body too large")
            pieces.append(message.get("body", b""))
            if not message.get("more_body", False):
                return {"type": "http.request", "body": b"".join(pieces), "more_body": False}
    raise Refused(408, "Request body too slow")


def after(first: Message, receive: Receive) -> Receive:
    """The same messages, behind one that was read already."""
    waiting = [first]

    async def replayed() -> Message:
        return waiting.pop() if waiting else await receive()

    return replayed


def patient(receive: Receive, send: Send, idle: float) -> Receive:
    """Messages of a WebSocket; one that is too long ends it, and so do `idle` silent seconds."""

    async def timed() -> Message:
        message: Message | None = None
        with anyio.move_on_after(idle):
            message = await receive()
        code = 0
        if message is None:
            code = _GOING_AWAY
        elif len(message.get("text") or message.get("bytes") or "") > LONGEST_BODY:
            code = _TOO_BIG
        if not code:
            return message or {}
        await send({"type": "websocket.close", "code": code})
        return {"type": "websocket.disconnect", "code": code}

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
        self._is_socket = False
        self._await_request()

    def data_received(self, data: bytes) -> None:
        """Read on; what has arrived is a whole head, or it is still awaited."""
        super().data_received(data)
        if self._is_socket:
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._impatience is None:
            self._await_request()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Wait no longer: the connection is a WebSocket from now on, and somebody else's."""
        self._is_socket = True
        self._stop_waiting()
        super().handle_websocket_upgrade(event)

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


def open_socket(port: int, host: str = LOOPBACK) -> socket.socket:
    """A socket that listens, on the loopback interface unless told otherwise; port 0 is a free one.

    Raises:
        ConfigurationError: The port is taken, or the address is none of this machine.
    """
    try:
        return socket.create_server((host, port))
    except OSError as problem:
        raise ConfigurationError(
            f"port {port} of {host} cannot be used ({problem.strerror}); take another one,"
            " or 0 for any that is free."
        ) from problem


async def serve(app: Guarded, listening: socket.socket, *, sockets: bool = False) -> None:
    """Serve an application until the process is told to end.

    Args:
        sockets: WebSockets too.
    """
    config = uvicorn.Config(
        app,
        http=ImpatientProtocol,
        ws="websockets-sansio" if sockets else "none",
        ws_max_size=LONGEST_BODY,
        ws_per_message_deflate=False,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=16_384,
        timeout_graceful_shutdown=2,
    )
    await uvicorn.Server(config).serve(sockets=[listening])
