"""A server under test: a process of its own on the loopback interface, and requests to it.

It needs Python's own library only, so that the tests of every framework's adapter can use it.
"""

import json
import os
import random
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
JSON = {"Content-Type": "application/json"}
REFUSED = [
    ({"Host": "rebound.example"}, 400),
    ({"Host": "localhost.rebound.example:8000"}, 400),
    ({"Origin": "http://rebound.example"}, 403),
    ({"Origin": "null"}, 403),
]
"""Headers of a request from a page of another site, and the status of the response."""
BAD_JSON = (
    *("", "{", "[" * 60_000, '{"a":' * 20_000, "nul", "\\ud83d", "1e999999", "9" * 30_000, "[]"),
    *('"\\ud83d"', "NaN", "7", "null", '"reset"', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]'),
)
BAD_VALUES = (None, True, -1, 1e308, "", "x" * 5000, [], {}, [[]], {"a": {}}, "\ud83d", "../x")
BAD_PATHS = (
    *("/", "//x", "/reset", "/mcp", "/%2e%2e/etc/passwd", "/x/../../etc/passwd", "/\xff", "*"),
    *("/" + "a" * 4000, "/episodes/%00/mcp", "/toolgym/%00", "http://rebound.example/episodes"),
)
SECRETS = (b"Traceback", str(ROOT).encode(), b"site-packages", b"root:", b'"score"')


class Answer(NamedTuple):
    """A response over HTTP."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class LocalServer:
    """A server that runs in a process of its own; `log` is what it writes to stderr."""

    process: subprocess.Popen[str]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | str | Mapping[str, Any] | None = None,
        headers: Mapping[str, str] = JSON,
    ) -> Answer:
        """Send one request on a connection of its own."""
        sent = json.dumps(body) if isinstance(body, Mapping) else body
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, sent, dict(headers))
            answer = connection.getresponse()
            return Answer(answer.status, answer.read())
        finally:
            connection.close()

    def send(self, request: bytes) -> bytes:
        """Send bytes on a connection, hang up, and return the response; none may be a 500."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 60) as connection:
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
                said = b"".join(iter(lambda: connection.recv(65_536), b""))
        except (ConnectionResetError, BrokenPipeError):
            return b""
        assert said[9:12] not in (b"500", b"201"), (request[:300], said[:500])
        return said

    def used(self) -> tuple[int, int]:
        """Return the open files and the megabytes of the process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        megabytes = int(status.partition("VmRSS:")[2].split()[0]) // 1024
        return len(os.listdir(f"/proc/{self.process.pid}/fd")), megabytes


def toolgym(*words: str, **env_kwargs: Any) -> list[str]:
    """Return a command line of toolgym, without the name of the interpreter."""
    settings = [word for k, v in env_kwargs.items() for word in ("--set", f"{k}={json.dumps(v)}")]
    return ["-m", "toolgym", *words, *settings]


@contextmanager
def running(log: Path, *words: str, **env_kwargs: Any) -> Iterator[LocalServer]:
    """Start a server by a command of toolgym, and stop it in the end."""
    hidden = ("ENABLE_WEB_INTERFACE", "SPACE_HOST")  # would change what OpenEnv serves
    environ = {k: v for k, v in os.environ.items() if k not in hidden}
    command = [sys.executable, *toolgym(*words, **env_kwargs)]
    with log.open("a") as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True, env=environ
        )
    try:
        assert process.stdout is not None
        found = re.search(r":(\d+)(/episodes)?$", process.stdout.readline().strip())
        assert found, log.read_text()
        yield LocalServer(process, int(found[1]), log)
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


class Hostile:
    """Hostile requests, drawn by a seed: damaged HTTP and JSON, foreign hosts, false lengths."""

    def __init__(self, seed: int, server: LocalServer, paths: Sequence[str]) -> None:
        self.draw, self.server, self.paths = random.Random(seed), server, paths

    def whole(self, body: str, path: str, host: str = "", method: str = "POST") -> bytes:
        sent = body.encode("utf-8", "surrogatepass")
        name = host or f"127.0.0.1:{self.server.port}"
        head = (f"{method} {path} HTTP/1.1", f"Host: {name}", "Content-Type: application/json",
                "Accept: application/json, text/event-stream", f"Content-Length: {len(sent)}",
                "Connection: close", "", "")  # fmt: skip
        return "\r\n".join(head).encode("latin-1") + sent

    def request(self) -> bytes:
        draw = self.draw
        path = draw.choice((*self.paths, draw.choice(BAD_PATHS)))
        keys = ("task_id", "split", "index", "seed", "dataset", "backend", "id", "method", "params")
        values = {key: draw.choice(BAD_VALUES) for key in draw.sample(keys, 3)}
        body = draw.choice((*BAD_JSON, *[json.dumps({**values, "parsing": "strict"})] * 10))
        kind = draw.randrange(6)
        if kind == 0:
            return draw.randbytes(draw.choice((1, 50, 3000))) + b"\r\n\r\n"
        if kind == 1:
            return self.whole(body, path, draw.choice(("rebound.example", "127.0.0.1.x", "a b")))
        if kind == 2:
            return self.whole(body, path, method=draw.choice(("GET", "PUT", "CONNECT", "\x00")))
        whole = self.whole(body, path)
        if kind == 3:
            return whole[: draw.randrange(len(whole))]
        if kind == 4:
            length = draw.choice(("-1", "9" * 40, "1000001", "5\r\nTransfer-Encoding: chunked"))
            return whole.replace(b"Content-Length: ", f"Content-Length: {length}\r\nX: ".encode())
        return whole

    def attacks(self, count: int) -> list[Callable[[], bytes]]:
        """Return attacks that can run in any thread; each returns the response."""
        requests = [self.request() for _ in range(count)]
        return [lambda request=request: self.server.send(request) for request in requests]


def besiege(pool: ThreadPoolExecutor, attacks: Sequence[Callable[[], bytes]]) -> list[Future[None]]:
    """Run attacks in four threads; no response names a file, a program or a task."""

    def run(part: Sequence[Callable[[], bytes]]) -> None:
        for attack in part:
            said = attack()
            for secret in SECRETS:
                assert secret not in said, said[:500]

    return [pool.submit(run, attacks[number::4]) for number in range(4)]


def check_siege(server: LocalServer, play: Callable[[int], Any]) -> None:
    """Check that hostile requests change nothing.

    Args:
        server: The server.
        play: Plays an episode during a number of attacks, and returns its result.
    """
    alone = play(0)
    play(60)  # allocates what is allocated once
    files, memory = server.used()

    assert play(300) == alone
    assert server.process.poll() is None
    now_files, now_memory = server.used()
    assert now_files <= files + 8
    assert now_memory <= memory + 150
