"""`Chat` and `Reply`: a request to a chat model and its reply, as plain data.

`read_reply` and `read_error` read the JSON response of a server. JSON that violates the protocol
raises `NotAReply`. Missing or impossible token counts are estimated from the text. Lone surrogates
in strings are replaced.
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
        messages: The messages in the format of the API.
        tools: The tools in the OpenAI function format.
        seed: Seed for the server, which is also part of the cache key.
        max_tokens: Maximum number of tokens of the reply; None means the maximum in the settings.
    """

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    seed: int | None = None
    max_tokens: int | None = None

    def body(self, settings: ChatSettings) -> dict[str, Any]:
        """Return the body of the request."""
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
    """Encode the body of a request as JSON. Lone surrogates are replaced."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=str)
    return encodable(text).encode("utf-8")


def key_of(url: str, body: Mapping[str, Any]) -> str:
    """Return the key of a reply in the cache: a hash of the server and the complete request."""
    text = json.dumps([url, body], sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.blake2b(text.encode("ascii"), digest_size=20).hexdigest()


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of a model.

    Attributes:
        text: The text; empty if the reply has tool calls only.
        tool_calls: The calls in the format of the API, with arguments as JSON text.
        finish: The server's finish reason, such as `stop`, or `length` if the reply was cut off.
        tokens_in: Number of prompt tokens.
        tokens_out: Number of generated tokens.
        estimated: Whether the token counts are estimates, because the server did not report them.
        cached: Whether the reply comes from the cache.
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
        """Whether the reply was cut off at its maximum length."""
        return self.finish == "length"


class NotAReply(ValueError):
    """Raised for a response that violates the protocol. The error message states the reason."""


def read_reply(text: str, body: Mapping[str, Any]) -> Reply:
    """Read the reply in the body of a response.

    Args:
        text: The body of the response.
        body: The request, used to estimate missing token counts.

    Raises:
        NotAReply: The text is not JSON, or has no choice with a message.
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
    content = message.get("content")
    entries = content if isinstance(content, list) else [{"text": content}]
    text = "".join(_text(_dict(entry).get("text")) for entry in entries)
    text = text or _text(message.get("refusal"))
    calls = _calls(message.get("tool_calls"))
    usage = _dict(answer.get("usage"))
    counts: list[Any] = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    estimated = not all(type(each) is int and 0 < each <= _MOST_TOKENS for each in counts)
    if estimated:
        written = text + "".join(call["function"]["arguments"] for call in calls)
        prompt = json.dumps(body.get("messages"), default=str)
        counts = [len(each) // _CHARACTERS_PER_TOKEN + 1 for each in (prompt, written)]
    finish = _text(choice.get("finish_reason")) or "stop"
    return Reply(text, calls, finish, counts[0], counts[1], estimated)


class ServerError(NamedTuple):
    """The code and message of an error from a server; "" if missing."""

    code: str
    message: str


def read_error(text: str) -> ServerError:
    """Read the error in the body of a response with an error status."""
    try:
        return _error(_loaded(text))
    except NotAReply:
        return ServerError("", "")


def _error(answer: Any) -> ServerError:
    error = _dict(answer).get("error", answer)
    fields = {"message": error} if isinstance(error, str) else _dict(error)
    return ServerError(_text(fields.get("code")), _text(fields.get("message")))


def _loaded(text: str) -> Any:
    """Load JSON with a limited number of values, each of which takes up to 70 bytes of memory.

    Raises:
        NotAReply: The text is not JSON, has too many values, or is nested too deeply.
    """
    if sum(map(text.count, "[{,")) > _MOST_VALUES:
        raise NotAReply("the reply has too many values")
    try:
        answer = json.loads(text)
        json.dumps(answer)  # fails early if the nesting is too deep
        return answer
    except (ValueError, RecursionError):
        raise NotAReply("the reply is not JSON, or is nested too deeply") from None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return encodable(value) if isinstance(value, str) else ""


def _calls(entries: Any) -> tuple[dict[str, Any], ...]:
    """Return the calls with ids and with arguments as JSON text, as the API requires."""
    calls = []
    for place, call in enumerate(entries if isinstance(entries, list) else ()):
        if not (inner := _dict(_dict(call).get("function"))):
            continue
        arguments = inner.get("arguments")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        function = {"name": _text(inner.get("name")), "arguments": encodable(text)}
        call_id = _text(call.get("id")) or f"call_{place}"
        calls.append({"id": call_id, "type": "function", "function": function})
    return tuple(calls)
