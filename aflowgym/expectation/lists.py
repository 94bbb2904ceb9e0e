"""Lists and ensembles: how many branches give which answer, and which of them is chosen.

The branches of a list are independent, given the latent class and the state they start from. Their
answers are counted in six groups (`R`, `W`, `M`, inherited, and the two sorts of odd ones); each
odd one is an answer by itself. A branch that failed is in no group. An ensemble is then a table
from counts to answers. `add_branch` and `list_matrix` go count by count; `tallies` and `choices`
give the same from tables, for lists of up to eleven branches, thousands of times.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from aflowgym.expectation.model import (
    FAILED,
    INHERITED,
    LOOSE,
    NONE,
    ODD,
    RIGHT,
    SAYS,
    SIZE,
    TYPICAL,
    Array,
    answers_of,
    at,
)

Counts = tuple[int, ...]
GROUPS: Final = 6
_INHERITED_GROUP: Final = 3
_ODD_GROUPS: Final = 4
#: Which answers make up each group.
MEMBERS: Final = ((RIGHT,), (LOOSE,), (TYPICAL,), INHERITED, (ODD[0],), (ODD[1],))
#: The answer that a group gives; None for that of the state which the list started from.
ANSWER_OF: Final = (RIGHT, LOOSE, TYPICAL, None, *ODD)
VOTES: Final = 5
NO_BRANCH: Final[Counts] = (0,) * GROUPS


def _entering() -> Array:
    """The matrix by which a branch starts: a mistake of its own is one that it inherits."""
    matrix = np.eye(SIZE)
    for odd, inherited in zip(ODD, INHERITED, strict=True):
        for says in range(len(SAYS)):
            matrix[at(odd, says), at(odd, says)] = 0.0
            matrix[at(odd, says), at(inherited, says)] = 1.0
    return matrix


ENTERING: Final = _entering()


def group_masses(ends: Array) -> Array:
    """The masses of the groups, and of failure, in what a branch ends in, [..., 7]."""
    answers = answers_of(ends)
    groups = [answers[..., list(each)].sum(axis=-1) for each in MEMBERS]
    return np.stack([*groups, answers[..., -1]], axis=-1)


def add_branch(before: dict[Counts, Array], ends: Array) -> dict[Counts, Array]:
    """The distribution of the counts with one branch more."""
    after: dict[Counts, Array] = {}
    for group, mass in enumerate(np.moveaxis(group_masses(ends), -1, 0)):
        if not np.any(mass):
            continue
        for counts, weight in before.items():
            key = counts
            if group < GROUPS:
                key = (*counts[:group], counts[group] + 1, *counts[group + 1 :])
            term = weight * mass
            after[key] = after[key] + term if key in after else term
    return after


def list_matrix(
    counts: dict[Counts, Array], ensemble: str, points: Array, weight: float, held: Array
) -> Array:
    """The matrix of a list and its ensemble, [class, point, held, state].

    `counts` are those of the list for each of the states that it starts from, which are `held`.
    """
    first = next(iter(counts.values()))
    groups = np.zeros((*first.shape, GROUPS + 1), first.dtype)
    for key, mass in counts.items():
        groups += mass[..., None] * choice_of(ensemble, key, points, weight)[:, None, :]
    matrix = np.zeros((*first.shape, SIZE), first.dtype)
    for group, answer in enumerate(ANSWER_OF):
        if answer is not None:
            matrix[..., at(answer)] = groups[..., group]
    for row, state in enumerate(held):
        if state < NONE:
            matrix[..., row, at(int(state) // len(SAYS))] += groups[..., row, _INHERITED_GROUP]
    matrix[..., FAILED] = groups[..., GROUPS]
    return matrix


def choice_of(ensemble: str, counts: Counts, points: Array, weight: float) -> Array:
    """The group that an ensemble chooses, or failure, [point, 7]."""
    if sum(counts) <= 1:
        # One candidate is taken without a call; with none there is nothing to choose.
        return np.outer(np.ones_like(points), [*counts, 1 - sum(counts)])
    if ensemble == "MdEnsemble":
        return np.outer(points**VOTES, _voted(counts, weight))
    return _counted_out(counts, points)


def _counted_out(counts: Counts, points: Array) -> Array:
    """`ScEnsemble`: the answer given most often, by one call in a tie."""
    most = max(1, *counts[:_ODD_GROUPS])
    tied = np.zeros(GROUPS + 1)
    tied[:_ODD_GROUPS] = [count == most for count in counts[:_ODD_GROUPS]]
    if most == 1:
        tied[_ODD_GROUPS:GROUPS] = counts[_ODD_GROUPS:]
    share = tied / tied.sum()
    return np.outer(points if tied.sum() > 1 else np.ones_like(points), share)


@functools.lru_cache(maxsize=65536)
def _voted(counts: Counts, weight: float) -> Array:
    """`MdEnsemble`: the probability that each group wins most of the votes, ties shared alike.

    Odd answers differ in name only, so of their votes the sizes count, and not whose they are.
    """
    odd = sum(counts[_ODD_GROUPS:])
    named = (*counts[:_ODD_GROUPS], odd)
    weights = np.array([weight, weight, 1.0, 1.0, 1.0]) * named
    share = weights / weights.sum()
    share[-1] /= max(odd, 1)
    wins = np.zeros(_ODD_GROUPS + 1)
    for votes in _splits(VOTES, len(named)):
        if any(vote and not count for vote, count in zip(votes, named, strict=True)):
            continue
        chance = float(np.prod(share ** np.array(votes)))
        for sizes in _sizes(votes[-1], odd):
            top = max(*votes[:-1], *sizes)
            leading = np.array([*(vote == top for vote in votes[:-1]), sizes.count(top)])
            wins += chance * _ways(votes, sizes, odd) / leading.sum() * leading
    split = np.array(counts[_ODD_GROUPS:]) / max(odd, 1)
    return np.array([*wins[:-1], *(wins[-1] * split), 0.0])


def _ways(votes: Counts, sizes: Counts, odd: int) -> float:
    """In how many ways the votes can be cast so that odd answers have these sizes."""
    casts = math.prod(map(math.factorial, (*votes[:-1], *sizes)))
    alike = math.prod(map(math.factorial, Counter(sizes).values()))
    return math.factorial(VOTES) / casts * math.perm(odd, len(sizes)) / alike


def _sizes(total: int, parts: int, most: int = VOTES) -> Iterator[Counts]:
    """All ways to write a number as a sum of so many parts at most, the largest first."""
    if not total:
        yield ()
    for first in range(min(total, most), 0, -1) if parts else ():
        for rest in _sizes(total - first, parts - 1, first):
            yield (first, *rest)


def _splits(total: int, parts: int) -> Iterator[Counts]:
    """All ways to give a number of votes to so many answers."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _splits(total - first, parts - 1):
            yield (first, *rest)


