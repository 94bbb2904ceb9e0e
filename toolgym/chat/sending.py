"""One try: a request through the library `openai`, and what became of it.

Nothing raises here but bugs and cancellation: a try ends in a reply, or in a fault with the time
that the server asks to wait. The library's exceptions hold the request with its headers, so they
stay in this module; no fault has one as its cause or context, and the key is struck out of every
text that comes back.
"""

from __future__ import annotations

import asyncio
import importlib.util
from typing import Any, Final, NamedTuple

from toolgym.chat.backoff import retry_after
from toolgym.chat.faults import ChatFault, code_of_status, fault
from toolgym.chat.reply import NotAReply, Reply, read_reply
from toolgym.chat.settings import ChatSettings
from toolgym.errors import ConfigurationError

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
        import httpx2
        import openai

        from toolgym.chat.transport import DirectTransport, is_for

        self.settings = settings
        self._key = settings.key()
        direct = httpx2.AsyncClient(transport=DirectTransport()) if is_for(settings.url) else None
        self._library = openai
        self._client = openai.AsyncOpenAI(
            api_key=self._key or _NO_KEY,
            base_url=settings.url,
            max_retries=0,
            timeout=settings.timeout,
            http_client=direct,
        )
        self._as = httpx2.Response

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
            body: What is sent.
            left: Seconds that are left of the deadline.
        """
        limit = min(self.settings.timeout, left)
        try:
            async with asyncio.timeout(limit):
                # `post` with the plain response: the typed method checks, and copies, every field.
                answer = await self._client.post(
                    "/chat/completions", body=body, cast_to=self._as, options={"max_retries": 0}
                )
                text = answer.content.decode("utf-8", "replace")
        except (TimeoutError, self._library.APITimeoutError):
            return self._failed("timeout", f"no reply within {limit:g} s")
        except self._library.APIStatusError as problem:
            return self._refused(problem)
        except self._library.OpenAIError as problem:
            cause = problem.__cause__
            what = "no connection" if cause is None else self._safe(f"{cause}" or repr(cause))
            return self._failed("unreachable", what)
        return self._read(text, body)

    def _read(self, text: str, body: dict[str, Any]) -> Reply | Sent:
        try:
            reply = read_reply(self._safe(text, len(text)), body)
        except NotAReply as problem:
            return self._failed("unreadable_reply", str(problem))
        if reply.finish == "content_filter":
            return self._failed("content_filter", "the reply was withheld by a content filter")
        return reply

    def _refused(self, problem: Any) -> Reply | Sent:
        """What a status other than 200 comes to."""
        said = problem.body if isinstance(problem.body, dict) else {}
        error_code = str(said.get("code") or "")
        if error_code == "context_length_exceeded":
            return Reply("", finish="length")  # the model has no room left to say anything
        code = code_of_status(problem.status_code, error_code)
        message = said.get("message") if isinstance(said.get("message"), str) else ""
        # A server that refuses a key tends to quote it, or half of it.
        quoted = f": {self._safe(message)}" if message and code != "refused_key" else ""
        what = f"status {problem.status_code}{quoted}"
        return self._failed(code, what, retry_after(problem.response.headers))

    def _failed(self, code: str, what: str, wait: float | None = None) -> Sent:
        return Sent(fault(code, self.settings.server, what), what, wait)

    def _safe(self, text: str, longest: int = _QUOTED) -> str:
        """A server's text without the key."""
        if len(self._key) >= _SHORTEST_KEY:
            text = text.replace(self._key, _STRUCK_OUT)
        return text[:longest]
