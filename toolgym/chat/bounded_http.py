"""HTTP client for the library `openai` that limits the length and the duration of responses.

The library limits neither the length of a body nor the total time of a request. A server may send
one byte per second, or a small compressed body that expands to gigabytes. This client reads a body
up to a limit and rejects compressed bodies. The time limit of an attempt covers everything from
connecting to receiving the last byte. Redirects are not followed, so the prompt and the key reach
no other server. Cookies are dropped, so no reply depends on an earlier request.
"""

from __future__ import annotations

import asyncio
import ssl
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final

import httpx2
import openai

LONGEST_BODY: Final = 1 << 23
"""Maximum length of a body in bytes, about two million tokens."""
LONGEST_ERROR: Final = 1 << 16
"""Maximum number of bytes that are read from the body of an error response."""
HEADERS: Final = {"Accept-Encoding": "identity"}
_WAITS: Final = ("retry-after", "retry-after-ms")
_PIECES_AT_ONCE: Final = 64
_TOO_LONG: Final = f"the reply is longer than {LONGEST_BODY // 1_000_000} MB"


class Unreadable(openai.OpenAIError):
    """Raised for a response body that cannot be read. The error message states the reason."""


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """An HTTP client that reads complete bodies of limited length.

    Args:
        connections: Maximum number of connections, all of which are kept open.
        seconds: Time limit of one attempt, in seconds.
        tls: Whether connections are encrypted. Without encryption, no certificates are loaded,
            since loading them takes longer than most requests to a local server.
    """

    def __init__(self, connections: int, seconds: float, tls: bool) -> None:
        super().__init__(
            verify=True if tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            limits=httpx2.Limits(
                max_connections=connections, max_keepalive_connections=connections
            ),
            timeout=seconds,
        )
        self._seconds = seconds

    async def send(self, request: Any, **options: Any) -> Any:
        """Send a request and return the response with its body.

        Raises:
            TimeoutException: The request took too long; the library retries it.
            Unreadable: The body is too long or compressed.
            OpenAIError: The client was closed.
        """
        if self.is_closed:
            raise openai.OpenAIError  # httpx raises RuntimeError for it
        options |= {"stream": True, "follow_redirects": False}
        try:
            async with asyncio.timeout(self._seconds):
                response = await super().send(request, **options)
                try:
                    body = await _body(response)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise httpx2.ReadTimeout("time limit", request=request) from None
        waits = {name: response.headers.get(name, "") for name in _WAITS}
        headers = {name: text for name, text in waits.items() if text and text.isascii()}
        if b"insufficient_quota" in body[:LONGEST_ERROR]:
            headers["x-should-retry"] = "false"
        return httpx2.Response(response.status_code, headers=headers, content=body, request=request)


async def _body(response: Any) -> bytes:
    """Return the raw body of a response; for an error, only its beginning."""
    is_error = not 200 <= response.status_code < 300
    most = LONGEST_ERROR if is_error else LONGEST_BODY
    if not is_error and response.headers.get("content-encoding", "identity") != "identity":
        raise Unreadable("the reply is compressed, though the request forbids it")
    if not is_error and int(response.headers.get("content-length", 0)) > most:
        raise Unreadable(_TOO_LONG)
    body = bytearray()
    pieces = 0
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > most:
            if is_error:
                break
            raise Unreadable(_TOO_LONG)
        pieces += 1
        if pieces % _PIECES_AT_ONCE == 0:  # a packet may hold thousands of pieces, so yield to
            await asyncio.sleep(0)  # the time limit and to other requests
    return bytes(body[:most])
