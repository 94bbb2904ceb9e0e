"""Random numbers without a generator: each is a hash of what it is for.

A draw depends on the seed of the run, the task, the place in the workflow, the number of the call
there, and a label; on nothing that happened before, in whatever order. Two workflows that share a
beginning share its draws (common random numbers), so a difference between their results comes from
where they differ. No global state, no order of dictionaries, the same on every machine.
"""

from __future__ import annotations

import hashlib
from typing import Final

_SCALE: Final = 2.0**-53
SEPARATOR: Final = "\x1f"


def number(*key: object) -> int:
    """A number from 0 to 2**64 - 1, fixed by the key."""
    return hashed(SEPARATOR.join(map(str, key)))


def hashed(text: str) -> int:
    """The number of a key whose parts are joined already, by `SEPARATOR`."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def unit(number_: int) -> float:
    """A number of 64 bits as one from 0 up to, and without, 1."""
    return (number_ >> 11) * _SCALE


def shuffled(count: int, *key: object) -> list[int]:
    """The numbers from 0 to count - 1 in an order fixed by the key."""
    start = SEPARATOR.join(map(str, (*key, "")))
    return sorted(range(count), key=lambda place: hashed(f"{start}{place}"))
