"""What a server may send in answer to a chat request, and what must come of it, as data.

The outcome is the text of the reply after "=", or the code of a fault. Lengths and depths are far
beyond what the client takes, so that a limit that is lifted shows. A large step is a function: its
bytes are made when they are sent.
"""

import gzip
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
    Hostile("reset in place of an answer", (RESET,), "unreachable"),
    Hostile("reset within the body", (OK + LENGTH + b"\r\n{", RESET), "unreachable"),
    Hostile("half a status line", (b"HTTP/1.1 2", CLOSE), "unreachable"),
    Hostile("a status that is no number", (b"HTTP/1.1 abc OK\r\n\r\n",), "unreachable"),
    Hostile("status 0", (b"HTTP/1.1 000 X\r\nContent-Length: 0\r\n\r\n",), "unreachable"),
    Hostile("status 999", (error("999 X"),), "server_error"),
    Hostile("HTTP/0.9", (FINE, CLOSE), "unreachable"),
    Hostile("HTTP/1.0", (b"HTTP/1.0 200 OK\r\n\r\n" + FINE, CLOSE), "=fine"),
    Hostile("TLS on a plain port", (b"\x15\x03\x01\x00\x02\x02\x46" * 9, CLOSE), "unreachable"),
    Hostile("endless null bytes", (Endless(bytes(65536)),), "unreachable"),
    Hostile("null bytes in a header", (OK + b"X: a\0b\r\n" + LENGTH + b"\r\n",), "unreachable"),
    Hostile("an answer before the question", (http(completion()),), "=fine", unasked=True),
    Hostile("a header without a colon", (OK + b"no header\r\n\r\n",), "unreachable"),
    Hostile("a header of 10 MB", (OK + b"X: ", lambda: b"y" * (10 << 20)), "unreachable"),
    Hostile("endless headers", (OK, Endless(b"X: y\r\n" * 1000)), "unreachable"),
    Hostile("headers in UTF-8", (http(completion(), "X: \u00fc\u00ff"),), "=fine"),
    Hostile("an interim answer", (b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + http(completion()),),
            "=fine"),
    Hostile("endless interim answers", (Endless(b"HTTP/1.1 100 C\r\n\r\n" * 100),), "timeout",
            endless=True),
    Hostile("a switch of protocols", (b"HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\nabc",),
            "unreachable"),
]  # fmt: skip

BODIES = [
    Hostile("a length that is negative", (OK + b"Content-Length: -5\r\n\r\n" + FINE,),
            "unreachable"),
    Hostile("two lengths", (OK + LENGTH + b"Content-Length: 3\r\n\r\n" + FINE,), "unreachable"),
    Hostile("a length beyond all bounds", (OK + b"Content-Length: 99999999999\r\n\r\n",),
            "unreadable_reply"),
    Hostile("a length that is too short", (OK + b"Content-Length: 9\r\n\r\n" + FINE,),
            "unreadable_reply", tail=True),
    Hostile("a length that is too long", (OK + b"Content-Length: 5000\r\n\r\n" + FINE, CLOSE),
            "unreachable"),
    Hostile("no length", (OK + b"\r\n" + FINE, CLOSE), "=fine"),
    Hostile("no length and endless", (OK + b"\r\n", Endless(b" " * 65536)), "unreadable_reply"),
    Hostile("an endless body of an error", (b"HTTP/1.1 500 X\r\n\r\n", Endless(b" " * 65536)),
            "server_error"),
    Hostile("a byte at a time", (OK + LENGTH + b"\r\n", Endless(b" ", 0.02)), "timeout",
            endless=True),
    Hostile("chunks with extensions",
            (CHUNKED + b"%x;a=b\r\n%s\r\n0;c\r\nT: x\r\n\r\n" % (len(FINE), FINE),), "=fine"),
    Hostile("a length beside chunks",
            (OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(FINE)
             + chunk(b""),), "=fine"),
    Hostile("a negative chunk, again and again", (CHUNKED, Endless(b"-5\r\nhello\r\n")),
            "unreachable"),
    Hostile("a chunk of 40 digits", (CHUNKED + b"f" * 40 + b"\r\nhello\r\n",), "unreachable"),
    Hostile("a chunk that is endless", (CHUNKED + b"fffffffffff\r\n", Endless(b" " * 65536)),
            "unreadable_reply"),
    Hostile("chunks without an end", (CHUNKED, Endless(chunk(b" " * 65536))), "unreadable_reply"),
    Hostile("trailers without an end",
            (CHUNKED + chunk(FINE) + b"0\r\n", Endless(b"X: y\r\n" * 999)), "unreachable"),
    Hostile("an unknown transfer encoding", (OK + b"Transfer-Encoding: rot13\r\n\r\n" + FINE,),
            "unreachable"),
    Hostile("garbage behind the answer", (http(completion()) + b"garbage" * 99,), "=fine",
            tail=True),
    Hostile("a body beyond all bounds", (lambda: http(b'"' + b"x" * (12 << 20) + b'"'),),
            "unreadable_reply"),
]  # fmt: skip

