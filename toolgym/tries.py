"""Tries: the name of an episode is its task and a number, on whichever machine it is played.

The draws of a try follow from the seed, the id of its task and its number, and from nothing else:
not from the order of the tasks, from the batch that it shared, or from what was played before. So a
measurement may be cut into shards, by tasks or by tries, and each shard plays exactly the episodes
that one run would have played. Two shards that play the same try play the same episode twice; put
together they would count it twice, which is why that is refused.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from toolgym.errors import ConfigurationError

__all__ = ["Shard", "Try", "check_distinct", "seed_of_try", "slots", "tries_of"]

_BLOCK: Final = 10**12
"""More slots than one run has episodes."""
_blocks = itertools.count()


class Try(NamedTuple):
    """One try at a task; the first of them is number 0."""

    task_id: str
    number: int


class Shard(NamedTuple):
    """One of several parts of a list, which together are the list.

    Attributes:
        number: Which part, from 1.
        of: How many parts there are.

    >>> ["abcdefg"[Shard(number, 3).bounds(7)] for number in (1, 2, 3)]
    ['ab', 'cd', 'efg']
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """The shard that `I/N` names.

        Raises:
            ConfigurationError: It is not of this form, or there is no such part.
        """
        number, slash, of = text.partition("/")
        if not slash or not (_is_number(number) and _is_number(of)):
            raise ConfigurationError(f"a shard is I/N, such as 1/2 for the first half, not {text}.")
        return cls(int(number), int(of)).checked()

    def checked(self) -> Shard:
        """The shard itself.

        Raises:
            ConfigurationError: There is no such part.
        """
        if not 1 <= self.number <= self.of:
            raise ConfigurationError(
                f"there is no shard {self.number}/{self.of}: they go from 1/{self.of} to"
                f" {self.of}/{self.of}."
            )
        return self

    def bounds(self, length: int) -> slice:
        """Where this part of a list of some length begins and ends."""
        return slice(length * (self.number - 1) // self.of, length * self.number // self.of)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


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


def tries_of(task_ids: Iterable[str], start: int = 0) -> list[Try]:
    """Number the tries of each task, from `start` on, in the order in which its id occurs.

    >>> [number for _, number in tries_of(["a", "b", "a"], start=2)]
    [2, 2, 3]
    """
    seen: Counter[str] = Counter()
    tries = []
    for task_id in task_ids:
        tries.append(Try(task_id, start + seen[task_id]))
        seen[task_id] += 1
    return tries


def slots() -> range:
    """Slots for the episodes of one run that no other run of this process gets.

    A policy remembers its episodes by their slots, so if two runs gave out the same ones, the
    second would go on where the first ended.
    """
    first = next(_blocks) * _BLOCK
    return range(first, first + _BLOCK)


def check_distinct(tries: Sequence[Try]) -> None:
    """Complain of a try that is there twice.

    Raises:
        ConfigurationError: One is.
    """
    twice = [each for each, count in Counter(tries).items() if count > 1]
    if twice:
        named = ", ".join(f"try {each.number} of {each.task_id}" for each in twice[:3])
        raise ConfigurationError(
            f"{len(twice)} tries are there more than once ({named}): shards have to play other"
            " tries (start=, --start) or other tasks (shard=, --shard)."
        )
