"""`ChatClient`: sends requests to a chat model with the library `openai`.

The library provides connections, retries with exponential backoff, and support for `Retry-After`.
The client adds limits on the number of requests in flight and on the time and length of a reply
(`bounded_http`). The client also adds a deadline, a cache, and totals of tokens and cost.

Requests run on the client's own event loop, in a daemon thread, so any number of threads can wait
for replies at the same time. The exceptions of the library contain the request with its headers.
Therefore these exceptions are never attached to a fault as its cause or context, and the key is
removed from all text that the server returns.
"""

from __future__ import annotations

import asyncio
import importlib.util
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolgym.chat.cache import ReplyCache
from toolgym.chat.faults import ChatFault, code_of_status
from toolgym.chat.reply import Chat, NotAReply, Reply, encoded, key_of, read_error, read_reply
from toolgym.chat.settings import ChatSettings
from toolgym.errors import ConfigurationError
from toolgym.forks import leave_to_parent, renew_in_child
from toolgym.sanitize import encodable

_NO_KEY: Final = "no-key"
_SHORTEST_KEY: Final = 6
_QUOTED: Final = 200


@dataclass
class Totals:
    """The totals of a client so far.

    Attributes:
        replies: Number of replies, including those from the cache.
        cached: Number of replies from the cache.
        faults: Number of requests that ended in a fault.
        tokens_in: Number of prompt tokens of the replies from the server.
        tokens_out: Number of generated tokens of the replies from the server.
        estimated: Number of replies for which the server did not report token counts.
        dollars: Cost of the replies in dollars; None if a price is unknown.
    """

    replies: int = 0
    cached: int = 0
    faults: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    estimated: int = 0
    dollars: float | None = 0.0


class ChatClient:
    """A client for a chat model on a server.

    Attributes:
        settings: The settings. The API key is read from an environment variable at the first
            request.
        totals: The totals of requests, tokens and cost so far.

    Raises:
        ConfigurationError: The library `openai` is not installed, or the cache cannot be opened.
    """

    def __init__(self, settings: ChatSettings) -> None:
        if importlib.util.find_spec("openai") is None:
            raise ConfigurationError(
                "chat models on a server need the library openai: pip install 'toolgym[openai]'."
            )
        self.settings = settings
        file = settings.cache_file
        self._cache = None if file is None else ReplyCache(file)
        self._server: _Server | None = None
        self._close: weakref.finalize[..., ChatClient] | None = None
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Reset the client in a forked child process.

        The event loop, the thread and the connections belong to the parent.
        """
        if self._close is not None:
            self._close.detach()
        leave_to_parent(self._server)
        self._server = self._close = None
        self._lock = threading.Lock()
        self.totals = Totals()

    def __repr__(self) -> str:
        return f"ChatClient({self.settings!r})"

    def __reduce__(self) -> tuple[type[ChatClient], tuple[ChatSettings]]:
        return ChatClient, (self.settings,)

    def complete(self, chat: Chat) -> Reply:
        """Send a request and wait for its reply.

        Raises:
            ChatFault: The request received no reply.
            ConfigurationError: The key cannot be sent.
        """
        (reply,) = self.complete_all([chat])
        if isinstance(reply, ChatFault):
            raise reply
        return reply

    def complete_all(self, chats: Sequence[Chat]) -> list[Reply | ChatFault]:
        """Send requests concurrently; return a reply or a fault for each, in the same order.

        Raises:
            ConfigurationError: The key cannot be sent.
        """
        with self._lock:
            if self._server is None:
                self._server = _Server(self.settings)
                self._close = weakref.finalize(self, self._server.close)
            # Under the lock, so that the loop cannot be stopped before it has the request.
            asked = self._all(chats, self._server)
            future = asyncio.run_coroutine_threadsafe(asked, self._server.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Close the connections. Pending requests of other threads end in a fault.

        The next request opens new connections.
        """
        with self._lock:
            if self._close is not None:
                self._close()
            self._server = self._close = None

    async def _all(self, chats: Sequence[Chat], server: _Server) -> list[Reply | ChatFault]:
        return await asyncio.gather(*(self._counted(chat, server) for chat in chats))

    async def _counted(self, chat: Chat, server: _Server) -> Reply | ChatFault:
        """Return a reply from the cache or the server, and add it to the totals (in this thread
        only)."""
        body, totals = chat.body(self.settings), self.totals
        key = key_of(self.settings.url, body) if self._cache is not None else ""
        if self._cache is not None and (cached := self._cache.get(key)) is not None:
            totals.replies += 1
            totals.cached += 1
            return cached
        reply = await server.ask(body)
        if isinstance(reply, ChatFault):
            totals.faults += 1
            return reply
        if self._cache is not None:
            self._cache.put(key, reply)
        totals.replies += 1
        totals.tokens_in += reply.tokens_in
        totals.tokens_out += reply.tokens_out
        totals.estimated += reply.estimated
        totals.dollars = self.settings.dollars(totals.tokens_in, totals.tokens_out)
        return reply


