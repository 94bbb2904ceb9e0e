"""Advantage estimators: pure functions from the rewards of a batch to advantages.

Each has its own name and gives one advantage per rollout; the turn-level ones give one per turn. In
all of them a rollout that a fault left unscored gets 0 and moves nobody's baseline. A group is
given by a number per rollout, and its members need not stand together. Statistics are over
everything that is passed: gather the batch of all processes first.

What to choose: dividing by a group's own deviation erases how large a difference was (with groups
of two the advantage is always plus or minus .707), so the default of the trainers here is
`batch_normalized_baseline`: centred by group, scaled by batch, with a floor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, Protocol

import torch
from torch import Tensor

from toolgym.errors import ConfigurationError

# Group and batch statistics: deviations from means, and standard deviations.
#
# They work on an N x N membership mask, so nothing is sorted, no order of addition depends on a
# device's scheduling, and an unscored rollout drops out of every sum. Where all rewards are equal,
# every deviation is exactly 0, not the rounding of a mean: divided by a small deviation such a rest
# would be an advantage, and an update would follow where there is nothing to learn.


STD_EPS: Final = 1e-4
"""Added to every standard deviation that divides, as TRL adds it."""
STD_FLOOR: Final = 0.1
"""The least that a whole batch is divided by. Once nearly every rollout is right, rewards differ by
the cost of a call, .01: without the floor that would become an advantage of full size."""


def scored_mask(rewards: Tensor, scored: Tensor | None) -> Tensor:
    """The mask of the scored rollouts.

    Args:
        rewards: [N] float; anything where unscored, usually nan.
        scored: [N] bool, or None: those with a finite reward.

    Returns:
        [N] bool.
    """
    return rewards.isfinite() if scored is None else scored.bool()


def zero_unless(counted: Tensor, values: Tensor) -> Tensor:
    """The values with 0 where they do not count, since nan times 0 is nan; equal shapes."""
    return torch.where(counted, values, torch.zeros_like(values))


def group_members(groups: Tensor, counted: Tensor) -> Tensor:
    """The membership mask of the groups.

    Args:
        groups: [N] int, equal for the rollouts of one task.
        counted: [N] bool.

    Returns:
        [N, N] bool: row i is True at the counted members of i's group, i among them if it counts.
    """
    return (groups[:, None] == groups[None, :]) & counted[None, :]


def group_deviations(values: Tensor, members: Tensor) -> Tensor:
    """Each value less the mean of its group, exactly 0 where all values of the group are equal.

    Args:
        values: [N] float, 0 where nothing counts.
        members: [N, N] bool, from `group_members`.

    Returns:
        [N]; 0 for what does not count.
    """
    table = values[None, :].expand(members.shape)
    mean = zero_unless(members, table).sum(dim=1) / members.sum(dim=1).clamp(min=1)
    highest = table.masked_fill(~members, -math.inf).amax(dim=1)
    lowest = table.masked_fill(~members, math.inf).amin(dim=1)
    return zero_unless(members.diagonal() & (highest > lowest), values - mean)


def group_std(values: Tensor, members: Tensor) -> Tensor:
    """The sample standard deviation (n - 1) of each rollout's group, 0 where n < 2.

    Shapes as for `group_deviations`.
    """
    squares = (group_deviations(values, members) ** 2)[None, :].expand(members.shape)
    spread = zero_unless(members, squares).sum(dim=1)
    return (spread / (members.sum(dim=1) - 1).clamp(min=1)).sqrt()


def batch_deviations(values: Tensor, counted: Tensor, weights: Tensor | None = None) -> Tensor:
    """Each value less the mean of all that count, exactly 0 where all are equal.

    Args:
        values: Any shape, 0 where nothing counts.
        counted: Bool of the same shape.
        weights: How often each value counts, of the same shape; None: once.

    Returns:
        The same shape; 0 for what does not count.
    """
    times = _times(values, counted, weights)
    mean = (values * times).sum() / times.sum().clamp(min=1)
    highest = values.masked_fill(~counted, -math.inf).max()
    lowest = values.masked_fill(~counted, math.inf).min()
    return zero_unless(counted & (highest > lowest), values - mean)


def batch_std(values: Tensor, counted: Tensor, weights: Tensor | None = None) -> Tensor:
    """The sample standard deviation of all that count: a scalar, 0 where fewer than two do.

    Arguments as for `batch_deviations`.
    """
    times = _times(values, counted, weights)
    squares = batch_deviations(values, counted, weights) ** 2 * times
    return (squares.sum() / (times.sum() - 1).clamp(min=1)).sqrt()


def floored(std: Tensor, floor: float) -> Tensor:
    """The divisor max(std + 1e-4, floor)."""
    return (std + STD_EPS).clamp(min=floor)


def _times(values: Tensor, counted: Tensor, weights: Tensor | None) -> Tensor:
    return (counted if weights is None else zero_unless(counted, weights)).to(values.dtype)


# Turn-level advantages: the return from each turn on, less a leave-one-out baseline.
#
# The estimators of a whole rollout give its every token one number, so a good third turn pays for a
# bad first one. Environments here tell the reward of every step (the differences of the running
# score), so a turn can answer for what came after it and for nothing that came before.
#
# The published form (Group Turn Policy Optimization, Ding et al. 2025, arXiv:2511.14846) normalises
# over the members of a group that reached the same turn index. Where the policy decides when to
# stop, as it does with every tool, that leans. If rewards are normalised one by one, a rollout is
# charged a baseline for every turn it takes, a hidden price on going on (verl-project/verl#7244);
# if returns are, a turn that few reached is compared mostly with itself. Here a baseline is made of
# the others' rollouts only, and a rollout that has ended goes on earning 0, so every turn is
# compared with the same number of others. The expected gradient is then exact, which a test holds
# by enumeration.


def turn_returns(step_rewards: Tensor, taken: Tensor, discount: float = 1.0) -> Tensor:
    """The discounted return of each turn.

        G_{i,s} = sum_{u >= s} discount^(u - s) r_{i,u}

    Args:
        step_rewards: [N, S] float, the reward of each turn; what the end of the episode charged or
            paid belongs to the last turn taken. Anything where no turn was taken.
        taken: [N, S] bool, True for the turns of each rollout.
        discount: 1 makes the first turn's return the whole reward.

    Returns:
        [N, S], 0 where no turn was taken.
    """
    rewards = zero_unless(taken, step_rewards)
    returns = torch.zeros_like(rewards)
    later = torch.zeros_like(rewards[:, 0])
    for turn in reversed(range(rewards.shape[1])):
        later = rewards[:, turn] + discount * later
        returns[:, turn] = later
    return zero_unless(taken, returns)


def turn_centered(
    step_rewards: Tensor,
    groups: Tensor,
    *,
    taken: Tensor,
    scored: Tensor | None = None,
    discount: float = 1.0,
) -> Tensor:
    """Turn-level advantages: the return from a turn on, less the mean of the others' at that turn.

        A_{i,s} = G_{i,s} - (sum_{j != i} G_{j,s}) / (n - 1)          n = scored ones of the group

    Paper: arXiv:2511.14846 for returns of turns as advantages; the leave-one-out baseline in the
    place of its statistics by turn index is ours (see the module).

    Args:
        step_rewards: [N, S] float, as for `turn_returns`.
        groups: [N] int, equal for the rollouts of one task.
        taken: [N, S] bool.
        scored: [N] bool; None: those whose every step reward is finite.
        discount: As for `turn_returns`.

    Returns:
        [N, S]; 0 for turns not taken, for unscored rollouts and for one that is alone in its group.
    """
    counted = scored_mask(zero_unless(taken, step_rewards).sum(dim=1), scored)
    returns = turn_returns(step_rewards, taken & counted[:, None], discount)
    members = group_members(groups, counted)
    size = members.sum(dim=1)
    deviations = torch.stack(
        [group_deviations(column, members) for column in returns.unbind(dim=1)], dim=1
    )
    return zero_unless(taken, deviations * (size / (size - 1).clamp(min=1))[:, None])


def turn_normalized(
    step_rewards: Tensor,
    groups: Tensor,
    *,
    taken: Tensor,
    scored: Tensor | None = None,
    discount: float = 1.0,
    floor: float = STD_FLOOR,
) -> Tensor:
    """`turn_centered` divided by the standard deviation of all turns of the batch.

        A'_{i,s} = A_{i,s} / max(std_batch A + 1e-4, floor)

    It is not centred once more: that would give something to learn to groups that have nothing.

    Args:
        step_rewards: [N, S] float, as for `turn_centered`; so are `groups`, `taken`, `scored` and
            `discount`.
        groups: [N] int.
        taken: [N, S] bool.
        scored: [N] bool or None.
        discount: Of later turns.
        floor: Least divisor.

    Returns:
        [N, S]; 0 where `turn_centered` has nothing to say.
    """
    counted = scored_mask(zero_unless(taken, step_rewards).sum(dim=1), scored)
    centered = turn_centered(step_rewards, groups, taken=taken, scored=counted, discount=discount)
    return centered / floored(batch_std(centered, taken & counted[:, None]), floor)


def token_advantages(per_turn: Tensor, turn_of_token: Tensor) -> Tensor:
    """The advantage of each token: that of its turn.

    Args:
        per_turn: [N, S] float.
        turn_of_token: [N, T] int, the turn that sampled each token, counted from 0; -1 for tokens
            that no turn sampled (results of tools, padding).

    Returns:
        [N, T], 0 at the tokens that no turn sampled.
    """
    spread = per_turn.gather(1, turn_of_token.clamp(min=0))
    return zero_unless(turn_of_token >= 0, spread)


class Estimator(Protocol):
    """An estimator: rewards [N] and group numbers [N] to advantages [N]."""

    def __call__(self, rewards: Tensor, groups: Tensor, *, scored: Tensor | None = None) -> Tensor:
        """Estimate; `scored` [N] bool masks the rollouts, None: those with a finite reward."""
        ...


class TurnEstimator(Protocol):
    """A turn-level estimator: turn rewards [N, S] and groups [N] to advantages [N, S]."""

    def __call__(
        self,
        step_rewards: Tensor,
        groups: Tensor,
        *,
        taken: Tensor,
        scored: Tensor | None = None,
        discount: float = 1.0,
    ) -> Tensor:
        """Estimate; `taken` [N, S] bool is the turn mask."""
        ...


def group_normalized(
    rewards: Tensor, groups: Tensor, *, scored: Tensor | None = None, eps: float = STD_EPS
) -> Tensor:
    """GRPO: rewards centred and divided by the standard deviation of their group.

        A_i = (r_i - mean_g r) / (std_g r + eps)          std with n - 1

    The size of a difference is lost: with two members the result is +-1/sqrt(2) whatever the gap,
    and one right among n gets (n - 1)/sqrt(n). TRL calls this `scale_rewards="group"`.

    Paper: Shao et al. 2024, arXiv:2402.03300, section 4.1.2.
    Shapes: rewards [N] float, groups [N] int, scored [N] bool -> [N]; 0 where all members earned
    the same, where nobody else is scored, and for the unscored.
    """
    counted = scored_mask(rewards, scored)
    values, members = zero_unless(counted, rewards), group_members(groups, counted)
    spread = group_std(values, members)
    return zero_unless(spread > 0, group_deviations(values, members) / (spread + eps))


def group_centered(rewards: Tensor, groups: Tensor, *, scored: Tensor | None = None) -> Tensor:
    """Dr. GRPO: rewards centred by group, in units of reward.

        A_i = r_i - mean_g r

    TRL calls this `scale_rewards="none"`.

    Paper: Liu et al. 2025, arXiv:2503.20783, section 3.2.
    Shapes: as for `group_normalized`.
    """
    counted = scored_mask(rewards, scored)
    return group_deviations(zero_unless(counted, rewards), group_members(groups, counted))


def leave_one_out(rewards: Tensor, groups: Tensor, *, scored: Tensor | None = None) -> Tensor:
    """RLOO: rewards less the mean of the other rollouts in the group.

        A_i = r_i - (sum_{j != i} r_j) / (n - 1) = n / (n - 1) (r_i - mean_g r)

    The baseline knows nothing of the rollout itself, so the expected gradient is exact. One that is
    alone learns nothing.

    Paper: Ahmadian et al. 2024, arXiv:2402.14740.
    Shapes: as for `group_normalized`.

    >>> import torch
    >>> rewards, groups = torch.tensor([1.0, 0.0, torch.nan, 0.5]), torch.tensor([0, 0, 0, 1])
    >>> leave_one_out(rewards, groups).tolist()
    [1.0, -1.0, 0.0, 0.0]
    """
    counted = scored_mask(rewards, scored)
    size = group_members(groups, counted).sum(dim=1)
    return group_centered(rewards, groups, scored=counted) * size / (size - 1).clamp(min=1)


def batch_scaled(
    rewards: Tensor, groups: Tensor, *, scored: Tensor | None = None, floor: float = STD_FLOOR
) -> Tensor:
    """Lite PPO: rewards centred by group, divided by the standard deviation of the batch.

        A_i = (r_i - mean_g r) / max(std_batch r + 1e-4, floor)

    The deviation holds the differences between tasks too, so a batch of easy and hard tasks is
    scaled down. TRL calls this `scale_rewards="batch"`, and has no floor.

    Paper: Liu et al. 2025, arXiv:2508.08221.
    Shapes: as for `group_normalized`.
    """
    counted = scored_mask(rewards, scored)
    spread = batch_std(zero_unless(counted, rewards), counted)
    return group_centered(rewards, groups, scored=counted) / floored(spread, floor)


def batch_normalized(
    rewards: Tensor,
    groups: Tensor,
    *,
    scored: Tensor | None = None,
    tokens: Tensor | None = None,
    floor: float = STD_FLOOR,
) -> Tensor:
    """REINFORCE++: rewards centred and scaled by the whole batch, without regard to groups.

        A_i = (r_i - mean_batch r) / max(std_batch r + 1e-4, floor)

    A hard task's best rollout may end up below the mean: this is for groups of one.

    Paper: Hu 2025, arXiv:2501.03262, which whitens over tokens: pass their numbers for that.
    Shapes: as for `group_normalized`; tokens [N], sampled tokens of each rollout, or None to count
    each rollout once.
    """
    counted = scored_mask(rewards, scored)
    values = zero_unless(counted, rewards)
    return batch_deviations(values, counted, tokens) / floored(
        batch_std(values, counted, tokens), floor
    )


def batch_normalized_baseline(
    rewards: Tensor,
    groups: Tensor,
    *,
    scored: Tensor | None = None,
    tokens: Tensor | None = None,
    floor: float = STD_FLOOR,
) -> Tensor:
    """REINFORCE++ with baseline: rewards centred by group, divided by their deviation in the batch.

        a_i = r_i - mean_g r,          A_i = a_i / max(std_batch a + 1e-4, floor)

    A difference keeps its size beside the other differences of the batch, and a group without one
    stays at 0. The paper subtracts the mean of all a_i too, which is 0; over tokens it would not
    be, and is left, since groups without a difference would then learn something.

    Paper: Hu 2025, arXiv:2501.03262.
    Shapes: as for `batch_normalized`.
    """
    counted = scored_mask(rewards, scored)
    centered = group_centered(rewards, groups, scored=counted)
    return centered / floored(batch_std(centered, counted, tokens), floor)


def clipped(advantages: Tensor, limit: float) -> Tensor:
    """Advantages clipped to plus and minus `limit`; any shape.

    Groups of n with one right member give it (n - 1)/sqrt(n) under `group_normalized`: 2.5 for 8.
    """
    return advantages.clamp(min=-limit, max=limit)


ESTIMATORS: Final[Mapping[str, Estimator]] = {
    "group_normalized": group_normalized,
    "group_centered": group_centered,
    "leave_one_out": leave_one_out,
    "batch_scaled": batch_scaled,
    "batch_normalized": batch_normalized,
    "batch_normalized_baseline": batch_normalized_baseline,
}
"""Estimators of one advantage per rollout, by name."""
TURN_ESTIMATORS: Final[Mapping[str, TurnEstimator]] = {
    "turn_centered": turn_centered,
    "turn_normalized": turn_normalized,
}
"""Estimators of one advantage per turn, by name."""


def advantages(
    name: str,
    rewards: Tensor,
    groups: Tensor,
    *,
    scored: Tensor | None = None,
    step_rewards: Tensor | None = None,
    taken: Tensor | None = None,
    discount: float = 1.0,
    limit: float | None = None,
) -> Tensor:
    """The advantages of a batch by the estimator of that name.

    Args:
        name: A key of `ESTIMATORS` or `TURN_ESTIMATORS`.
        rewards: [N] float, nan where unscored.
        groups: [N] int, equal for the rollouts of one task.
        scored: [N] bool; None: those with a finite reward.
        step_rewards: [N, S] float, only for the turn-level ones.
        taken: [N, S] bool, the turn mask.
        limit: Cut off at plus and minus this; None: nothing is cut.

    Returns:
        [N], or [N, S] from a turn-level estimator (`turn_credit.token_advantages` spreads it).

    Raises:
        ConfigurationError: There is no such estimator, or it needs rewards of turns.
    """
    counted = scored_mask(rewards, scored)
    if name in ESTIMATORS:
        result = ESTIMATORS[name](rewards, groups, scored=counted)
    elif name not in TURN_ESTIMATORS:
        names = ", ".join([*ESTIMATORS, *TURN_ESTIMATORS])
        raise ConfigurationError(f"there is no advantage estimator {name!r}; choose among {names}.")
    elif step_rewards is None or taken is None:
        raise ConfigurationError(
            f"{name!r} needs the rewards of the turns: pass step_rewards and taken, or choose among"
            f" {', '.join(ESTIMATORS)}."
        )
    else:
        estimate = TURN_ESTIMATORS[name]
        result = estimate(step_rewards, groups, taken=taken, scored=counted, discount=discount)
    return result if limit is None else clipped(result, limit)
