"""Hostile requests: whatever is sent to the server, nothing changes, nothing leaks, others play on.

Requests are drawn by a seed: damaged HTTP, damaged JSON, messages of the protocol with anything in
any place and in any order, sessions of nobody, sockets that are dropped or send half a frame. An
honest client plays beside them.
"""

import hashlib
import json
import os
import random
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv", reason="needs the extra `openenv`: make test-adapters NAME=openenv")

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from adapters.serving.guard import LONGEST_BODY
from tests.adapters.openenv.openenv_play import ROOT, Server, say, serving
from tests.adapters.scripted_episodes import EXPLORE, GOLD, HUTS, call

MOST = 12
SECRETS = ("Traceback", str(ROOT), "site-packages", "root:", 'File "')
BAD_JSON = (
    *("", "{", "[" * 60_000, '{"a":' * 20_000, "nul", "\\ud83d", "1e999999", "9" * 30_000, "[]"),
    *('"\\ud83d"', "NaN", "7", "null", '"reset"', '{"type": "reset", "data": {"seed": NaN}}'),
)
BAD_VALUES = (None, True, -1, 1e308, "", "x" * 5000, [], {}, [[]], {"a": {}}, "\ud83d", "../x")
TYPES = ("reset", "step", "state", "mcp", "close", "", "reset_async", "__init__", None, [], {})
KEYS = (
    *("task_id", "split", "index", "seed", "episode_id", "dataset", "backend", "parsing", "self"),
    *("func", "session_id", "text", "tool_calls", "finish", "metadata", "type", "__class__"),
)
METHODS = ("openenv/session/create", "openenv/session/close", "tools/list", "tools/call", "", None)
BAD_PATHS = (
    *("/", "/reset", "/step", "/state", "/mcp", "/docs", "/web", "//ws", "/toolgym/../reset"),
    *("/toolgym/%00", "/%2e%2e/etc/passwd", "/toolgym/\xff", "/" + "a" * 4000, "/harness", "*"),
    *("/toolgym/tasks", "/toolgym/task", "/toolgym/task_range", "/other/tasks", "/ws?session_id=x"),
)
UPGRADE = (
    *("Upgrade: websocket", "Sec-WebSocket-Version: 13"),
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
)


class Hostile:
    """Attacks by a seed: each opens a connection of its own and does its harm."""

    def __init__(self, seed: int, server: Server) -> None:
        self.draw, self.server = random.Random(seed), server

    def attacks(self, count: int) -> list[Callable[[], str]]:
        """So many of them, each made now, so that threads may run them in any order."""
        kinds = (self.noise, self.foreign, self.request, self.request, self.socket, self.socket,
                 self.dropped)  # fmt: skip
        return [self.draw.choice(kinds)() for _ in range(count)]

    def value(self) -> Any:
        return self.draw.choice(BAD_VALUES)

    def raw(self, text: bytes) -> Callable[[], str]:
        """Bytes over a connection, and what is said to them."""

        def attack() -> str:
            try:
                with socket.create_connection(("127.0.0.1", self.server.port), 60) as connection:
                    connection.sendall(text)
                    connection.shutdown(socket.SHUT_WR)
                    said = b"".join(iter(lambda: connection.recv(65_536), b""))
            except (ConnectionResetError, BrokenPipeError):
                return ""
            status = said.split(b" ")[1:2]
            assert status != [b"500"], f"{text[:300]!r}: {said[:500]!r}"
            return said.decode("latin-1")

        return attack

    def whole(self, method: str, path: str, body: str, *more: str, host: str = "") -> bytes:
        sent = body.encode("utf-8", "surrogatepass")
        name = host or f"127.0.0.1:{self.server.port}"
        head = [f"{method} {path} HTTP/1.1", f"Host: {name}", "Content-Type: application/json",
                f"Content-Length: {len(sent)}", "Connection: close", *more]  # fmt: skip
        return "\r\n".join([*head, "", ""]).encode("latin-1") + sent

    def noise(self) -> Callable[[], str]:
        return self.raw(self.draw.randbytes(self.draw.choice((1, 50, 3000))) + b"\r\n\r\n")

    def foreign(self) -> Callable[[], str]:
        host = self.draw.choice(("rebound.example", "127.0.0.1", "127.0.0.1:1", "a b"))
        path = self.draw.choice(("/ws", "/toolgym/tasks"))
        return self.raw(self.whole("GET", path, "", *UPGRADE, host=host))

    def request(self) -> Callable[[], str]:
        method = self.draw.choice(("GET", "POST", "POST", "POST", "PUT", "CONNECT", "\x00"))
        keys = {key: self.value() for key in ("split", "index", "start", "stop")}
        body = self.draw.choice((*BAD_JSON, json.dumps(keys), json.dumps({"split": "dev"})))
        text = self.whole(method, self.draw.choice(BAD_PATHS), body)
        if self.draw.random() < 0.1:
            length = self.draw.choice(("-1", "9" * 40, str(LONGEST_BODY + 1)))
            text = text.replace(b"Content-Length: ", f"Content-Length: {length}\r\nX: ".encode())
        return self.raw(text)

    def message(self) -> str | bytes:
        """A message of the protocol with anything in any place; none begins an episode."""
        draw = self.draw
        if draw.random() < 0.3:
            return draw.choice((*BAD_JSON, b"\xff\xfe", b"", "x" * 300_000))
        data: Any = {draw.choice(KEYS): self.value() for _ in range(draw.randrange(4))}
        kind = draw.choice(TYPES)
        if kind == "reset":  # by a name that nothing has
            data[draw.choice(("dataset", "backend", "parsing"))] = self.value()
        elif kind == "mcp":
            params = draw.choice((self.value(), {"session_id": self.value()}))
            data = {"jsonrpc": "2.0", "id": self.value(), "method": draw.choice(METHODS),
                    "params": params}  # fmt: skip
        elif draw.random() < 0.3:
            data = self.value()
        return json.dumps({"type": kind, "data": data})

    def socket(self) -> Callable[[], str]:
        """A session in which nothing is in order."""
        messages = [self.message() for _ in range(self.draw.randrange(1, 4))]

        def attack() -> str:
            said: list[str] = []
            try:
                url = f"ws://127.0.0.1:{self.server.port}/ws"
                with connect(url, open_timeout=60, close_timeout=60) as connection:
                    for message in messages:
                        connection.send(message)
                        said.append(str(connection.recv(60)))
            except (ConnectionClosed, InvalidStatus):
                pass
            assert all('"type":"observation"' not in each for each in said), (messages, said)
            return "\n".join(said)

        return attack

    def dropped(self) -> Callable[[], str]:
        """A socket that is opened by hand, sends a part of a frame and is dropped."""
        head = self.whole("GET", "/ws", "", *UPGRADE).replace(b": close", b": Upgrade")
        return self.raw(head + self.draw.randbytes(self.draw.choice((0, 1, 5, 200))))


