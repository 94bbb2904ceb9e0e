"""A server on the loopback that sends given bytes, however wrong, and afterwards answers well."""

import json
import socket
import struct
from typing import NamedTuple

from tests.chat_server import LoopbackServer


class Pause(NamedTuple):
    """Send nothing for so many seconds."""

    seconds: float


class Endless(NamedTuple):
    """Send this again and again, until the other side is gone."""

    data: bytes
    pause: float = 0.0


CLOSE = "close"
RESET = "reset"


def completion(text="fine", **message):
    message = {"role": "assistant", "content": text, **message}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def http(body, *headers, status="200 OK"):
    """A whole answer with a right length."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


class HostileServer(LoopbackServer):
    """Sends `steps` in answer to the first request, or as soon as a connection is there.

    Args:
        steps: Bytes or a function that gives some, pauses, endless data, CLOSE or RESET.
        unasked: The steps do not wait for a request.
        times: So many requests are answered so; the following ones are answered well.
    """

    def __init__(self, *steps, unasked=False, times=1):
        super().__init__()
        self.steps, self.unasked, self.times = steps, unasked, times
        self.asked = 0
        self.heads = []

    def talk(self, connection):
        if self.unasked and self.asked < self.times:
            self.asked += 1
            self.send(self.steps, connection)
        while request := connection.request_of_client():
            self.heads.append(request[0])
            self.asked += 1
            hostile = not self.unasked and self.asked <= self.times
            self.send(self.steps if hostile else [http(completion())], connection)

    def send(self, steps, connection):
        for step in steps:
            step = step() if callable(step) else step
            if isinstance(step, bytes):
                connection.wfile.write(step)
            elif isinstance(step, Pause):
                self.stopped.wait(step.seconds)
            elif isinstance(step, Endless):
                while not self.stopped.wait(step.pause):
                    connection.wfile.write(step.data)
            else:
                if step == RESET:
                    linger = struct.pack("ii", 1, 0)
                    connection.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                raise ConnectionError(step)
