"""Groups of rollouts: dead and live ones, their shares, and advice on the group size.

A group is all rollouts of one task in one step. The outcome of a rollout is whether it is correct,
and its progress bin. A group is dead when all its scored members have the same outcome; their
rewards may still differ by the costs of their calls. Other trainers count groups with equal rewards
instead, so both shares are here. A rollout that a fault left unscored has no outcome (None) and no
reward (None, nan or infinity), and a group with fewer than two scored members is dead.

With success rate p, a group of K rollouts has both outcomes with probability 1 - p^K - (1-p)^K.
`group_size` chooses K by it from measured success rates.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from toolgym.episode import Outcome
from toolgym.errors import ConfigurationError

T = TypeVar("T")
Counts = tuple[int, int]
"""The numbers of correct rollouts and of scored rollouts of one task or group."""

SAME: Final = 1e-8  # rewards that differ by less are equal
SIZES: Final = (2, 4, 8, 16)  # group sizes to choose from
WANTED: Final = 0.5  # share of live groups to reach


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


def has_equal_rewards(rewards: Iterable[float | None]) -> bool:
    """Whether the rewards of a group are equal, or fewer than two members are scored."""
    finite = [reward for reward in rewards if reward is not None and math.isfinite(reward)]
    return len(finite) < 2 or max(finite) - min(finite) < SAME


def dead_share(outcomes: Iterable[Outcome | None], groups: Iterable[int]) -> float:
    """The share of groups that are dead (metric `dead_groups`).

    Groups of one member do not count; nan if there are no others.
    """
    return _share([is_dead(members) for members in _several(by_group(outcomes, groups))])


def equal_rewards_share(rewards: Iterable[float | None], groups: Iterable[int]) -> float:
    """The share of groups with equal rewards (metric `zero_variance_groups`); see `dead_share`."""
    return _share([has_equal_rewards(members) for members in _several(by_group(rewards, groups))])


def _several(members: Mapping[int, list[T]]) -> list[list[T]]:
    """The groups with more than one member."""
    return [group for group in members.values() if len(group) > 1]


def counts_of(outcomes: Iterable[Outcome | None]) -> Counts:
    """The numbers of correct and of scored members of one group."""
    scored = [outcome for outcome in outcomes if outcome is not None]
    return sum(outcome.correct for outcome in scored), len(scored)


def live_chance(rate: float, group_size: int) -> float:
    """The probability 1 - p^K - (1-p)^K that K rollouts with success rate p differ in outcome.

    >>> [round(live_chance(0.2, size), 2) for size in (2, 4, 8, 16)]
    [0.32, 0.59, 0.83, 0.97]
    """
    return 1.0 - rate**group_size - (1.0 - rate) ** group_size


def live_share(counts: Sequence[Counts], group_size: int) -> float:
    """Estimate the share of groups of a size that would have right and wrong members.

    The measured rate of a task cannot be used in the formula: a task that was right in 0 of 4
    rollouts would never have a live group. If every task has at least K scored rollouts, the
    estimate is the share of subsets of K with both outcomes, which is unbiased. For larger groups
    it assumes that success rates have a Beta distribution with the measured mean and spread.

    Args:
        counts: One for each task or group; those without a scored rollout are skipped.
        group_size: K.

    Returns:
        The share, nan if nothing was scored. Groups that differ in progress only are not counted,
        so where progress is rewarded this is a lower bound.
    """
    played = [(right, scored) for right, scored in counts if scored > 0]
    if not played:
        return math.nan
    if all(scored >= group_size for _, scored in played):
        return _share([_mixed_subsets(right, scored, group_size) for right, scored in played])
    return _fitted(played, group_size)


def _mixed_subsets(right: int, scored: int, size: int) -> float:
    """The share of subsets of `size` rollouts with both outcomes."""
    equal = math.comb(right, size) + math.comb(scored - right, size)
    return 1.0 - equal / math.comb(scored, size)


def _fitted(counts: Sequence[Counts], size: int) -> float:
    """The share under a Beta distribution of rates with the measured mean and correlation."""
    mean = _share([right / scored for right, scored in counts])
    pairs = [r * (r - 1) / (n * (n - 1)) for r, n in counts if n > 1]  # each unbiased for p^2
    if mean in (0.0, 1.0):
        return 0.0
    correlation = (_share(pairs) - mean**2) / (mean - mean**2) if pairs else 0.0
    if correlation >= 1.0:
        return 0.0  # every task is always right or always wrong
    if correlation <= 0.0:
        return live_chance(mean, size)
    weight = 1.0 / correlation - 1.0
    return _mixed_chance(mean * weight, (1.0 - mean) * weight, size)


def _mixed_chance(right: float, wrong: float, size: int) -> float:
    """The probability that a group has both outcomes, for a rate that is Beta(right, wrong).

    It is the mean of 1 - p^K - (1-p)^K over that distribution.

    >>> round(_mixed_chance(1, 1, 8), 3), round(_mixed_chance(50, 1, 8), 3)
    (0.778, 0.138)
    """
    total = right + wrong
    all_right = math.prod((right + i) / (total + i) for i in range(size))
    all_wrong = math.prod((wrong + i) / (total + i) for i in range(size))
    return max(0.0, 1.0 - all_right - all_wrong)


@dataclass(frozen=True)
class GroupSizeAdvice:
    """Advice on the group size.

    Attributes:
        shares: The share of groups with right and wrong members, by group size.
        size: The smallest size with enough live groups; None if there is none.
        sentence: The advice in words, with what to change if no size is enough.
    """

    shares: Mapping[int, float]
    size: int | None
    sentence: str


def group_size(
    counts: Sequence[Counts], sizes: Collection[int] = SIZES, wanted: float = WANTED
) -> GroupSizeAdvice:
    """Advise a group size from measured successes.

    Args:
        counts: The numbers of correct and of scored rollouts of each task.
        sizes: The sizes to choose from, each at least 2.
        wanted: The share of groups that should be live.

    Raises:
        ConfigurationError: `sizes` is empty, or a size is below 2.
    """
    if not sizes or min(sizes) < 2:
        raise ConfigurationError(f"a group has at least 2 members, got the sizes {list(sizes)}.")
    shares = {size: live_share(counts, size) for size in sorted(sizes)}
    enough = [size for size, share in shares.items() if share >= wanted]
    size = enough[0] if enough else None
    return GroupSizeAdvice(shares, size, _sentence(counts, shares, size, wanted))


def _sentence(
    counts: Sequence[Counts], shares: Mapping[int, float], size: int | None, wanted: float
) -> str:
    right, scored = (sum(numbers) for numbers in zip(*counts, strict=True)) if counts else (0, 0)
    if not scored:
        return "No rollout was scored, so no group size can be advised."
    if size is not None:
        return (
            f"Groups of {size}: {shares[size]:.0%} of them would have right and wrong members,"
            f" at {size / shares[size]:.0f} rollouts for each that has."
        )
    largest = max(shares)
    sentence = f"Even of groups of {largest} only {shares[largest]:.0%} would have right and wrong"
    sentence += (
        f" members ({right / scored:.0%} of the rollouts were right, {wanted:.0%} is wanted)."
    )
    if right * 2 > scored:
        return f"{sentence} Most were right: harder tasks would divide more groups."
    return f"{sentence} Most were not: a longer warm-up or easier tasks would divide more groups."


def _share(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
