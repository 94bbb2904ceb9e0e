"""The faults between this machine and a language model, each with a code of its own.

All of it is an `EnvironmentFault`: the agent said nothing wrong, since it said nothing. A fault
names the server and what to do next. It is made of a status and a code, never of the headers that
were sent, and the words of a server are quoted only after every key in them is struck out: some
servers repeat the key that they refuse.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from toolgym.errors import EnvironmentFault


class FaultKind(NamedTuple):
    """One code: what it means, what to do, and whether another try may help."""

    meaning: str
    hint: str
    passing: bool


#: Every code of a `ChatFault`.
CHAT_FAULTS: Final[dict[str, FaultKind]] = {
    "unreachable": FaultKind(
        "No connection, or it was cut before the reply was whole.",
        "Is the server running, and is the base URL right (it mostly ends in /v1)?",
        True,
    ),
    "timeout": FaultKind(
        "No reply within the time limit of a request.",
        "Raise timeout, or lower max_tokens or concurrency.",
        True,
    ),
    "rate_limited": FaultKind(
        "429: too many requests.", "Lower concurrency, or raise retries and deadline.", True
    ),
    "server_error": FaultKind(
        "5xx, 408 or 409: the server failed.", "Look at the server's own log.", True
    ),
    "unreadable_reply": FaultKind(
        "The reply is no JSON, has no choice in it, or is larger than a reply can be.",
        "Does something else answer at this URL: a proxy, a login page?",
        True,
    ),
    "quota": FaultKind("429 with `insufficient_quota`.", "The account has no credit left.", False),
    "refused_key": FaultKind(
        "401 or 403.", "Is the variable with the key set, and is it this server's key?", False
    ),
    "not_found": FaultKind(
        "404.", "Is the model spelt as the server lists it, and does the URL end in /v1?", False
    ),
    "refused_request": FaultKind(
        "Another 4xx, or a redirect: the server does not take the request.",
        "If it does not know tools, say tools=text; see `extra` for fields to add or leave out.",
        False,
    ),
    "content_filter": FaultKind(
        "The provider withheld the reply.",
        "Leave the task out, or change the provider's filter.",
        False,
    ),
}


class ChatFault(EnvironmentFault):
    """No completion could be had.

    Args:
        message: What failed, naming the server.
        hint: The next step.
        code: One of `CHAT_FAULTS`.
    """

    def __init__(self, message: str, hint: str = "", code: str = "unreachable") -> None:
        super().__init__(message, hint)
        self.args = (message, hint, code)  # all three, or the code is lost in a pickle
        self.code = code

    @property
    def passing(self) -> bool:
        """Whether another try may help."""
        return CHAT_FAULTS[self.code].passing


def fault(code: str, server: str, what: str, hint: str = "") -> ChatFault:
    """A fault of one kind, with the hint of its kind unless another one is given."""
    sentence = what.rstrip(". ")
    return ChatFault(f"{server}: {sentence}.", hint or CHAT_FAULTS[code].hint, code)


def code_of_status(status: int, error_code: str) -> str:
    """The code of an answer that is an error.

    Args:
        error_code: The server's own, such as `insufficient_quota`; mostly empty.

    >>> code_of_status(429, ""), code_of_status(503, "")
    ('rate_limited', 'server_error')
    """
    if status == 429:
        return "quota" if error_code == "insufficient_quota" else "rate_limited"
    if status >= 500 or status in (408, 409):
        return "server_error"
    if error_code == "content_filter":
        return "content_filter"
    return {401: "refused_key", 403: "refused_key", 404: "not_found"}.get(status, "refused_request")
