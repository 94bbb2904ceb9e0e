"""A language-model server without a model: it speaks the OpenAI protocol and says what it is told.

For tests of everything that asks a server: real sockets on the loopback interface, chat completions
without streaming, and faults on demand, each the way a real server fails. It keeps what it was
asked. Each connection has a thread of the process that starts the server.
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

Body = dict[str, Any]
Answer = Callable[[Body], "str | Body"]


class Response(NamedTuple):
    """A response as it is sent.

    Attributes:
        body: Of the response.
        headers: More headers.
        keep: How many bytes of the whole are sent before the connection is cut; None sends all.
        delay: Seconds before it is sent.
    """

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = {}
    keep: int | None = None
    delay: float = 0.0


def completion(message: str | Body, asked: Body, **changed: Any) -> Body:
    """A chat completion of the protocol: a message, or the words of one, with plausible usage."""
    whole: Body = message if isinstance(message, dict) else {"content": message}
    finish = "tool_calls" if whole.get("tool_calls") else "stop"
    read = len(json.dumps(asked.get("messages", []))) // 4 + 1
    written = len(json.dumps(whole)) // 4 + 1
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    choice = {"index": 0, "message": {"role": "assistant", **whole}, "finish_reason": finish}
    made: Body = {
        "id": "chatcmpl-0", "object": "chat.completion", "created": 0,
        "model": asked.get("model", ""), "choices": [choice], "usage": usage,
    }  # fmt: skip
    return {**made, **changed}


def _plain(made: Body) -> Response:
    return Response(json.dumps(made).encode())


def _error(status: int, code: str = "", message: str = "no", **headers: str) -> Response:
    error = {"message": message, "type": "error", "code": code or None}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(json.dumps({"error": error}).encode(), status, named)


def _finished(made: Body, finish: str) -> Response:
    made["choices"][0]["finish_reason"] = finish
    return _plain(made)


#: What can go wrong, by name: each makes the response of a completion that was fine.
FAULTS: Final[Mapping[str, Callable[[Body, str], Response]]] = {
    "429": lambda made, key: _error(429),
    "429 in 0.05 s": lambda made, key: _error(429, retry_after="0.05"),
    "429 in an hour": lambda made, key: _error(429, retry_after="3600"),
    "quota": lambda made, key: _error(429, "insufficient_quota"),
    "500": lambda made, key: _error(500),
    "401": lambda made, key: _error(401, "invalid_api_key", f"Incorrect API key: {key}"),
    "404": lambda made, key: _error(404, "model_not_found", "no such model"),
    "400": lambda made, key: _error(400, "", f"tools are not supported, {key}"),
    "too long": lambda made, key: _error(400, "context_length_exceeded", "too many tokens"),
    "slow": lambda made, key: _plain(made)._replace(delay=30.0),
    "cut": lambda made, key: _plain(made)._replace(keep=100),
    "closed": lambda made, key: _plain(made)._replace(keep=0),
    "malformed JSON": lambda made, key: Response(json.dumps(made).encode()[:-20]),
    "HTML": lambda made, key: Response(b"<html>Please log in</html>"),
    "empty choices": lambda made, key: _plain({**made, "choices": []}),
    "no message": lambda made, key: _plain({**made, "choices": [{"index": 0}]}),
    "wrong usage": lambda made, key: _plain({**made, "usage": {"prompt_tokens": -5}}),
    "no usage": lambda made, key: _plain({**made, "usage": None}),
    "content filter": lambda made, key: _finished(made, "content_filter"),
    "length": lambda made, key: _finished(made, "length"),
}


class Connection(socketserver.StreamRequestHandler):
    """One connection of a client."""

    server: _Listener

    def handle(self) -> None:
        """Talk until one side is gone."""
        with self.server.owner.open(self), contextlib.suppress(OSError):
            self.server.owner.talk(self)

    def request_of_client(self) -> tuple[bytes, bytes] | None:
        """Head and body of the next request; None when the client is gone."""
        head = b""
        while line := self.rfile.readline():
            head += line
            if line == b"\r\n":
                return head, self.rfile.read(int(header(head, "content-length") or 0))
        return None


def header(head: bytes, name: str) -> str:
    """The value of a header; an empty text where it is missing."""
    pairs = (line.partition(":") for line in head.decode("latin-1").split("\r\n"))
    return next((value.strip() for key, _, value in pairs if key.lower() == name), "")


class _Listener(socketserver.ThreadingTCPServer):
    daemon_threads, block_on_close, request_queue_size = True, False, 64
    owner: LoopbackServer

    def shutdown_request(self, request: Any) -> None:
        self.close_request(request)


class LoopbackServer:
    """A server on the loopback interface; a context manager. A subclass says how it talks."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.lock = threading.Lock()
        self._open: set[Connection] = set()
        self._listener = _Listener(("127.0.0.1", 0), Connection)
        self._listener.owner = self
        self.port: int = self._listener.server_address[1]

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        serve = self._listener.serve_forever
        threading.Thread(target=serve, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self._listener.shutdown()
        self._listener.server_close()
        with self.lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.connection.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def open(self, connection: Connection) -> Any:
        """A connection that is cut when the server stops."""
        with self.lock:
            self._open.add(connection)
        try:
            yield
        finally:
            with self.lock:
                self._open.discard(connection)

    def talk(self, connection: Connection) -> None:
        """Answer the requests of one connection."""
        raise NotImplementedError


class ScriptedServer(LoopbackServer):
    """Server with scripted answers; the requests of one connection are answered in their order.

    Args:
        answer: From a request to the words of the reply, or to a whole message with `tool_calls`.
        faults: By the order in which requests come, the name of a fault, or None for none; or a
            function from the number of the request, from 0, and the request.
        latency: Seconds before each reply.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        faults: Sequence[str | None] | Callable[[int, Body], str | None] = (),
        latency: float = 0.0,
    ) -> None:
        super().__init__()
        self.answer, self.faults, self.latency = answer, faults, latency
        self.requests: list[Body] = []
        self.keys: set[str] = set()
        self.open_now = self.most_open = 0

    def response(self, asked: Body, key: str) -> Response:
        """The handling of one request."""
        number = len(self.requests)
        self.requests.append(asked)
        self.keys.add(key)
        if callable(self.faults):
            name = self.faults(number, asked)
        else:
            name = self.faults[number] if number < len(self.faults) else None
        made = completion(self.answer(asked), asked)
        return _plain(made) if name is None else FAULTS[name](made, key)

    def talk(self, connection: Connection) -> None:
        """Answer the requests of one connection."""
        while request := connection.request_of_client():
            key = header(request[0], "authorization").removeprefix("Bearer ")
            with self.lock:
                response = self.response(json.loads(request[1]), key)
                self.open_now += 1
                self.most_open = max(self.most_open, self.open_now)
            self.stopped.wait(self.latency + response.delay)
            with self.lock:
                self.open_now -= 1
            more = "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
            head = (
                f"HTTP/1.1 {response.status} X\r\nContent-Type: application/json\r\n{more}"
                f"Content-Length: {len(response.body)}\r\n\r\n"
            )
            connection.wfile.write((head.encode() + response.body)[: response.keep])
            if response.keep is not None:
                return
