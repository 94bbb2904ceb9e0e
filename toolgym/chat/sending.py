"""One try: a request through the library `openai`, and what became of it.

Nothing raises here but bugs and cancellation: a try ends in a reply, or in a fault with the time
that the server asks to wait. The time limit of a try holds from its first packet to its last. The
library's exceptions hold the request with its headers, so they stay in this module; no fault has
one as its cause or context, and the key is struck out of every text that comes back.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple

from toolgym.chat.faults import ChatFault, code_of_status, fault
from toolgym.chat.reply import NotAReply, Reply, encoded, read_error, read_reply
from toolgym.chat.settings import ChatSettings
from toolgym.errors import ConfigurationError
from toolgym.sanitize import encodable

# How long to wait before a request is tried again.
#
# The wait doubles from try to try and is scattered between half and all of it, so that requests
# which failed together do not come back together. The scatter is a hash of the request and the
# number of the try: no random state, and the same run waits the same. A server that says how long
# to wait (`Retry-After`, in seconds or as a date) is obeyed, for an hour at most: one wrong header
# must not silence a client for good.

LONGEST: Final = 20.0
"""Seconds; the doubling stops there."""
LONGEST_REST: Final = 3600.0
"""Seconds; a server that asks for more is asked again after these."""


def wait_before(attempt: int, key: str, first: float) -> float:
    """Seconds before a try.

    Args:
        attempt: 1 for the first try after a failure.
        first: What the wait before that one may be at most.

    >>> 0.25 <= wait_before(1, "some request", 0.5) <= 0.5
    True
    """
    digest = hashlib.blake2b(f"{key}-{attempt}".encode(), digest_size=4).digest()
    share = 0.5 + 0.5 * int.from_bytes(digest, "big") / 0xFFFFFFFF
    return float(min(first * 2.0 ** min(attempt - 1, 30), LONGEST) * share)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait; None if it says nothing that can be read.

    >>> retry_after({"retry-after": "1.5"}), retry_after({"retry-after": "soon"})
    (1.5, None)
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            seconds = _until(value)
        if 0 <= seconds < float("inf"):
            return min(seconds, LONGEST_REST)
    return None


def _until(date: str) -> float:
    """Seconds until a date of HTTP; negative if it is none. One that has passed is now."""
    try:
        when = parsedate_to_datetime(date)
        aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        return max(0.0, aware.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return -1.0


_NO_KEY: Final = "no-key"
_SHORTEST_KEY: Final = 6
_STRUCK_OUT: Final = "[key]"
_QUOTED: Final = 200


class Sent(NamedTuple):
    """A try that failed.

    Attributes:
        fault: Of which kind.
        what: The same in words, without the server's name.
        retry_after: Seconds the server asks to wait; None if it says nothing.
    """

    fault: ChatFault
    what: str
    retry_after: float | None = None


class Sender:
    """Connections to one server, on one event loop.

    Args:
        settings: Which server; the key is read from the environment here.
    """

    def __init__(self, settings: ChatSettings) -> None:
        import openai

        from toolgym.chat import bounded_http

        self.settings = settings
        self._key = settings.key()
        self._library, self._http = openai, bounded_http
        self._client = openai.AsyncOpenAI(
            api_key=self._key or _NO_KEY,
            base_url=settings.url,
            max_retries=0,
            timeout=settings.timeout,
            default_headers=bounded_http.HEADERS,
            http_client=bounded_http.BoundedClient(
                settings.concurrency, tls=not settings.url.lower().startswith("http:")
            ),
        )

    @staticmethod
    def check_installed() -> None:
        """See that the library is there, without importing it.

        Raises:
            ConfigurationError: It is not.
        """
        if importlib.util.find_spec("openai") is None:
            raise ConfigurationError(
                "chat models on a server need the library openai: pip install 'toolgym[openai]'."
            )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def send(self, body: dict[str, Any], left: float) -> Reply | Sent:
        """Send a request once.

        Args:
            left: Seconds that are left of the deadline.
        """
        limit = min(self.settings.timeout, left)
        try:
            async with asyncio.timeout(limit):
                # `post` of plain bytes: the typed method checks, and copies, every field.
                answer = await self._client.post(
                    "/chat/completions", content=encoded(body), cast_to=bytes
                )
        except (TimeoutError, self._library.APITimeoutError):
            return self._failed("timeout", f"no reply within {limit:g} s")
        except self._http.Refused as problem:
            return self._refused(problem.status, problem.headers, _text(problem.body))
        except self._http.Unreadable as problem:
            return self._failed("unreadable_reply", str(problem))
        except self._library.OpenAIError as problem:
            cause = problem.__cause__
            what = "no connection" if cause is None else self._safe(f"{cause}" or repr(cause))
            return self._failed("unreachable", what)
        return self._read(_text(answer), body)

    def _read(self, text: str, body: dict[str, Any]) -> Reply | Sent:
        try:
            reply = read_reply(self._without_key(text), body)
        except NotAReply as problem:
            return self._failed("unreadable_reply", self._safe(str(problem)))
        if reply.finish == "content_filter":
            return self._failed("content_filter", "the reply was withheld by a content filter")
        return reply

    def _refused(self, status: int, headers: Mapping[str, str], text: str) -> Reply | Sent:
        """The result of a status other than 2xx."""
        error = read_error(text)
        if error.code == "context_length_exceeded":
            return Reply("", finish="length")  # the model has no room left to say anything
        code = code_of_status(status, error.code)
        # A server that refuses a key tends to quote it, or half of it.
        quoted = f": {self._safe(error.message)}" if error.message and code != "refused_key" else ""
        hint = ""
        if 300 <= status < 400:
            hint = "It sends requests elsewhere; give the base URL of the server that answers them."
        return self._failed(code, f"status {status}{quoted}", retry_after(headers), hint)

    def _failed(self, code: str, what: str, wait: float | None = None, hint: str = "") -> Sent:
        return Sent(fault(code, self.settings.server, what, hint), what, wait)

    def _safe(self, text: str) -> str:
        """A few words of a server, without the key."""
        return encodable(self._without_key(text)[:_QUOTED])

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, _STRUCK_OUT) if len(self._key) >= _SHORTEST_KEY else text


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")
