"""Tries: the name of an episode is its task and a number, on whichever machine it is played.

The draws of a try follow from the seed, the id of its task and its number, and from nothing else:
not from the order of the tasks, from the batch that it shared, or from what was played before. So a
measurement may be divided by tasks: each part plays the same episodes as one run would have.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

__all__ = ["Try", "seed_of_try", "slots", "tries_of"]

_BLOCK: Final = 10**12
"""More slots than one run has episodes."""
_blocks = itertools.count()


class Try(NamedTuple):
    """One try at a task; the first of them is number 0."""

    task_id: str
    number: int


def seed_of_try(seed: int, task_id: str, number: int) -> int:
    """The number that everything of one try is drawn from; below 2**48, so that JSON keeps it.

    >>> seed_of_try(0, "singers-001", 1) == seed_of_try(0, "singers-001", 1)
    True
    >>> len({seed_of_try(s, t, n) for s in (0, 1) for t in ("a", "b") for n in (0, 1)})
    8
    """
    text = f"toolgym-try-{seed}-{number}-{task_id}"
    return int.from_bytes(
        hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=6).digest(), "big"
    )


def tries_of(task_ids: Iterable[str]) -> list[Try]:
    """Number the tries of each task from 0, in the order in which its id occurs.

    >>> [number for _, number in tries_of(["a", "b", "a"])]
    [0, 0, 1]
    """
    seen: Counter[str] = Counter()
    tries = []
    for task_id in task_ids:
        tries.append(Try(task_id, seen[task_id]))
        seen[task_id] += 1
    return tries


def slots() -> range:
    """Slots for the episodes of one run that no other run of this process gets.

    A policy remembers its episodes by their slots, so if two runs gave out the same ones, the
    second would go on where the first ended.
    """
    first = next(_blocks) * _BLOCK
    return range(first, first + _BLOCK)
