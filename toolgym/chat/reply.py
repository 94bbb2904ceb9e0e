"""One request to a chat model and its reply, as plain values.

`read_reply` and `read_error` read the JSON of a server. What does not follow the protocol raises
`NotAReply`. Counts of tokens that are missing or cannot be are estimated from the texts. Text
leaves in a form that can be encoded, whatever escapes it was written with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from toolgym.chat.settings import ChatSettings
from toolgym.sanitize import encodable

_CHARACTERS_PER_TOKEN: Final = 4
_MOST_TOKENS: Final = 100_000_000
_MOST_VALUES: Final = 500_000


@dataclass(frozen=True, slots=True)
class Chat:
    """A request: messages, tools and seed.

    Attributes:
        messages: In the form of the API.
        tools: In the OpenAI function format.
        seed: Seed for the server; a cached reply is found by it too.
        max_tokens: Largest number of tokens of the reply; None takes that of the settings.
    """

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    seed: int | None = None
    max_tokens: int | None = None

    def body(self, settings: ChatSettings) -> dict[str, Any]:
        """The request as it is sent."""
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": list(self.messages),
            "temperature": settings.temperature,
            "max_tokens": min(self.max_tokens or settings.max_tokens, settings.max_tokens),
            "seed": self.seed,
            "tools": list(self.tools) or None,
            **settings.extra,
        }
        return {name: value for name, value in body.items() if value is not None}


def encoded(body: Mapping[str, Any]) -> bytes:
    """A request as it goes over the wire.

    A transcript may hold what no UTF-8 can, such as half a character that a model wrote.
    """
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=str)
    return encodable(text).encode("utf-8")


def key_of(url: str, body: Mapping[str, Any]) -> str:
    """The key of a reply in the cache: the server, and all that was sent, the seed too."""
    text = json.dumps([url, body], sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.blake2b(text.encode("ascii"), digest_size=20).hexdigest()


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of a model.

    Attributes:
        text: Its text; empty if it only called tools.
        tool_calls: Its calls in the form of the API, with arguments as JSON text.
        finish: The server's reason, such as `stop`, or `length` if it was cut off at `max_tokens`.
        tokens_in: Tokens that the model read.
        tokens_out: Tokens that it wrote.
        estimated: Whether these numbers are estimates, since the server gave none.
        cached: Whether it comes from the cache.
    """

    text: str
    tool_calls: tuple[dict[str, Any], ...] = ()
    finish: str = "stop"
    tokens_in: int = 0
    tokens_out: int = 0
    estimated: bool = False
    cached: bool = False

    @property
    def cut(self) -> bool:
        """Whether it was cut off."""
        return self.finish == "length"


class NotAReply(ValueError):
    """A text that is no reply of the protocol; the message says what is wrong with it."""


def read_reply(text: str, body: Mapping[str, Any]) -> Reply:
    """The reply in a server's answer.

    Args:
        text: The answer's body.
        body: The request, from which missing counts of tokens are estimated.

    Raises:
        NotAReply: It is no JSON, or there is no choice with a message in it.
    """
    answer = _loaded(text)
    choices = _dict(answer).get("choices")
    if not isinstance(choices, list) or not choices:
        error = _error(answer).message
        raise NotAReply(f"the reply has no choices{f', but an error: {error}' if error else ''}")
    choice = _dict(choices[0])
    message = choice.get("message")
    if not isinstance(message, dict):
        raise NotAReply("its choice has no message")
    said = message.get("content")
    parts = [_dict(part).get("text") for part in said] if isinstance(said, list) else [said]
    content = "".join(map(_text, parts)) or _text(message.get("refusal"))
    calls = _calls(message.get("tool_calls"))
    usage = _dict(answer.get("usage"))
    counts: list[Any] = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    estimated = not all(type(each) is int and 0 < each <= _MOST_TOKENS for each in counts)
    if estimated:
        written = content + "".join(call["function"]["arguments"] for call in calls)
        asked = json.dumps(body.get("messages"), default=str)
        counts = [len(each) // _CHARACTERS_PER_TOKEN + 1 for each in (asked, written)]
    finish = _text(choice.get("finish_reason")) or "stop"
    return Reply(content, calls, finish, counts[0], counts[1], estimated)


class ServerError(NamedTuple):
    """A server's own description of an error; empty texts if it gives none."""

    code: str
    message: str


def read_error(text: str) -> ServerError:
    """The error in the body of an answer whose status is one."""
    try:
        return _error(_loaded(text))
    except NotAReply:
        return ServerError("", "")


def _error(answer: Any) -> ServerError:
    error = _dict(answer).get("error", answer)
    fields = {"message": error} if isinstance(error, str) else _dict(error)
    return ServerError(_text(fields.get("code")), _text(fields.get("message")))


def _loaded(text: str) -> Any:
    """JSON with a bounded number of values, each of which takes up to 70 bytes in memory.

    Raises:
        NotAReply: It is no JSON, or has more values or levels than any reply has.
    """
    if sum(map(text.count, "[{,")) > _MOST_VALUES:
        raise NotAReply("the reply has more values in it than any reply has")
    try:
        answer = json.loads(text)
        json.dumps(answer)  # goes through every level, so that later work on a part can
        return answer
    except (ValueError, RecursionError):
        raise NotAReply("the reply is no JSON, or is nested too deep") from None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return encodable(value) if isinstance(value, str) else ""


def _calls(entries: Any) -> tuple[dict[str, Any], ...]:
    """The calls with an id each and arguments as text, as they have to be sent back."""
    calls = []
    for place, call in enumerate(entries if isinstance(entries, list) else ()):
        if not (inner := _dict(_dict(call).get("function"))):
            continue
        arguments = inner.get("arguments")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        function = {"name": _text(inner.get("name")), "arguments": encodable(text)}
        told = _text(call.get("id")) or f"call_{place}"
        calls.append({"id": told, "type": "function", "function": function})
    return tuple(calls)
