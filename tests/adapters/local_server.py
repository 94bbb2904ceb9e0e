"""A server under test: a process of its own on the loopback interface, and plain requests to it.

It needs Python's own library only, so that the tests of every framework's adapter can take it.
"""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any, NamedTuple

JSON = {"Content-Type": "application/json"}
REFUSED = [
    ({"Host": "rebound.example"}, 421),
    ({"Host": "127.0.0.1:1"}, 421),
    ({"Host": "localhost"}, 421),
    ({"Origin": "http://rebound.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Content-Type": "text/plain"}, 400),
]
"""Headers that a page of another origin can make a browser send, and the status of the answer."""


class Answer(NamedTuple):
    """An answer over HTTP."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class LocalServer:
    """A server that runs in a process of its own."""

    process: subprocess.Popen[str]
    port: int

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
        """One request on a connection of its own."""
        sent = json.dumps(body) if isinstance(body, Mapping) else body
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, sent, dict(headers))
            answer = connection.getresponse()
            return Answer(answer.status, answer.read())
        finally:
            connection.close()
