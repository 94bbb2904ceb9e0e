"""A language-model server without a model: it speaks the OpenAI protocol and says what it is told.

For tests of everything that asks a server: real sockets on the loopback interface, chat completions
without streaming, and faults on demand, each the way a real server fails. It keeps what it was
asked. It runs in a thread of the process that starts it, or, for measurements, in a process of its
own: `python tests/chat_server.py --port 8000`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

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


class ScriptedServer:
    """A server in a thread; a context manager.

    Args:
        answer: From a request to the words of the reply, or to a whole message with `tool_calls`.
        faults: By the order in which requests come, the name of a fault, or None for none; or a
            function from the number of the request, from 0, and the request.
        latency: Seconds before each reply.
        port: 0 takes a free one.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        faults: Sequence[str | None] | Callable[[int, Body], str | None] = (),
        latency: float = 0.0,
        port: int = 0,
    ) -> None:
        self.answer, self.faults, self.latency, self.port = answer, faults, latency, port
        self.requests: list[Body] = []
        self.keys: set[str] = set()
        self.open_now = self.most_open = 0
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> ScriptedServer:
        self._thread = threading.Thread(target=self.serve, name="scripted-server", daemon=True)
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)

    def serve(self) -> None:
        """Serve in this thread until it is stopped."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._connections: set[_Connection] = set()
        listening = await self._loop.create_server(
            lambda: _Connection(self), "127.0.0.1", self.port
        )
        self.port = listening.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        listening.close()
        while self._connections:
            for connection in list(self._connections):
                connection.cut()
            await asyncio.sleep(0)  # so that each socket is closed before the loop is

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


class _Connection(asyncio.Protocol):
    """One connection of a client; requests on it are answered one after the other."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._data = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # that of a stream, always
        self._server._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server._connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        lines = self._data[:end].decode("latin-1").split("\r\n")[1:]
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        length = int(headers.get("content-length", 0))
        if len(self._data) < end + 4 + length:
            return
        body, self._data = self._data[end + 4 : end + 4 + length], self._data[end + 4 + length :]
        self._answer(json.loads(body), headers.get("authorization", "").removeprefix("Bearer "))

    def _answer(self, asked: Body, key: str) -> None:
        server = self._server
        response = server.response(asked, key)
        server.open_now += 1
        server.most_open = max(server.most_open, server.open_now)
        delay = server.latency + response.delay
        asyncio.get_running_loop().call_later(delay, self._send, response)

    def _send(self, response: Response) -> None:
        self._server.open_now -= 1
        more = "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
        head = (
            f"HTTP/1.1 {response.status} X\r\nContent-Type: application/json\r\n{more}"
            f"Content-Length: {len(response.body)}\r\n\r\n"
        )
        whole = head.encode() + response.body
        if not self._transport.is_closing():
            self._transport.write(whole[: response.keep])
        if response.keep is not None:
            self.cut()

    def cut(self) -> None:
        """Close the connection."""
        self._transport.close()


def main() -> None:
    """Serve one fixed reply from the command line."""
    options = argparse.ArgumentParser(description="Answer every chat request with the same words.")
    options.add_argument("--port", type=int, default=8000)
    options.add_argument("--latency", type=float, default=0.0, help="Seconds before each reply.")
    options.add_argument("--say", default="Answer: 12", help="The reply.")
    arguments = options.parse_args()
    server = ScriptedServer(
        lambda asked: arguments.say, latency=arguments.latency, port=arguments.port
    )
    server.serve()


if __name__ == "__main__":
    main()
