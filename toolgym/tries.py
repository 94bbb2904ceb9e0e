"""Tries: an episode is identified by its task and a number, on whichever machine it is played.

The draws of a try follow from the seed, the id of its task and its number, and from nothing else:
not from the order of the tasks, from the batch that it shared, or from what was played before. So
an evaluation can be divided by tasks: each part plays the same episodes as one run would.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Try", "seed_of_try", "tries_of"]


class Try(NamedTuple):
    """One try at a task; the first of them is number 0."""

    task_id: str
    number: int


def seed_of_try(seed: int, task_id: str, number: int) -> int:
    """The seed of everything that is drawn in one try; below 2**48, so that JSON keeps it.

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
