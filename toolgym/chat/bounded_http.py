"""HTTP to a server that may send anything: the client of the library `openai`, with limits.

Connections, TLS and proxies are the library's business. What it does not have is a bound on what
comes back: it unpacks a body while it reads it, reads the body of an error to its end, and follows
redirects with the prompt in hand. Here a body is read as it comes off the wire, up to a limit;
a packed one is unpacked afterwards, up to the same limit, though none was asked for; a redirect is
an answer like any other; and cookies are dropped, so that no reply depends on an earlier one.

How long all of it may take is the caller's to say: whoever cancels `send` ends the exchange, and
the connection with it.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final

import openai

LONGEST_BODY: Final = 1 << 23
"""Bytes of a body, as it is sent and unpacked: two million tokens."""
HEADERS: Final = {"Accept-Encoding": "identity"}
"""What a request says of the reply that it wants."""
_UNPACKABLE: Final = frozenset({"gzip", "x-gzip", "deflate"})
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS
_PIECES_AT_ONCE: Final = 64
_TOO_LONG: Final = f"the reply is longer than {LONGEST_BODY // 1_000_000} MB"


class Refused(openai.OpenAIError):
    """An answer with a status other than 2xx.

    Args:
        body: As far as it could be read; else empty.
    """

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"status {status}")
        self.status, self.headers, self.body = status, headers, body


class Unreadable(openai.OpenAIError):
    """A body that is not read on; the message says why."""


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """The library's HTTP client, for whole replies of bounded length.

    Args:
        connections: Most connections, which are all kept open.
        tls: Connections are encrypted. To load the certificates takes longer than most requests to
            a local server; without them, none can be encrypted.
    """

    def __init__(self, connections: int, tls: bool) -> None:
        limits = type(openai.DEFAULT_CONNECTION_LIMITS)
        super().__init__(
            verify=True if tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            limits=limits(max_connections=connections, max_keepalive_connections=connections),
        )

    async def send(self, request: Any, **options: Any) -> Any:
        """The whole reply to a request.

        Raises:
            Refused: Its status is not 2xx.
            Unreadable: It is longer than a reply can be, or packed in a way that was not asked for.
        """
        response = await super().send(
            request, **{**options, "stream": True, "follow_redirects": False}
        )
        status = response.status_code
        try:
            body = await _body(response)
        except Unreadable:
            if 200 <= status < 300:
                raise
            body = b""
        finally:
            await response.aclose()
        if not 200 <= status < 300:
            raise Refused(status, response.headers, body)
        return type(response)(status, content=body, request=request)


async def _body(response: Any) -> bytes:
    """The body of a response, unpacked."""
    packing = response.headers.get("content-encoding", "identity").strip().lower()
    if packing != "identity" and packing not in _UNPACKABLE:
        raise Unreadable("the reply is packed in a way that was not asked for")
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length) > LONGEST_BODY:
        raise Unreadable(_TOO_LONG)
    body = bytearray()
    pieces = 0
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > LONGEST_BODY:
            raise Unreadable(_TOO_LONG)
        pieces += 1
        if pieces % _PIECES_AT_ONCE == 0:  # thousands of pieces may come in one packet,
            await asyncio.sleep(0)  # and the time limit, like other requests, needs its turn
    return bytes(body) if packing == "identity" else _unpack(body)


def _unpack(packed: bytearray) -> bytes:
    unpacking = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        body = unpacking.decompress(packed, LONGEST_BODY + 1)
    except zlib.error:
        raise Unreadable("the reply cannot be unpacked") from None
    if len(body) > LONGEST_BODY:
        raise Unreadable(_TOO_LONG)
    if not unpacking.eof:
        raise Unreadable("the reply was cut within its packing")
    return body
