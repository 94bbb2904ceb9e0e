"""How a whole list of branches comes out, from tables: the counts of its groups, and who is chosen.

The counts of `n` branches in `g` groups are numbered, those with a smaller sum first, so that one
branch more is one addition for each group: the mass at a number goes to the number of the counts
with one more. `aflowgym.expectation.lists` has the same, count by count; here it is made for lists
of up to eleven branches, thousands of times.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from aflowgym.expectation.lists import GROUPS, Counts, chosen
from aflowgym.expectation.space import Array


class Numbered(NamedTuple):
    """The counts that some branches can come to.

    Attributes:
        counts: Every one, by its sum.
        more: For each group, the number of the counts with one more, where there are such.
        within: How many have a sum of 0, of 1 at most, and so on.
    """

    counts: tuple[Counts, ...]
    more: tuple[Array, ...]
    within: tuple[int, ...]


@functools.cache
def numbered(branches: int, groups: int) -> Numbered:
    """The counts of so many branches, those that failed left out, in so many groups."""
    counts = [each for total in range(branches + 1) for each in _sums(total, groups)]
    within = tuple(sum(1 for each in counts if sum(each) <= total) for total in range(branches + 1))
    number = {each: place for place, each in enumerate(counts)}
    before = [each for each in counts if sum(each) < branches]
    more = tuple(
        np.array([number[*each[:group], each[group] + 1, *each[group + 1 :]] for each in before])
        for group in range(groups)
    )
    return Numbered(tuple(counts), more, within)


def tallies(ends: Sequence[Array], active: tuple[int, ...]) -> Array:
    """The distribution of the counts of a list, [row, number].

    Args:
        ends: For each branch, the masses of its groups and of failure, [row, 7].
        active: The groups that have any mass.
    """
    known = numbered(len(ends), len(active))
    counts = np.zeros((len(ends[0]), len(known.counts)))
    counts[:, 0] = 1.0
    for place, end in enumerate(ends):
        now = counts[:, : known.within[place]]
        counts = np.zeros_like(counts)
        counts[:, : now.shape[1]] = now * end[:, GROUPS:]
        for more, group in zip(known.more, active, strict=True):
            counts[:, more[: now.shape[1]]] += now * end[:, [group]]
    return counts


@functools.lru_cache(maxsize=1024)
def choices(
    branches: int, active: tuple[int, ...], ensemble: str, point: float, weight: float
) -> Array:
    """Which group an ensemble chooses, or failure, for each of the counts, [number, 7]."""
    points = np.array([point])
    made = []
    for counts in numbered(branches, len(active)).counts:
        whole = [0] * GROUPS
        for group, count in zip(active, counts, strict=True):
            whole[group] = count
        made.append(chosen(ensemble, tuple(whole), points, weight)[0])
    return np.array(made)


def _sums(total: int, parts: int) -> Iterator[Counts]:
    """All counts of so many groups with this sum."""
    if not parts:
        yield from [()] * (total == 0)
        return
    for first in range(total + 1):
        for rest in _sums(total - first, parts - 1):
            yield (first, *rest)
