"""Hostile requests: whatever is sent to the server, nothing changes, nothing leaks, others play on.

Requests are drawn by a seed: damaged HTTP, damaged JSON, damaged protocol, ids of nobody, paths,
keys that no client may set, connections that are dropped. An honest client plays beside them.
"""

import asyncio
import hashlib
import json
import os
import random
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`: make test-adapters NAME=mcp")

from mcp import Client

from adapters.mcp.server import CLOSE
from adapters.serving.guard import LONGEST_BODY
from tests.adapters.mcp.mcp_play import ROOT, HttpServer, http_server
from tests.adapters.scripted_episodes import EXPLORE, GOLD, HUTS

MOST = 6
MODERN = "MCP-Protocol-Version: 2026-07-28"
PROTOCOL = ("", MODERN, "MCP-Protocol-Version: 2025-11-25", "MCP-Protocol-Version: 1999-01-01")
METHODS = (
    *("tools/call", "tools/list", "prompts/get", "resources/read", "resources/subscribe", "ping"),
    *("initialize", "server/discover", "subscriptions/listen", "logging/setLevel", "", "__init__"),
    *("notifications/cancelled", "completion/complete", "sampling/createMessage"),
)
BAD_PATHS = (
    *("/", "/episodes/", "/episodes//mcp", "/episodes/../mcp", "/episodes/%2e%2e/mcp", "//mcp"),
    *("/episodes/%00/mcp", "/episodes/a%2fb/mcp", "/episodes/\xff/mcp", "/" + "a" * 4000),
    *("/../../etc/passwd", "http://rebound.example/episodes", "*"),
)
BAD_JSON = (
    *("", "{", "[" * 60_000, '{"a":' * 20_000, "nul", "\\ud83d", "1e999999", "9" * 30_000, "[]"),
    *('{"jsonrpc": "2.0"}', '"\\ud83d"', '{"id": {}, "jsonrpc": "2.0", "method": 5}', "NaN"),
    *('{"jsonrpc":"2.0","id":1,"result":{}}', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]'),
)
BAD_VALUES = (None, True, -1, 1e308, "", "x" * 5000, [], {}, [[]], {"a": {}}, "\ud83d", "../x")
BAD_BODIES = (
    *({"dataset": "/etc"}, {"backend": "openai:x"}, {"parsing": "strict"}, {"task_id": "nowhere"}),
    *({"seed": -5}, {"seed": 10**30}, {"task_id": "x" * 9000}, {"task_id": None, "split": "dev"}),
)
BAD_LENGTHS = (
    *("-1", "1e3", "9" * 40, "0x10", str(LONGEST_BODY + 1)),
    *("5\r\nContent-Length: 6", "3\r\nTransfer-Encoding: chunked"),
)


class Hostile:
    """Requests by a seed, each a text that goes over a connection of its own."""

    def __init__(self, seed: int, port: int) -> None:
        self.draw, self.port = random.Random(seed), port

    def request(self) -> tuple[bytes, bool]:
        """The next one, and whether its sender hangs up without waiting for an answer."""
        kind: Callable[[], bytes] = self.draw.choice(
            (self.noise, self.bad_json, self.protocol, self.protocol, self.bad_path, self.begin,
             self.foreign, self.closing, self.lying, self.truncated)
        )  # fmt: skip
        is_damaged = kind in (self.noise, self.lying, self.truncated)
        return kind(), is_damaged or self.draw.random() < 0.1

    def whole(self, method: str, path: str, body: str | bytes, *more: str, host: str = "") -> bytes:
        """A request as it should be, but for what it says."""
        sent = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
        head = [
            f"{method} {path} HTTP/1.1",
            f"Host: {host or f'127.0.0.1:{self.port}'}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {len(sent)}",
            "Connection: close",
            *filter(None, more),
        ]
        return "\r\n".join([*head, "", ""]).encode("latin-1") + sent

    def name(self) -> str:
        return "".join(self.draw.choices("ABCxyz_-019", k=32))

    def address(self) -> str:
        return f"/episodes/{self.name()}/mcp"

    def noise(self) -> bytes:
        return self.draw.randbytes(self.draw.choice((1, 50, 3000))) + b"\r\n\r\n"

    def bad_json(self) -> bytes:
        path = self.draw.choice(("/episodes", self.address()))
        return self.whole("POST", path, self.draw.choice(BAD_JSON), self.draw.choice(PROTOCOL))

    def protocol(self) -> bytes:
        """A request of the protocol with anything in any place, for an episode of nobody."""
        draw = self.draw
        value = lambda: draw.choice(BAD_VALUES)  # noqa: E731
        params: Any = draw.choice(
            (value(), {"name": "answer", "arguments": {"value": 1539}}, {"name": value()},
             {"name": "query", "arguments": value()}, {"uri": CLOSE}, {"uri": "file:///etc/passwd"},
             {"name": "task"}, {"protocolVersion": value(), "capabilities": value()},
             {"_meta": value()}, {"requestId": value(), "reason": "x"})
        )  # fmt: skip
        method = draw.choice(METHODS)
        message = {"jsonrpc": "2.0", "id": draw.choice((1, "a", value())), "method": method}
        if draw.random() < 0.3:
            del message["id"]
        session = f"Mcp-Session-Id: {self.name()}" if draw.random() < 0.3 else ""
        text = json.dumps({**message, "params": params})
        chosen = draw.choice(PROTOCOL)
        more = (chosen, session, f"Mcp-Method: {method}" if chosen == MODERN else "")
        return self.whole("POST", self.address(), text, *more)

    def bad_path(self) -> bytes:
        method = self.draw.choice(("GET", "POST", "DELETE", "PUT", "CONNECT", "\x00", "POST POST"))
        return self.whole(method, self.draw.choice(BAD_PATHS), "{}")

    def begin(self) -> bytes:
        return self.whole("POST", "/episodes", json.dumps(self.draw.choice(BAD_BODIES)))

    def foreign(self) -> bytes:
        host = self.draw.choice(("rebound.example", "127.0.0.1", "127.0.0.1:1", "", "a b"))
        origin = "Origin: http://rebound.example"
        return self.whole("POST", "/episodes", "{}", origin, host=host)

    def closing(self) -> bytes:
        return self.whole("DELETE", f"/episodes/{self.name()}", "")

    def lying(self) -> bytes:
        """A length that is none, or not that of the body; twice a length; pieces that are none."""
        length = self.draw.choice(BAD_LENGTHS)
        whole = self.whole("POST", "/episodes", "{}")
        return whole.replace(b"Content-Length: 2", f"Content-Length: {length}".encode())

    def truncated(self) -> bytes:
        whole = self.whole("POST", self.address(), '{"jsonrpc": "2.0", "id": 1}')
        return whole[: self.draw.randrange(len(whole))]


def send(port: int, request: bytes, hangs_up: bool) -> bytes:
    """What the server says to a request.

    Args:
        hangs_up: The sender waits for nothing; the server may drop its answer then.
    """
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        try:
            connection.sendall(request)
            if hangs_up:
                connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65_536), b""))
        except (ConnectionResetError, BrokenPipeError):
            return b""


def check(request: bytes, hangs_up: bool, answer: bytes) -> None:
    """Nothing was done for it, no handler broke, and no file, no code and no task is named."""
    status = answer[9:12].decode("latin-1")
    said = answer.partition(b"\r\n\r\n")[2]
    told = f"{request[:300]!r} was answered {answer[:500]!r}"
    assert status != "500", told
    assert status != "201", told
    is_error = status[:1] in ("3", "4", "5") or b'"error"' in said or (hangs_up and not answer)
    is_empty = status == "202" or (b'"result"' in said and HUTS.encode() not in said)
    assert is_error or is_empty, told
    for secret in (b"Traceback", str(ROOT).encode(), b"site-packages", b"root:", b'"score"'):
        assert secret not in answer, told


def state(cache: Path) -> dict[str, str]:
    """The files that the server could change, by their content."""
    files = [path for path in [*cache.rglob("*"), *(ROOT / "data").rglob("*")] if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def open_files(server: HttpServer) -> int:
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def memory(server: HttpServer) -> int:
    """Megabytes of the process."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with http_server(EXPLORE, "--max-episodes", str(MOST)) as running:
        yield running


async def besiege(server: HttpServer, count: int, seed: int) -> Any:
    """Send hostile requests while an honest client plays; returns the result of its episode."""
    hostile = Hostile(seed, server.port)
    requests = [hostile.request() for _ in range(count)]

    def attack(part: list[tuple[bytes, bool]]) -> None:
        for request, hangs_up in part:
            check(request, hangs_up, send(server.port, request, hangs_up))

    url = server.begin(task_id=HUTS)
    attacks = [asyncio.create_task(asyncio.to_thread(attack, requests[i::4])) for i in range(4)]
    async with Client(url) as client:
        await client.call_tool("describe", {"table": "huts"})
        while not all(each.done() for each in attacks):
            assert (await client.list_tools()).tools
            await asyncio.sleep(0.05)
        await asyncio.gather(*attacks)
        assert "1539" in (await client.call_tool("query", {"sql": GOLD})).content[0].text
        await client.call_tool("answer", {"value": 1539})
    return server.close(url)


def check_siege(server: HttpServer, count: int, seed: int) -> None:
    cache = Path(os.environ["TOOLGYM_CACHE"])
    alone = asyncio.run(besiege(server, 0, seed))
    asyncio.run(besiege(server, 50, seed))  # what is made once is made
    files, opened, used = state(cache), open_files(server), memory(server)

    result = asyncio.run(besiege(server, count, seed + 1))

    assert result == alone
    assert state(cache) == files
    assert server.process.poll() is None
    assert open_files(server) <= opened + 4
    assert memory(server) <= used + 100
    urls = [server.begin() for _ in range(MOST)]  # no place was taken
    assert server.ask("POST", "/episodes", {}).status == 503
    for url in urls:
        server.close(url)


def test_some_hostile_requests_change_nothing(server: HttpServer) -> None:
    check_siege(server, 300, seed=0)


@pytest.mark.nightly
def test_ten_thousand_hostile_requests_change_nothing(server: HttpServer) -> None:
    check_siege(server, 10_000, seed=1)


@pytest.mark.nightly
def test_bodies_that_are_far_too_long_use_no_memory(server: HttpServer) -> None:
    server.close(server.begin())
    used = memory(server)

    answers = {server.ask("POST", "/episodes", "x" * (LONGEST_BODY + 1)).status for _ in range(100)}

    assert answers == {413}
    assert memory(server) <= used + 50