PACKED = [
    Hostile("gzip", (packed(gzip.compress(FINE), "gzip"),), "unreadable_reply"),
    Hostile("a packing nobody knows", (packed(FINE, "x" * 9000),), "unreadable_reply"),
    Hostile("a gzip bomb", (lambda: packed(bomb(), "gzip"),), "unreadable_reply"),
    Hostile("a gzip bomb in an error",
            (lambda: http(bomb(), "Content-Encoding: gzip", status="500 X"),), "server_error"),
]  # fmt: skip

STATUSES = [
    Hostile("204", (b"HTTP/1.1 204 No Content\r\n\r\n",), "unreadable_reply"),
    Hostile("304", (b"HTTP/1.1 304 X\r\n\r\n",), "refused_request"),
    Hostile("a redirect to itself", (error("307 X", "Location: /v1/chat/completions"),),
            "refused_request"),
    Hostile("a redirect to no address", (error("308 X", "Location: http://[:::/\x7f"),),
            "refused_request"),
    Hostile("an error as HTML", (error("502 X", body=b"<html>\xff</html>"),), "server_error"),
    Hostile("an error with a code that is a dict",
            (error("400 X", body={"error": {"code": {"a": [1]}, "message": ["no"], "param": {}}}),),
            "refused_request"),
    Hostile("an error that is nested", (lambda: error("400 X", body=deep("[", "]").encode()),),
            "refused_request"),
    Hostile("an error with half a character",
            (error("400 X", body={"error": {"message": "\ud800", "code": "\udfff"}}),),
            "refused_request"),
    Hostile("an error within a success", (whole(choices=None, error={"message": "overloaded"}),),
            "unreadable_reply"),
    *(
        Hostile(f"{status} and Retry-After: {after[:20]}",
                (error(f"{status} X", f"Retry-After: {after}"),),
                "rate_limited" if status == 429 else "server_error")
        for status, after in ((429, "nan"), (503, "-1"), (429, "\u00fc"), (503, "-" + "9" * 400),
                              (429, "Wed, 99 Foo 99999 99:99:99 +999999"))
    ),
]  # fmt: skip

JSON = [
    Hostile("half of it", (raw(FINE.decode()[:-5]),), "unreadable_reply"),
    Hostile("something behind it", (raw(FINE.decode() + "x"),), "unreadable_reply"),
    Hostile("a stream of events", (http(b"data: %s\n\ndata: [DONE]\n\n" % FINE,
                                        "Content-Type: text/event-stream"),), "unreadable_reply"),
    Hostile("bytes that are no UTF-8", (http(FINE.replace(b"fine", b"f\xff\xfe")),),
            "=f\ufffd\ufffd"),
    Hostile("half a character", (raw(FINE.decode().replace("fine", "f\\ud800")),), "=f\ufffd"),
    Hostile("100,000 lists", (lambda: raw(deep("[", "]")),), "unreadable_reply"),
    Hostile("100,000 dicts", (lambda: raw(deep('{"a":', "}")),), "unreadable_reply"),
    Hostile("100,000 lists in a field", (lambda: with_field(deep("[", "]")),), "unreadable_reply"),
    Hostile("two million values", (lambda: raw("[" + "[]," * 2_000_000 + "1]"),),
            "unreadable_reply"),
    Hostile("a number of 100,000 digits", (lambda: with_field("7" * 100_000),),
            "unreadable_reply"),
    Hostile("NaN and Infinity", (with_field("[NaN, -Infinity]"),), "=fine"),
    Hostile("a key twice, the wrong one last", (raw(FINE.decode()[:-1] + ', "choices": 7}'),),
            "unreadable_reply"),
]  # fmt: skip

_CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
FIELDS = [
    *(Hostile(f"choices: {value!r}", (whole(choices=value),), "unreadable_reply")
      for value in ([], None, [None], {"0": {}})),
    *(Hostile(f"message: {value!r}", (choice(message=value),), "unreadable_reply")
      for value in (None, ["x"])),
    *(Hostile(f"content: {value!r}", (message(content=value),), f"={text}")
      for value, text in ((7, ""), ([None, 7, [], {"text": 7}, {"text": "x"}, {"text": "\udc00"}],
                                    "x\ufffd"))),
    *(Hostile(f"tool_calls: {value!r:.60}", (calls(value),), "=fine")
      for value in ("x", [None], [{"function": []}],
                    [{"id": {"a": 1}, "function": {"name": None, "arguments": [1]}}],
                    [{"id": 7, "function": {"name": "\ud800", "arguments": "\ud800"}}],
                    [_CALL] * 9)),
    *(Hostile(f"finish_reason: {value!r}", (choice(finish_reason=value),), "=fine")
      for value in ({"a": 1}, "x" * 999)),
    *(Hostile(f"usage: {value!r:.60}", (whole(usage=value),), "=fine")
      for value in ([], {"prompt_tokens": -1, "completion_tokens": 5},
                    {"prompt_tokens": 10**18, "completion_tokens": 10**400},
                    {"prompt_tokens": float("nan"), "completion_tokens": float("inf")})),
]  # fmt: skip

HOSTILE = [*FRAMES, *BODIES, *PACKED, *STATUSES, *JSON, *FIELDS]
