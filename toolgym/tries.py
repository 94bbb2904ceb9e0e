"""Numbered attempts at tasks, with seeds that do not depend on the machine or the order of the
attempts.

The random numbers of an attempt depend only on the seed of the evaluation, the id of the task and
the number of the attempt. They do not depend on the order of the tasks, the batch, or earlier
episodes. The tasks of an evaluation can therefore be divided among machines, and the episodes are
the same as in a single evaluation.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Try", "seed_of_try", "tries_of"]


class Try(NamedTuple):
    """One attempt at a task. The attempts at a task are numbered from 0."""

    task_id: str
    number: int


def seed_of_try(seed: int, task_id: str, number: int) -> int:
    """Return the seed of all random numbers of an attempt.

    It is below 2**48, so JSON can represent it exactly.

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
    """Number the attempts at each task from 0, in the order of the ids.

    >>> [number for _, number in tries_of(["a", "b", "a"])]
    [0, 0, 1]
    """
    seen: Counter[str] = Counter()
    tries = []
    for task_id in task_ids:
        tries.append(Try(task_id, seen[task_id]))
        seen[task_id] += 1
    return tries
