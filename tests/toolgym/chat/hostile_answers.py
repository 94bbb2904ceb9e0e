"""What a server may send in answer to a chat request, and what must come of it, as data.

The outcome is the text of the reply after "=", or the code of a fault. Lengths and depths are far
beyond what the client takes, so that a limit that is lifted shows. A large step is a function: its
bytes are made when they are sent.
"""

import json
import zlib
from functools import cache
from typing import Any, NamedTuple

from tests.toolgym.chat.hostile_server import CLOSE, RESET, Endless, Pause, completion, http

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
FINE = json.dumps(completion()).encode()
LENGTH = b"Content-Length: %d\r\n" % len(FINE)
NEVER = Pause(600)


class Hostile(NamedTuple):
    name: str
    steps: tuple
    outcome: str
    unasked: bool = False
    endless: bool = False
    """Only the time limit can end it."""
    tail: bool = False
    """Its last bytes may spoil one request more: they stand where the next answer is expected."""


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def packed(body: bytes, encoding: str) -> bytes:
    return http(body, f"Content-Encoding: {encoding}")


@cache
def bomb() -> bytes:
    """A gzip of 100 MB."""
    packing = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    pieces = [packing.compress(bytes(1 << 20)) for _ in range(100)]
    return b"".join(pieces) + packing.flush()


def choice(**changed: Any) -> bytes:
    made = completion()
    made["choices"][0].update(changed)
    return http(made)


def whole(**changed: Any) -> bytes:
    return http({**completion(), **changed})


def message(**changed: Any) -> bytes:
    return http(completion(**changed))


def calls(given: Any) -> bytes:
    return http(completion(tool_calls=given))


def error(status: str, *headers: str, body: Any = b"") -> bytes:
    return http(body, *headers, status=status)


def raw(text: str) -> bytes:
    return http(text.encode())


def deep(opening: str, closing: str) -> str:
    return opening * 100_000 + "1" + closing * 100_000


def with_field(text: str) -> bytes:
    """The fine reply with one field more."""
    return raw(FINE.decode()[:-1] + f', "x": {text}}}')


FRAMES = [
    Hostile("nothing at all", (NEVER,), "timeout", endless=True),
    Hostile("a connection that is closed at once", (CLOSE,), "unreachable", unasked=True),
    Hostile("reset within the body", (OK + LENGTH + b"\r\n{", RESET), "unreachable"),
    Hostile("a status that is no number", (b"HTTP/1.1 abc OK\r\n\r\n",), "unreachable"),
    Hostile("status 999", (error("999 X"),), "server_error"),
    Hostile("endless null bytes", (Endless(bytes(65536)),), "unreachable"),
    Hostile("an answer before the question", (http(completion()),), "=fine", unasked=True),
    Hostile("endless headers", (OK, Endless(b"X: y\r\n" * 1000)), "unreachable"),
    Hostile("endless interim answers", (Endless(b"HTTP/1.1 100 C\r\n\r\n" * 100),), "timeout",
            endless=True),
]  # fmt: skip

BODIES = [
    Hostile("a length beyond all bounds", (OK + b"Content-Length: 99999999999\r\n\r\n",),
            "unreadable_reply"),
    Hostile("a length that is too short", (OK + b"Content-Length: 9\r\n\r\n" + FINE,),
            "unreadable_reply", tail=True),
    Hostile("no length and endless", (OK + b"\r\n", Endless(b" " * 65536)), "unreadable_reply"),
    Hostile("an endless body of an error", (b"HTTP/1.1 500 X\r\n\r\n", Endless(b" " * 65536)),
            "server_error"),
    Hostile("a byte at a time", (OK + LENGTH + b"\r\n", Endless(b" ", 0.02)), "timeout",
            endless=True),
    Hostile("chunks without an end", (CHUNKED, Endless(chunk(b" " * 65536))), "unreadable_reply"),
    Hostile("garbage behind the answer", (http(completion()) + b"garbage" * 99,), "=fine",
            tail=True),
]  # fmt: skip

