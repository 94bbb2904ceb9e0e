"""Groups of rollouts: dead and live ones, their shares, and advice on the group size.

A group is all rollouts of one task in one step. The outcome of a rollout is whether it is correct,
and its progress bin. A group is dead when all its scored members have the same outcome; their
rewards may still differ by the costs of their calls. Other trainers count groups with equal rewards
instead, so both shares are here. A rollout that a fault left unscored has no outcome (None) and no
reward (nan or infinity), and a group with fewer than two scored members is dead.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Final, TypeVar

from toolgym.episode import Outcome

T = TypeVar("T")

_SAME: Final = 1e-8  # rewards that differ by less are equal
_SIZES: Final = (2, 4, 8, 16)  # group sizes to choose from
_WANTED: Final = 0.5  # share of groups with right and wrong members


def by_group(values: Iterable[T], groups: Iterable[int]) -> dict[int, list[T]]:
    """The values of each group, in order; members need not be adjacent.

    >>> by_group("abcd", [7, 5, 7, 5])
    {7: ['a', 'c'], 5: ['b', 'd']}

    Raises:
        ValueError: `values` and `groups` differ in length.
    """
    members: dict[int, list[T]] = {}
    for value, group in zip(values, groups, strict=True):
        members.setdefault(group, []).append(value)
    return members


def is_dead(outcomes: Iterable[Outcome | None]) -> bool:
    """Whether a group has fewer than two different outcomes; None is an unscored member.

    >>> is_dead([Outcome(False, 3), Outcome(False, 4), None])
    False
    """
    return len({outcome for outcome in outcomes if outcome is not None}) < 2


def has_equal_rewards(rewards: Iterable[float]) -> bool:
    """Whether the rewards of a group are equal, or fewer than two members are scored."""
    finite = list(filter(math.isfinite, rewards))
    return len(finite) < 2 or max(finite) - min(finite) < _SAME


def dead_share(outcomes: Iterable[Outcome | None], groups: Iterable[int]) -> float:
    """The share of groups that are dead (metric `dead_groups`).

    Groups of one member do not count; nan if there are no others.
    """
    return mean([is_dead(each) for each in by_group(outcomes, groups).values() if len(each) > 1])


def equal_rewards_share(rewards: Iterable[float], groups: Iterable[int]) -> float:
    """The share of groups with equal rewards (metric `zero_variance_groups`); see `dead_share`."""
    members = by_group(rewards, groups).values()
    return mean([has_equal_rewards(each) for each in members if len(each) > 1])


def mixed_share(tries: Iterable[Sequence[Hashable | None]], size: int) -> float:
    """Estimate the share of groups of a size whose members would not all be the same.

    The estimate is the mean over tasks of the share of subsets of `size` scored tries that differ,
    which is unbiased. For a task with fewer tries all of them are taken, which gives a lower bound.

    Args:
        tries: The results of the tries at each task; None for a try that is not scored.
        size: Members of a group.

    Returns:
        The share; nan if no try is scored.

    >>> mixed_share([[True, False, False, False], [False] * 4], 2)
    0.25
    """
    shares = []
    for results in tries:
        counts = Counter(result for result in results if result is not None)
        if taken := min(size, counts.total()):
            same = sum(math.comb(count, taken) for count in counts.values())
            shares.append(1 - same / math.comb(counts.total(), taken))
    return mean(shares)


def group_size_advice(tries: Sequence[Sequence[bool | None]]) -> str:
    """A sentence with the smallest group size of which half have right and wrong members.

    Args:
        tries: Whether each try at each task was right; None for a try that is not scored. Sizes up
            to the number of tries are compared.

    >>> group_size_advice([[True, False, False, False]] * 3 + [[False] * 4])
    'Groups of 4 would do: 75% have right and wrong members.'
    """
    right = [each for results in tries for each in results if each is not None]
    if not right:
        return "No rollout was scored, so no group size can be advised."
    most = max(map(len, tries))
    shares = {size: mixed_share(tries, size) for size in _SIZES if size <= max(2, most)}
    for size, share in shares.items():
        if share >= _WANTED:
            return f"Groups of {size} would do: {share:.0%} have right and wrong members."
    return (
        f"Groups of {size} would not do: {share:.0%} have right and wrong members. Take larger"
        " groups, or tasks of another hardness."
    )


def mean(values: Sequence[float]) -> float:
    """The mean of some values; nan without any."""
    return math.fsum(values) / len(values) if values else math.nan