class _Server:
    """The connections to a server, on an event loop in a separate thread."""

    def __init__(self, settings: ChatSettings) -> None:
        import openai

        from toolgym.chat import bounded_http

        self._settings, self._key = settings, settings.key()
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._requests: set[asyncio.Task[Any]] = set()
        self._is_closed = False
        self._openai, self._unreadable = openai, bounded_http.Unreadable
        self._library = openai.AsyncOpenAI(
            api_key=self._key or _NO_KEY,
            base_url=settings.url,
            max_retries=settings.retries,
            timeout=settings.timeout,
            default_headers=bounded_http.HEADERS,
            http_client=bounded_http.BoundedClient(
                settings.concurrency,
                settings.timeout,
                tls=not settings.url.lower().startswith("http:"),
            ),
        )
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self._run, name="toolgym-chat", daemon=True).start()

    def _run(self) -> None:
        self.loop.run_forever()
        self.loop.close()

    def close(self) -> None:
        """Close the connections and end the thread, without waiting for it."""
        asyncio.run_coroutine_threadsafe(self._end(), self.loop)

    async def _end(self) -> None:
        self._is_closed = True
        # Closing the library does not end requests that are still connecting.
        for request in self._requests:
            request.cancel()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.gather(self._library.close(), return_exceptions=True)
        self.loop.stop()

    async def ask(self, body: dict[str, Any]) -> Reply | ChatFault:
        """Return the server's reply, or the fault of the last attempt."""
        request = asyncio.ensure_future(self._ask(body))
        self._requests.add(request)
        try:
            if self._is_closed:
                request.cancel()
            return await request
        except asyncio.CancelledError:
            if not self._is_closed:
                raise
            return self._fault("unreachable", "the client was closed")
        finally:
            self._requests.discard(request)

    async def _ask(self, body: dict[str, Any]) -> Reply | ChatFault:
        async with self._slots:
            try:
                async with asyncio.timeout(self._settings.deadline):
                    # `post` takes plain bytes, while the typed method checks and copies every
                    # field.
                    answer = await self._library.post(
                        "/chat/completions", content=encoded(body), cast_to=bytes
                    )
            except TimeoutError:
                return self._fault("timeout", f"no reply within {self._settings.deadline:g} s")
            except self._openai.APITimeoutError:
                return self._fault("timeout", f"no reply within {self._settings.timeout:g} s")
            except self._openai.APIStatusError as problem:
                return self._refused(problem.status_code, problem.response.content)
            except self._unreadable as problem:
                return self._fault("unreadable_reply", str(problem))
            except self._openai.OpenAIError as problem:
                cause = problem.__cause__
                what = "no connection" if cause is None else f"{cause}" or repr(cause)
                return self._fault("unreachable", what)
        try:
            reply = read_reply(self._without_key(answer), body)
        except NotAReply as problem:
            return self._fault("unreadable_reply", str(problem))
        if reply.finish == "content_filter":
            return self._fault("content_filter", "the reply was withheld by a content filter")
        return reply

    def _refused(self, status: int, body: bytes) -> Reply | ChatFault:
        """Return the result for a status other than 2xx."""
        error = read_error(self._without_key(body))
        if error.code == "context_length_exceeded":
            return Reply("", finish="length")  # the context is too short for a reply
        code = code_of_status(status, error.code)
        # A server that rejects a key may quote the key or a part of it.
        quoted = f": {error.message}" if error.message and code != "refused_key" else ""
        return self._fault(code, f"status {status}{quoted}")

    def _fault(self, code: str, what: str) -> ChatFault:
        said = encodable(self._without_key(what.encode("utf-8", "replace"))[:_QUOTED]).rstrip(". ")
        return ChatFault(f"the chat server {self._settings.url}: {said}.", code)

    def _without_key(self, body: bytes) -> str:
        text = body.decode("utf-8", "replace")
        return text.replace(self._key, "[key]") if len(self._key) >= _SHORTEST_KEY else text
