"""One request to a chat model and its reply, as plain values.

`read_reply` and `read_error` are the places where a server's JSON is looked at. What is not the
protocol raises `NotAReply`; what is merely wrong is put right where that can be told: usage that is
missing, negative or no number is estimated from the texts, and says so. Text leaves in a form that
can be encoded, whatever escapes it was written with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from toolgym.chat.settings import ChatSettings
from toolgym.sanitize import encodable

_CHARACTERS_PER_TOKEN: Final = 4
_MOST_TOKENS: Final = 100_000_000
_FINISHES: Final = frozenset({"stop", "length", "tool_calls", "content_filter"})
_MOST_VALUES: Final = 500_000
_DEEPEST: Final = 64
_LONGEST_INTEGER: Final = 20


@dataclass(frozen=True, slots=True)
class Chat:
    """A request: messages, tools and seed.

    Attributes:
        messages: In the form of the API.
        tools: In the OpenAI function format.
        seed: For the server, and part of what a remembered reply is found by.
        max_tokens: Most tokens of the reply; None takes that of the settings.
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
        text: Its words; empty where it only called tools.
        tool_calls: Its calls, as the API has them, arguments as JSON text.
        finish: `stop`, `tool_calls`, or `length` where it was cut off at its most tokens.
        tokens_in: Tokens it read.
        tokens_out: Tokens it wrote.
        estimated: The server told no such numbers, and they are estimated.
        dollars: What it cost now; 0 from the cache, None if the price is not known.
        cached: It was remembered, and nothing was asked.
    """

    text: str
    tool_calls: tuple[dict[str, Any], ...] = ()
    finish: str = "stop"
    tokens_in: int = 0
    tokens_out: int = 0
    estimated: bool = False
    dollars: float | None = None
    cached: bool = False

    @property
    def cut(self) -> bool:
        """Whether it was cut off."""
        return self.finish == "length"


class NotAReply(ValueError):
    """This is no reply of the protocol; the message says what is wrong with it."""


def read_reply(text: str, body: Mapping[str, Any]) -> Reply:
    """The reply in a server's answer.

    Args:
        text: The answer's body.
        body: What was sent, from which missing usage is estimated.

    Raises:
        NotAReply: It is no JSON, or there is no choice with a message in it.
    """
    answer = _loaded(text)
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or not choices:
        error = _error(answer)
        quoted = f", but an error: {error.message}" if error.message else ""
        raise NotAReply(f"the reply has no choices{quoted}")
    choice = choices[0] if isinstance(choices[0], dict) else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        raise NotAReply("its choice has no message")
    content = _content(message.get("content")) or _content(message.get("refusal"))
    calls = _calls(message.get("tool_calls"))
    finish = choice.get("finish_reason")
    finish = finish if isinstance(finish, str) and finish in _FINISHES else "stop"
    usage = answer.get("usage")
    read, written, estimated = _tokens(usage, body, content, calls)
    return Reply(content, calls, finish, read, written, estimated)


class ServerError(NamedTuple):
    """A server's own description of an error; empty where it gives none."""

    code: str
    message: str


def read_error(text: str) -> ServerError:
    """The error in the body of an answer whose status is one."""
    try:
        return _error(_loaded(text))
    except NotAReply:
        return ServerError("", "")


def _error(answer: Any) -> ServerError:
    error = answer.get("error", answer) if isinstance(answer, dict) else None
    if isinstance(error, str):
        return ServerError("", encodable(error))
    fields = error if isinstance(error, dict) else {}
    code, message = fields.get("code"), fields.get("message")
    return ServerError(
        encodable(code) if isinstance(code, str) else "",
        encodable(message) if isinstance(message, str) else "",
    )


def _loaded(text: str) -> Any:
    """JSON of bounded size and depth.

    Raises:
        NotAReply: It is none, or larger than any reply is.
    """
    if sum(map(text.count, "[{,")) > _MOST_VALUES:  # each takes up to 70 bytes in memory
        raise NotAReply("the reply has more values in it than any reply has")
    try:
        answer = json.loads(text, parse_int=_integer)
    except (ValueError, RecursionError):
        raise NotAReply("the reply is no JSON") from None
    level = [answer]
    for _ in range(_DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return answer
    raise NotAReply("the reply is nested deeper than any reply is")


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _integer(digits: str) -> int | float:
    """The number; one of thousands of digits takes too long as an integer."""
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)


def _content(content: Any) -> str:
    if isinstance(content, str):
        return encodable(content)
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return encodable("".join(text for text in texts if isinstance(text, str)))


def _calls(entries: Any) -> tuple[dict[str, Any], ...]:
    """The calls with an id each and arguments as text, as they have to be sent back."""
    calls = []
    for place, call in enumerate(entries if isinstance(entries, list) else ()):
        inner = call.get("function") if isinstance(call, dict) else None
        if not isinstance(inner, dict):
            continue
        name, arguments, told_id = inner.get("name"), inner.get("arguments"), call.get("id")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        has_id = isinstance(told_id, str | int) and bool(told_id)
        calls.append(
            {
                "id": encodable(str(told_id)) if has_id else f"call_{place}",
                "type": "function",
                "function": {
                    "name": encodable(name) if isinstance(name, str) else "",
                    "arguments": encodable(text),
                },
            }
        )
    return tuple(calls)


def _tokens(
    usage: Any, body: Mapping[str, Any], reported: str, calls: Sequence[Any]
) -> tuple[int, int, bool]:
    """Tokens read and written, and whether they had to be estimated."""
    usage = usage if isinstance(usage, dict) else {}
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    wrote_something = bool(reported or calls)
    if _is_count(read) and read > 0 and _is_count(written) and (written > 0 or not wrote_something):
        return read, written, False
    asked = len(json.dumps(body.get("messages"), default=str))
    answered = len(reported) + sum(len(call["function"]["arguments"]) for call in calls)
    return asked // _CHARACTERS_PER_TOKEN + 1, answered // _CHARACTERS_PER_TOKEN + 1, True


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
