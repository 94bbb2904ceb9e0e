"""`ChatClient`: requests to a chat model, over the library `openai`, with what a long run needs.

Requests run on an event loop of the client's own, in a thread that ends with the process, so any
number of threads may wait for replies at once.

The retries of the library are switched off, since ours keep to a deadline, wait the same in every
run, and let one `Retry-After` hold back all requests of the client.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
import time
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from toolgym.chat.cache import ReplyCache
from toolgym.chat.faults import ChatFault, fault
from toolgym.chat.reply import Chat, Reply, key_of
from toolgym.chat.sending import Sender, Sent, wait_before
from toolgym.chat.settings import ChatSettings
from toolgym.forks import leave_to_parent, renew_in_child

T = TypeVar("T")
#: Clients with a loop of their own, until they are closed: at the end of the process at the latest.
_OPEN: set[ChatClient] = set()


@dataclass(frozen=True, slots=True)
class Totals:
    """The totals of a client so far.

    Attributes:
        replies: Replies given, those from the cache too.
        cached: Of these, from the cache.
        retries: Tries beyond the first one of a request.
        faults: Requests that ended in a fault.
        tokens_in: Tokens read, for replies that were not cached.
        tokens_out: Tokens written, likewise.
        estimated: Replies whose usage the server did not tell.
        dollars: What it cost; None if a price is not known.
    """

    replies: int = 0
    cached: int = 0
    retries: int = 0
    faults: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    estimated: int = 0
    dollars: float | None = 0.0


class _Lane:
    """The resources of the event loop: connections, slots, and the server's rest."""

    def __init__(self, settings: ChatSettings) -> None:
        self.sender = Sender(settings)
        self.slots = asyncio.Semaphore(settings.concurrency)
        self.rest_until = 0.0


class ChatClient:
    """Asks a chat model.

    Raises:
        ConfigurationError: The library `openai` is not installed, or the cache cannot be opened.
    """

    def __init__(self, settings: ChatSettings) -> None:
        self.settings = settings
        Sender.check_installed()
        file = settings.cache_file
        self._cache = None if file is None else ReplyCache(file)
        self._lane: _Lane | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin anew: the loop, the thread and the connections of a parent stay there."""
        leave_to_parent(self._lane, self._loop)
        self._lane = self._loop = None
        self._lock = threading.Lock()
        self._totals = Totals()

    def __repr__(self) -> str:
        return f"ChatClient({self.settings!r})"

    def __reduce__(self) -> tuple[type[ChatClient], tuple[ChatSettings]]:
        return ChatClient, (self.settings,)

    @property
    def totals(self) -> Totals:
        """The requests and their cost, so far."""
        with self._lock:
            return self._totals

    def complete(self, chat: Chat) -> Reply:
        """One reply; waits for it.

        Raises:
            ChatFault: None could be had.
        """
        return self._wait_for(self._complete(chat))

    def complete_all(self, chats: Sequence[Chat]) -> list[Reply | ChatFault]:
        """A reply or a fault for each, at the same time; waits for all of them."""
        return self._wait_for(self._all(chats))

    async def _complete(self, chat: Chat) -> Reply:
        body = chat.body(self.settings)
        key = ""
        if self._cache is not None:
            key = key_of(self.settings.url, body)
            if (cached := self._cache.get(key)) is not None:
                self._count(replies=1, cached=1)
                return cached
        lane = self._lane = self._lane or _Lane(self.settings)
        async with lane.slots:
            reply = await self._tried(lane, body)
        if isinstance(reply, ChatFault):
            self._count(faults=1)
            raise reply
        if self._cache is not None:
            self._cache.put(key, reply)
        read, written = reply.tokens_in, reply.tokens_out
        reply = replace(reply, dollars=self.settings.dollars(read, written))
        self._count(
            replies=1, tokens_in=read, tokens_out=written, estimated=int(reply.estimated),
            dollars=reply.dollars,
        )  # fmt: skip
        return reply

    def close(self) -> None:
        """Close the connections and the cache; the next request opens them again."""
        if self._loop is not None:
            loop, self._loop = self._loop, None
            lane, self._lane = self._lane, None
            _OPEN.discard(self)
            if lane is not None:
                asyncio.run_coroutine_threadsafe(lane.sender.close(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
        if self._cache is not None:
            self._cache.close()

    # Tries ----------------------------------------------------------------------------------------

    async def _all(self, chats: Sequence[Chat]) -> list[Reply | ChatFault]:
        return await asyncio.gather(*(_or_fault(self._complete(chat)) for chat in chats))

    async def _tried(self, lane: _Lane, body: dict[str, Any]) -> Reply | ChatFault:
        """A reply, or the fault of the last try that time and number allow."""
        settings = self.settings
        end = time.monotonic() + settings.deadline
        attempt = 0
        while True:
            attempt += 1
            if lane.rest_until >= end:
                rest = lane.rest_until - time.monotonic()
                return fault("rate_limited", settings.server, f"it asked for {rest:.0f} s of rest")
            await _sleep_until(lane.rest_until)
            sent = await lane.sender.send(body, max(0.001, end - time.monotonic()))
            if isinstance(sent, Reply):
                return sent
            if not sent.fault.passing or attempt > settings.retries:
                return sent.fault
            wait = wait_before(attempt, key_of(settings.url, body), settings.backoff)
            if sent.retry_after is not None:
                wait = max(wait, sent.retry_after)
                lane.rest_until = max(lane.rest_until, time.monotonic() + sent.retry_after)
            if time.monotonic() + wait >= end:
                return _too_late(settings, sent, wait)
            self._count(retries=1)
            await asyncio.sleep(wait)

    def _count(self, dollars: float | None = 0.0, **more: int) -> None:
        with self._lock:
            now = self._totals
            added = {name: getattr(now, name) + value for name, value in more.items()}
            spent = None if now.dollars is None or dollars is None else now.dollars + dollars
            self._totals = replace(now, dollars=spent, **added)

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of some work on the client's own loop."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                _OPEN.add(self)
                threading.Thread(
                    target=_run, args=(self._loop,), name="toolgym-chat", daemon=True
                ).start()
            loop = self._loop
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _sleep_until(moment: float) -> None:
    if (left := moment - time.monotonic()) > 0:
        await asyncio.sleep(left)


async def _or_fault(work: Awaitable[Reply]) -> Reply | ChatFault:
    try:
        return await work
    except ChatFault as problem:
        return problem


def _too_late(settings: ChatSettings, sent: Sent, wait: float) -> ChatFault:
    what = f"{sent.what}; the next try would be in {wait:.1f} s, after the deadline"
    return fault(sent.fault.code, settings.server, what)


@atexit.register
def _close_all() -> None:
    for client in list(_OPEN):
        client.close()
