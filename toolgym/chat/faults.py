"""`ChatFault`: a request to a chat model without a reply, and the table of its codes.

A `ChatFault` is an `EnvironmentFault`, since the agent made no mistake. The error message names the
server and tells the user what to do, and contains no request, headers or key.
"""

from __future__ import annotations

from typing import Final

from toolgym.errors import EnvironmentFault

CHAT_FAULTS: Final = {
    "unreachable": "Is the server running, and is the base URL correct (it usually ends in /v1)?",
    "timeout": "Raise timeout or deadline, or lower max_tokens or concurrency.",
    "rate_limited": "Lower concurrency, or raise retries and deadline.",
    "server_error": "Read the server's log.",
    "unreadable_reply": "Does this URL lead to a proxy or a login page?",
    "quota": "The account has no credit left.",
    "refused_key": "Is the variable with the key set, and is it this server's key?",
    "not_found": "Is the model spelled as the server lists it, and does the URL end in /v1?",
    "refused_request": "If the server does not support tools, set tools=text; `extra` adds fields"
    " to the request or removes them. Redirects are not followed: give the base URL of the server"
    " that replies.",
    "content_filter": "Leave the task out, or change the provider's filter.",
}
"""The codes of `ChatFault`, each with the next step."""


class ChatFault(EnvironmentFault):
    """Raised for a request without a reply.

    Args:
        message: The failure, with the URL of the server.
        code: One of `CHAT_FAULTS`.
    """

    def __init__(self, message: str, code: str = "unreachable") -> None:
        super().__init__(message, CHAT_FAULTS[code])
        self.args = (message, code)  # for pickle
        self.code = code


def code_of_status(status: int, error_code: str) -> str:
    """Return the code of the fault for an HTTP status other than 2xx.

    Args:
        status: The HTTP status.
        error_code: The server's own code, such as `insufficient_quota`; usually empty.

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
