"""How long to wait before a request is tried again.

The wait doubles from try to try and is scattered between half and all of it, so that requests which
failed together do not come back together. The scatter is a hash of the request and the number of
the try: no random state, and the same run waits the same. A server that says how long to wait
(`Retry-After`, in seconds or as a date) is obeyed, for an hour at most: one wrong header must not
silence a client for good.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST: Final = 20.0
"""Seconds; the doubling stops there."""
LONGEST_REST: Final = 3600.0
"""Seconds; a server that asks for more is asked again after these."""


def wait_before(attempt: int, key: str, first: float) -> float:
    """Seconds before a try.

    Args:
        attempt: 1 for the first try after a failure.
        key: Of the request.
        first: What the wait before that one may be at most.

    >>> 0.25 <= wait_before(1, "some request", 0.5) <= 0.5
    True
    """
    digest = hashlib.blake2b(f"{key}-{attempt}".encode(), digest_size=4).digest()
    share = 0.5 + 0.5 * int.from_bytes(digest, "big") / 0xFFFFFFFF
    return float(min(first * 2.0 ** min(attempt - 1, 30), LONGEST) * share)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait; None if it says nothing that can be read.

    >>> retry_after({"retry-after": "1.5"}), retry_after({"retry-after": "soon"})
    (1.5, None)
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        said = headers.get(name)
        if said is None:
            continue
        try:
            seconds = float(said) * unit
        except ValueError:
            seconds = _until(said)
        if 0 <= seconds < float("inf"):
            return min(seconds, LONGEST_REST)
    return None


def _until(date: str) -> float:
    """Seconds until a date of HTTP; negative if it is none. One that has passed is now."""
    try:
        when = parsedate_to_datetime(date)
        aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        return max(0.0, aware.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return -1.0
