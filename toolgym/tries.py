"""Numbered tries at tasks, whose seeds do not depend on the machine or on the order of play.

The draws of a try depend on the seed of the evaluation, the id of the task and the number of the
try only: not on the order of the tasks, the batch, or earlier episodes. So the tasks of an
evaluation can be divided among machines, and each part plays the same episodes as a single run.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Try", "seed_of_try", "tries_of"]


class Try(NamedTuple):
    """One try at a task; tries are numbered from 0."""

    task_id: str
    number: int


def seed_of_try(seed: int, task_id: str, number: int) -> int:
    """Return the seed of all draws in one try, below 2**48, so that JSON holds it exactly.

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
    """Number the tries of each task from 0, in the order of the ids.

    >>> [number for _, number in tries_of(["a", "b", "a"])]
    [0, 0, 1]
    """
    seen: Counter[str] = Counter()
    tries = []
    for task_id in task_ids:
        tries.append(Try(task_id, seen[task_id]))
        seen[task_id] += 1
    return tries
