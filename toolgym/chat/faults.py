"""The faults between this machine and a language model, each with a code of its own.

Each is an `EnvironmentFault`, since the agent has said nothing wrong. A fault names the server and
the next step. It holds no request, no headers and no key.
"""

from __future__ import annotations

from typing import Final

from toolgym.errors import EnvironmentFault

CHAT_FAULTS: Final = {
    "unreachable": "Is the server running, and is the base URL right (it mostly ends in /v1)?",
    "timeout": "Raise timeout or deadline, or lower max_tokens or concurrency.",
    "rate_limited": "Lower concurrency, or raise retries and deadline.",
    "server_error": "Look at the server's own log.",
    "unreadable_reply": "Does something else answer at this URL: a proxy, a login page?",
    "quota": "The account has no credit left.",
    "refused_key": "Is the variable with the key set, and is it this server's key?",
    "not_found": "Is the model spelt as the server lists it, and does the URL end in /v1?",
    "refused_request": "If the server does not know tools, set tools=text; `extra` adds fields to"
    " the request or leaves them out. Redirects are not followed: give the base URL of the server"
    " that answers.",
    "content_filter": "Leave the task out, or change the provider's filter.",
}
"""Every code of a `ChatFault`, and the next step."""


class ChatFault(EnvironmentFault):
    """A request for which the server gave no reply.

    Args:
        message: What failed, naming the server.
        code: One of `CHAT_FAULTS`.
    """

    def __init__(self, message: str, code: str = "unreachable") -> None:
        super().__init__(message, CHAT_FAULTS[code])
        self.args = (message, code)  # what a pickle holds
        self.code = code


def code_of_status(status: int, error_code: str) -> str:
    """The code of an HTTP status other than 2xx.

    Args:
        error_code: The server's own code, such as `insufficient_quota`; mostly empty.

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