PACKED = [
    Hostile("a gzip bomb", (lambda: packed(bomb(), "gzip"),), "unreadable_reply"),
    Hostile("a gzip bomb in an error",
            (lambda: http(bomb(), "Content-Encoding: gzip", status="500 X"),), "server_error"),
]  # fmt: skip

STATUSES = [
    Hostile("204", (b"HTTP/1.1 204 No Content\r\n\r\n",), "unreadable_reply"),
    Hostile("a redirect to itself", (error("307 X", "Location: /v1/chat/completions"),),
            "refused_request"),
    Hostile("an error with a code that is a dict",
            (error("400 X", body={"error": {"code": {"a": [1]}, "message": ["no"], "param": {}}}),),
            "refused_request"),
    Hostile("an error that is nested", (lambda: error("400 X", body=deep("[", "]").encode()),),
            "refused_request"),
    Hostile("an error with half a character",
            (error("400 X", body={"error": {"message": "\ud800", "code": "\udfff"}}),),
            "refused_request"),
    *(
        Hostile(f"Retry-After: {after[:20]}", (error("429 X", f"Retry-After: {after}"),),
                "rate_limited")
        for after in ("nan", "-" + "9" * 400, "\u00fc", "Wed, 99 Foo 99999 99:99:99 +999999")
    ),
]  # fmt: skip

JSON = [
    Hostile("something behind it", (raw(FINE.decode() + "x"),), "unreadable_reply"),
    Hostile("a stream of events", (http(b"data: %s\n\ndata: [DONE]\n\n" % FINE,
                                        "Content-Type: text/event-stream"),), "unreadable_reply"),
    Hostile("bytes that are no UTF-8", (http(FINE.replace(b"fine", b"f\xff\xfe")),),
            "=f\ufffd\ufffd"),
    Hostile("half a character", (raw(FINE.decode().replace("fine", "f\\ud800")),), "=f\ufffd"),
    Hostile("100,000 lists", (lambda: raw(deep("[", "]")),), "unreadable_reply"),
    Hostile("100,000 lists in a field", (lambda: with_field(deep("[", "]")),), "unreadable_reply"),
    Hostile("two million values", (lambda: raw("[" + "[]," * 2_000_000 + "1]"),),
            "unreadable_reply"),
    Hostile("a number of 100,000 digits", (lambda: with_field("7" * 100_000),),
            "unreadable_reply"),
    Hostile("NaN and Infinity", (with_field("[NaN, -Infinity]"),), "=fine"),
]  # fmt: skip

FIELDS = [
    *(Hostile(f"choices: {value!r}", (whole(choices=value),), "unreadable_reply")
      for value in ([], [None])),
    *(Hostile(f"message: {value!r}", (choice(message=value),), "unreadable_reply")
      for value in (None, ["x"])),
    *(Hostile(f"content: {value!r}", (message(content=value),), f"={text}")
      for value, text in ((7, ""), ([None, 7, [], {"text": 7}, {"text": "x"}, {"text": "\udc00"}],
                                    "x\ufffd"))),
    *(Hostile(f"tool_calls: {value!r:.60}", (calls(value),), "=fine")
      for value in ("x", [None], [{"function": []}],
                    [{"id": {"a": 1}, "function": {"name": None, "arguments": [1]}}],
                    [{"id": 7, "function": {"name": "\ud800", "arguments": "\ud800"}}],
                    )),
    *(Hostile(f"finish_reason: {value!r}", (choice(finish_reason=value),), "=fine")
      for value in ({"a": 1}, "x" * 999)),
    *(Hostile(f"usage: {value!r:.60}", (whole(usage=value),), "=fine")
      for value in ([], {"prompt_tokens": -1, "completion_tokens": 5},
                    {"prompt_tokens": 10**18, "completion_tokens": 10**400},
                    {"prompt_tokens": float("nan"), "completion_tokens": float("inf")})),
]  # fmt: skip

HOSTILE = [*FRAMES, *BODIES, *PACKED, *STATUSES, *JSON, *FIELDS]