def state(cache: Path) -> dict[str, str]:
    """The files that the server could change, by their content."""
    files = [path for path in [*cache.rglob("*"), *(ROOT / "data").rglob("*")] if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def used(server: Server) -> tuple[int, int]:
    """Open files, and megabytes, of the process."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    megabytes = int(status.partition("VmRSS:")[2].split()[0]) // 1024
    return len(os.listdir(f"/proc/{server.process.pid}/fd")), megabytes


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(EXPLORE, tmp_path / "log", "--max-sessions", str(MOST)) as running:
        yield running


def besiege(server: Server, count: int, seed: int) -> dict[str, Any]:
    """Attack while an honest client plays; returns the end of its episode."""
    attacks = Hostile(seed, server).attacks(count)

    def run(part: list[Callable[[], str]]) -> None:
        for attack in part:
            said = attack()
            for secret in SECRETS:
                assert secret not in said, said[:500]

    with server.client() as client, ThreadPoolExecutor(4) as pool:
        client.reset(task_id=HUTS, episode_id="honest")
        say(client, call("describe", table="huts"))
        running = [pool.submit(run, attacks[number::4]) for number in range(4)]
        while not all(each.done() for each in running):
            assert client.state().task_id == HUTS
        for each in running:
            each.result()
        assert "1539" in say(client, call("query", sql=GOLD)).observation.text
        end = say(client, call("answer", value=1539))
        found: dict[str, Any] = end.observation.model_dump()
        return found


def check_siege(server: Server, count: int, seed: int) -> None:
    cache = Path(os.environ["TOOLGYM_CACHE"])
    alone = besiege(server, 0, seed)
    besiege(server, 60, seed)  # what is made once is made
    files, (opened, memory) = state(cache), used(server)

    end = besiege(server, count, seed + 1)

    assert end == alone
    assert state(cache) == files
    assert server.process.poll() is None
    now_opened, now_memory = used(server)
    assert now_opened <= opened + 8
    assert now_memory <= memory + 150
    places = [server.client() for _ in range(MOST)]  # no place was taken
    for client in places:
        assert client.reset(task_id=HUTS).observation.task_id == HUTS
    for client in places:
        client.close()


def test_some_hostile_requests_change_nothing(server: Server) -> None:
    check_siege(server, 300, seed=0)


@pytest.mark.nightly
def test_ten_thousand_hostile_requests_change_nothing(server: Server) -> None:
    check_siege(server, 10_000, seed=1)