# --- whole lists, from tables ---------------------------------------------------------------------
#
# The counts of `n` branches in `g` groups are numbered, those with a smaller sum first, so that one
# branch more is one addition for each group: the mass at a number goes to the number of the counts
# with one more.


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
def numbered_counts(branches: int, groups: int) -> Numbered:
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
    table = numbered_counts(len(ends), len(active))
    counts = np.zeros((len(ends[0]), len(table.counts)))
    counts[:, 0] = 1.0
    for place, end in enumerate(ends):
        now = counts[:, : table.within[place]]
        counts = np.zeros_like(counts)
        counts[:, : now.shape[1]] = now * end[:, GROUPS:]
        for more, group in zip(table.more, active, strict=True):
            counts[:, more[: now.shape[1]]] += now * end[:, [group]]
    return counts


@functools.lru_cache(maxsize=1024)
def choices(
    branches: int, active: tuple[int, ...], ensemble: str, point: float, weight: float
) -> Array:
    """The group that an ensemble chooses, or failure, for each of the counts, [number, 7]."""
    points = np.array([point])
    made = []
    for counts in numbered_counts(branches, len(active)).counts:
        whole = [0] * GROUPS
        for group, count in zip(active, counts, strict=True):
            whole[group] = count
        made.append(choice_of(ensemble, tuple(whole), points, weight)[0])
    return np.array(made)


def _sums(total: int, parts: int) -> Iterator[Counts]:
    """All counts of so many groups with this sum."""
    if not parts:
        yield from [()] * (total == 0)
        return
    for first in range(total + 1):
        for rest in _sums(total - first, parts - 1):
            yield (first, *rest)
