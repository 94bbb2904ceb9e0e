"""A server on the loopback that sends given bytes, however wrong, and afterwards answers well."""

import asyncio
import json
import socket
import struct
import threading
from typing import NamedTuple


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


class HostileServer:
    """Sends `steps` in answer to the first request, or as soon as a connection is there.

    Args:
        steps: Bytes or a function that gives some, pauses, endless data, CLOSE or RESET.
        unasked: The steps do not wait for a request.
        times: So many requests are answered so; the following ones are answered well.
    """

    def __init__(self, *steps, unasked=False, times=1):
        self.steps, self.unasked, self.times = steps, unasked, times
        self.asked = 0
        self.heads = []
        self._ready = threading.Event()

    def __enter__(self):
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(120)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(120)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    async def _serve(self):
        self._loop, self._stop, self._tasks = asyncio.get_running_loop(), asyncio.Event(), set()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=1 << 24)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader, writer):
        self._tasks.add(task := asyncio.current_task())
        try:
            await self._talk(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _talk(self, reader, writer):
        if self.unasked and self.asked < self.times:
            self.asked += 1
            await self._send(self.steps, reader, writer)
        while not writer.is_closing():
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
            self.heads.append(head)
            self.asked += 1
            hostile = not self.unasked and self.asked <= self.times
            await self._send(self.steps if hostile else [http(completion())], reader, writer)

    async def _send(self, steps, reader, writer):
        for step in steps:
            if callable(step):
                step = step()
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
            elif isinstance(step, Endless):
                while not reader.at_eof():
                    writer.write(step.data)
                    await writer.drain()
                    await asyncio.sleep(step.pause)
            elif step == RESET:
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, linger
                )
                writer.transport.abort()
            else:
                writer.close()
