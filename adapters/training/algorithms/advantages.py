"""Advantage estimators: pure functions from the rewards of a batch to advantages.

Each has its own name and gives one advantage per rollout; the turn-level ones (`turn_credit`) give
one per turn. In all of them a rollout that a fault left
unscored gets 0 and moves nobody's baseline, the members of a group need not stand together, and
statistics are over everything that is passed: gather the batch of all processes first.

What to choose: dividing by a group's own deviation erases how large a difference was (with groups
of two the advantage is always plus or minus .707), so the default of the trainers here is
`batch_normalized_baseline`: centred by group, scaled by batch, with a floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from torch import Tensor

from adapters.training.algorithms.group_statistics import (
    STD_EPS,
    STD_FLOOR,
    batch_lead,
    batch_std,
    floored,
    group_lead,
    group_members,
    group_std,
    scored_mask,
    zero_unless,
)
from adapters.training.algorithms.turn_credit import turn_centered, turn_normalized
from toolgym.errors import ConfigurationError


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
    known, members = zero_unless(counted, rewards), group_members(groups, counted)
    spread = group_std(known, members)
    return zero_unless(spread > 0, group_lead(known, members) / (spread + eps))


def group_centered(rewards: Tensor, groups: Tensor, *, scored: Tensor | None = None) -> Tensor:
    """Dr. GRPO: rewards centred by group, in units of reward.

        A_i = r_i - mean_g r

    TRL calls this `scale_rewards="none"`.

    Paper: Liu et al. 2025, arXiv:2503.20783, section 3.2.
    Shapes: as for `group_normalized`.
    """
    counted = scored_mask(rewards, scored)
    return group_lead(zero_unless(counted, rewards), group_members(groups, counted))


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
    known = zero_unless(counted, rewards)
    return batch_lead(known, counted, tokens) / floored(batch_std(known, counted, tokens), floor)


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
        discount: Of later turns.
        limit: Cut off at plus and minus this; None: nothing is cut.

    Returns:
        [N], or [N, S] from a turn-level estimator (`turn_credit.token_advantages` spreads it).

    Raises:
        ConfigurationError: There is no such estimator, or it needs rewards of turns.
    """
    counted = scored_mask(rewards, scored)
    if name in ESTIMATORS:
        found = ESTIMATORS[name](rewards, groups, scored=counted)
    elif name not in TURN_ESTIMATORS:
        known = ", ".join([*ESTIMATORS, *TURN_ESTIMATORS])
        raise ConfigurationError(f"there is no advantage estimator {name!r}; choose among {known}.")
    elif step_rewards is None or taken is None:
        raise ConfigurationError(
            f"{name!r} needs the rewards of the turns: pass step_rewards and taken, or choose among"
            f" {', '.join(ESTIMATORS)}."
        )
    else:
        estimate = TURN_ESTIMATORS[name]
        found = estimate(step_rewards, groups, taken=taken, scored=counted, discount=discount)
    return found if limit is None else clipped(found, limit)
