"""Groups of rollouts: dead and live groups, their shares, and advice on the group size.

A group consists of all rollouts of one task in one step. The outcome of a rollout combines its
correctness with its progress, which is divided into bins. A group is dead if all its scored members
have the same outcome, even if their rewards differ by the costs of their calls. Other trainers
count groups with equal rewards instead, so this module computes the shares of both kinds of groups.

A rollout that is unscored because of a fault has no outcome (None) and no reward (nan or infinity).
A group with fewer than two scored members is dead.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Final, TypeVar

from toolgym.episode import Outcome

T = TypeVar("T")

_SAME: Final = 1e-8  # rewards that differ by less count as equal
_SIZES: Final = (2, 4, 8, 16)  # group sizes to choose from
_WANTED: Final = 0.5  # share of groups with correct and incorrect members


def by_group(values: Iterable[T], groups: Iterable[int]) -> dict[int, list[T]]:
    """Return the values of each group, in order. Members need not be adjacent.

    >>> by_group("abcd", [7, 5, 7, 5])
    {7: ['a', 'c'], 5: ['b', 'd']}

    Raises:
        ValueError: If `values` and `groups` differ in length.
    """
    members: dict[int, list[T]] = {}
    for value, group in zip(values, groups, strict=True):
        members.setdefault(group, []).append(value)
    return members


def is_dead(outcomes: Iterable[Outcome | None]) -> bool:
    """Return whether a group has fewer than two different outcomes. None marks an unscored member.

    >>> is_dead([Outcome(False, 3), Outcome(False, 4), None])
    False
    """
    return len({outcome for outcome in outcomes if outcome is not None}) < 2


def has_equal_rewards(rewards: Iterable[float]) -> bool:
    """Return whether a group has equal rewards or fewer than two scored members."""
    finite = list(filter(math.isfinite, rewards))
    return len(finite) < 2 or max(finite) - min(finite) < _SAME


def dead_share(outcomes: Iterable[Outcome | None], groups: Iterable[int]) -> float:
    """Return the share of groups that are dead (metric `dead_groups`).

    Groups with only one member are excluded. The share is nan if every group has only one member.
    """
    return mean([is_dead(each) for each in by_group(outcomes, groups).values() if len(each) > 1])


def equal_rewards_share(rewards: Iterable[float], groups: Iterable[int]) -> float:
    """Return the share of groups with equal rewards (metric `zero_variance_groups`).

    Groups with only one member are excluded. The share is nan if every group has only one member.
    """
    members = by_group(rewards, groups).values()
    return mean([has_equal_rewards(each) for each in members if len(each) > 1])


def mixed_share(tries: Iterable[Sequence[Hashable | None]], size: int) -> float:
    """Estimate the share of groups of a given size whose members do not all have the same result.

    For each task, the estimate is the share of all subsets of `size` scored attempts that contain
    different results. The mean over tasks is an unbiased estimate. If a task has fewer than `size`
    scored attempts, all of them are used, and the estimate is a lower bound.

    Args:
        tries: Results of the attempts at each task; None for an attempt that is not scored.
        size: Number of members of a group.

    Returns:
        The share, or nan if no attempt is scored.

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
    """Return advice on the smallest group size at which half of the groups have mixed results.

    A group is mixed if it has both correct and incorrect members.

    Args:
        tries: Whether each attempt at each task was correct; None for an attempt that is not
            scored. Group sizes up to the number of attempts per task are considered.

    >>> group_size_advice([[True, False, False, False]] * 3 + [[False] * 4])
    'A group size of 4 is enough: 75% of groups have correct and incorrect members.'
    """
    right = [each for results in tries for each in results if each is not None]
    if not right:
        return "No rollout was scored, so there is no advice on the group size."
    most = max(map(len, tries))
    shares = {size: mixed_share(tries, size) for size in _SIZES if size <= max(2, most)}
    for size, share in shares.items():
        if share >= _WANTED:
            return (
                f"A group size of {size} is enough: {share:.0%} of groups have correct and"
                " incorrect members."
            )
    return (
        f"A group size of {size} is too small: {share:.0%} of groups have correct and incorrect"
        " members. Use larger groups, or tasks of another difficulty."
    )


def mean(values: Sequence[float]) -> float:
    """Return the mean of some values, or nan if there are none."""
    return math.fsum(values) / len(values) if values else math.nan
