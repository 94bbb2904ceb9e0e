"""The report of a run that goes on, served to browsers on this machine.

Three addresses answer: the page, its content without the scripts for a page that is open already,
and the version of the run's files, which such a page asks for. Nothing that a request names becomes
a path on the disk, and nothing is written. It listens on the loopback interface only; a page of
another site that has its name point here is refused by the `Host` header, as is any request that
another site's page sends.

A run is read when somebody asks and its files have changed since. What cannot be read, because it
is damaged or just being made, is told on the page, which goes on asking.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import SHUT_RDWR, socket
from typing import Any, Final

from toolgym.errors import ConfigurationError
from toolgym.report.page import EPISODES, render, rendered
from toolgym.report.view import views
from toolgym.runs.run import CONFIG, METRICS, ROLLOUTS, SUMMARY, Run

LOOPBACK: Final = "127.0.0.1"
READERS: Final = 8
"""Requests that are answered at once; more are told to come back."""
PATIENCE: Final = 10.0
"""Seconds that a connection may stay silent."""
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class WatchedRun:
    """A run folder that is read anew when its files have changed."""

    def __init__(self, path: Path, episodes: int = EPISODES) -> None:
        self.path = path
        self._episodes = episodes
        self._lock = threading.Lock()
        self._made: dict[bool, tuple[str, bytes]] = {}

    @property
    def version(self) -> str:
        """Names what the files hold now."""
        parts = [str(Run(self.path, {}).is_held)]
        for name in (CONFIG, METRICS, ROLLOUTS, SUMMARY):
            try:
                stat = (self.path / name).stat()
            except OSError:
                parts.append("")
            else:
                parts.append(f"{stat.st_size} {stat.st_mtime_ns}")
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def page(self, *, has_scripts: bool) -> bytes:
        """The page of what the files hold now, with or without its scripts."""
        with self._lock:  # one reader makes it, and the others take it from there
            version = self.version
            made, page = self._made.get(has_scripts, ("", b""))
            if made != version:
                page = self._render(version, has_scripts=has_scripts).encode("utf-8")
                self._made[has_scripts] = (version, page)
            return page

    def _render(self, version: str, *, has_scripts: bool) -> str:
        try:
            shown = views([Run.open(self.path)])
            return render(shown, episodes=self._episodes, version=version, has_scripts=has_scripts)
        except (ConfigurationError, OSError) as problem:
            return rendered(
                "unreadable.html.j2",
                version=version,
                has_scripts=has_scripts,
                name=self.path.resolve().name,
                problem=str(problem),
            )


class WatchServer(ThreadingHTTPServer):
    """Serves one run; `serve_forever` until it is interrupted."""

    daemon_threads = True
    request_queue_size = READERS

    def __init__(self, run: WatchedRun, port: int = 0) -> None:
        """Listen on a port of the loopback interface; 0 takes one that is free.

        Raises:
            ConfigurationError: The port is taken, or may not be used.
        """
        self.run = run
        self._free = threading.BoundedSemaphore(READERS)
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as problem:
            raise ConfigurationError(
                f"Port {port} cannot be listened on: {problem.strerror}. Leave --port out, which"
                " takes one that is free."
            ) from None

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{LOOPBACK}:{self.port}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """What a browser on this machine calls the server."""
        return f"{LOOPBACK}:{self.port}", f"localhost:{self.port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, or turn the reader away where too many are answered already."""
        if not self._free.acquire(blocking=False):
            _turn_away(request)
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one request, and make room for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away, or said no request, is no news for the terminal."""


def _turn_away(request: socket) -> None:
    reason = "HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
    with suppress(OSError):
        request.settimeout(1.0)
        request.sendall(reason.encode("ascii"))


class _Handler(BaseHTTPRequestHandler):
    """One request, on a connection of its own."""

    server: WatchServer
    server_version = "toolgym"
    sys_version = ""
    timeout = PATIENCE

    def setup(self) -> None:
        """Give the whole head of the request its time, too: it may come letter by letter."""
        super().setup()
        self._clock = threading.Timer(PATIENCE, self._give_up)
        self._clock.daemon = True
        self._clock.start()

    def parse_request(self) -> bool:
        """Read the head; that it is there stops the clock."""
        is_read = super().parse_request()
        self._clock.cancel()
        return is_read

    def finish(self) -> None:
        """End the connection, whether a request came or none."""
        self._clock.cancel()
        super().finish()

    def _give_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(SHUT_RDWR)

    def do_GET(self) -> None:
        """Answer with the page, its content or its version."""
        run, path = self.server.run, self.path.partition("?")[0]
        refusal = self._refusal()
        if refusal is not None:
            self._answer(*refusal)
        elif path == "/version":
            self._answer(HTTPStatus.OK, run.version.encode("ascii"))
        elif path in ("/", "/content"):
            page = run.page(has_scripts=path == "/")
            self._answer(HTTPStatus.OK, page, "text/html; charset=utf-8")
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"There is no such page; the report is at /.\n")

    do_HEAD = do_GET  # noqa: N815 - as above; the body is left out in `_answer`

    def _refusal(self) -> tuple[HTTPStatus, bytes] | None:
        """Why a request is not answered; None for one that is."""
        hosts = self.server.hosts
        if self.headers.get_all("Host") not in [[host] for host in hosts]:
            return HTTPStatus.MISDIRECTED_REQUEST, b"This server has another name.\n"
        origin = self.headers.get("Origin")
        if origin is not None and origin not in [f"http://{host}" for host in hosts]:
            return HTTPStatus.FORBIDDEN, b"Another site may not ask.\n"
        return None

    def _answer(
        self, status: HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8"
    ) -> None:
        self._head(status, body, {"Content-Type": kind})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(self, status: HTTPStatus, body: bytes, more: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, **more, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no request that is answered here, and say nothing of it in return."""
        self.close_connection = True
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._head(HTTPStatus.METHOD_NOT_ALLOWED, b"", {"Allow": "GET, HEAD"})
        else:
            self._head(HTTPStatus(code), b"", {})

    def log_message(self, format: str, *args: Any) -> None:
        """The terminal is the reader's; requests are not news."""
