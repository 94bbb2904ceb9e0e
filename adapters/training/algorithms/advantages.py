"""Advantage estimators by name: pure functions from the rewards of a batch to advantages.

Rewards and groups are [N], one for each rollout. The rollouts of one task have the same group
number and need not be adjacent. A rollout without a reward (nan) gets the advantage 0 and is left
out of all statistics. Statistics are over all rollouts passed, so gather those of all processes
first.

Dividing by the standard deviation of a group erases the size of its differences: in groups of two
every advantage is .707 or -.707, whatever the rewards. The reference trainer therefore uses
`batch_normalized_baseline` by default: centered by group, scaled by batch, with a floor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import torch
from torch import Tensor

from toolgym.errors import ConfigurationError

EPSILON: Final = 1e-4
"""Added to every standard deviation before dividing, as in TRL."""
FLOOR: Final = 0.1
"""Smallest divisor of a batch. Once nearly every rollout is correct, rewards differ by the cost of
a call, .01; without the floor that difference would become an advantage near 1."""


def group_normalized(rewards: Tensor, groups: Tensor) -> Tensor:
    """GRPO: centered and divided by the standard deviation of the group.

        A_i = (r_i - mean_g r) / (std_g r + 1e-4)

    Shao et al. 2024, arXiv:2402.03300. TRL: `scale_rewards="group"`.
    """
    advantages = torch.zeros_like(rewards)
    for rows in _groups(rewards, groups):
        advantages[rows] = _centered(rewards[rows]) / (_std(rewards[rows]) + EPSILON)
    return advantages


def group_centered(rewards: Tensor, groups: Tensor) -> Tensor:
    """Dr. GRPO: centered by group, in units of reward.

        A_i = r_i - mean_g r

    Liu et al. 2025, arXiv:2503.20783. TRL: `scale_rewards="none"`.
    """
    advantages = torch.zeros_like(rewards)
    for rows in _groups(rewards, groups):
        advantages[rows] = _centered(rewards[rows])
    return advantages


def leave_one_out(rewards: Tensor, groups: Tensor) -> Tensor:
    """RLOO: the reward minus the mean of the other rollouts of the group.

        A_i = r_i - mean_{j != i} r_j = n / (n - 1) (r_i - mean_g r)

    Ahmadian et al. 2024, arXiv:2402.14740.

    >>> rewards, groups = torch.tensor([1.0, 0.0, torch.nan, 0.5]), torch.tensor([0, 0, 0, 1])
    >>> leave_one_out(rewards, groups).tolist()
    [1.0, -1.0, 0.0, 0.0]
    """
    advantages = torch.zeros_like(rewards)
    for rows in _groups(rewards, groups):
        n = len(rows)
        advantages[rows] = _centered(rewards[rows]) * (n / max(n - 1, 1))
    return advantages


def batch_scaled(rewards: Tensor, groups: Tensor) -> Tensor:
    """Lite PPO: centered by group, divided by the standard deviation of all rewards of the batch.

        A_i = (r_i - mean_g r) / max(std r + 1e-4, 0.1)

    Liu et al. 2025, arXiv:2508.08221. TRL: `scale_rewards="batch"`, without the floor.
    """
    scale = _std(rewards[rewards.isfinite()])
    return group_centered(rewards, groups) / (scale + EPSILON).clamp(min=FLOOR)


def batch_normalized(rewards: Tensor, groups: Tensor) -> Tensor:
    """REINFORCE++: centered and scaled by the batch, ignoring groups; for groups of one.

        A_i = (r_i - mean r) / max(std r + 1e-4, 0.1)

    Hu 2025, arXiv:2501.03262.
    """
    return batch_scaled(rewards, torch.zeros_like(groups))


def batch_normalized_baseline(rewards: Tensor, groups: Tensor) -> Tensor:
    """REINFORCE++ with baseline: centered by group, scaled by the deviation of the centered batch.

        a_i = r_i - mean_g r,    A_i = a_i / max(std a + 1e-4, 0.1)

    Hu 2025, arXiv:2501.03262.
    """
    centered = group_centered(rewards, groups)
    scale = _std(centered[rewards.isfinite()])
    return centered / (scale + EPSILON).clamp(min=FLOOR)


def turn_normalized(rewards: Tensor, groups: Tensor, turn_rewards: Tensor, taken: Tensor) -> Tensor:
    """Turn-level credit: the return from a turn on, minus the mean return of the other rollouts.

        G_is = r_is + r_i(s+1) + ...
        a_is = G_is - mean_{j != i} G_js,    A_is = a_is / max(std a + 1e-4, 0.1)

    Ding et al. 2025 (GTPO), arXiv:2511.14846, for returns of turns. The paper normalizes over the
    rollouts that reached a turn, which is biased where the policy decides when to stop
    (verl-project/verl#7244). Here the baseline is the mean over all other rollouts of the group,
    with a return of 0 for those that ended before the turn.

    Args:
        rewards: [N] float, nan for a rollout without a reward.
        groups: [N] int.
        turn_rewards: [N, S] float; rewards at the end of the episode belong to the last turn.
        taken: [N, S] bool, True for the turns that each rollout has.

    Returns:
        [N, S]; 0 where a rollout has no turn.
    """
    scored = rewards.isfinite()[:, None]
    returns = torch.where(taken & scored, turn_rewards, 0.0).flip(1).cumsum(1).flip(1)
    returns = torch.where(taken, returns, 0.0).masked_fill(~scored, torch.nan)
    columns = [leave_one_out(column, groups) for column in returns.unbind(1)]
    scored = scored & taken
    advantages = torch.where(scored, torch.stack(columns, 1), 0.0)
    return advantages / (_std(advantages[scored]) + EPSILON).clamp(min=FLOOR)


ESTIMATORS: Final[Mapping[str, Callable[[Tensor, Tensor], Tensor]]] = {
    "group_normalized": group_normalized,
    "group_centered": group_centered,
    "leave_one_out": leave_one_out,
    "batch_scaled": batch_scaled,
    "batch_normalized": batch_normalized,
    "batch_normalized_baseline": batch_normalized_baseline,
}
"""Estimators of one advantage for each rollout, by name."""
TURN_ESTIMATORS: Final[Mapping[str, Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]]] = {
    "turn_normalized": turn_normalized
}
"""Estimators of one advantage for each turn, by name."""


def advantages(
    name: str,
    rewards: Tensor,
    groups: Tensor,
    *,
    turn_rewards: Tensor | None = None,
    taken: Tensor | None = None,
    limit: float | None = None,
) -> Tensor:
    """Compute the advantages of a batch.

    Args:
        name: A key of `ESTIMATORS` or `TURN_ESTIMATORS`.
        rewards: [N] float, nan for a rollout without a reward.
        groups: [N] int, equal for the rollouts of one task.
        turn_rewards: [N, S] float, needed by turn-level estimators.
        taken: [N, S] bool, True for the turns that each rollout has; needed by turn-level
            estimators.
        limit: Advantages are clipped at plus and minus this; None: no clipping.

    Returns:
        [N], or [N, S] from a turn-level estimator.

    Raises:
        ConfigurationError: There is no such estimator, or `turn_rewards` or `taken` is missing.
    """
    if name in ESTIMATORS:
        result = ESTIMATORS[name](rewards, groups)
    elif name not in TURN_ESTIMATORS:
        names = ", ".join([*ESTIMATORS, *TURN_ESTIMATORS])
        raise ConfigurationError(f"there is no advantage estimator {name!r}; choose among {names}.")
    elif turn_rewards is None or taken is None:
        raise ConfigurationError(f"{name!r} needs the rewards of turns: pass turn_rewards, taken.")
    else:
        result = TURN_ESTIMATORS[name](rewards, groups, turn_rewards, taken)
    return result if limit is None else result.clamp(min=-limit, max=limit)


def _groups(rewards: Tensor, groups: Tensor) -> Iterator[Tensor]:
    """The indices of the scored rollouts of each group."""
    scored = rewards.isfinite()
    for group in torch.unique(groups):
        yield ((groups == group) & scored).nonzero().flatten()


def _centered(values: Tensor) -> Tensor:
    """The values minus their mean; exactly 0 where all are equal.

    The rounding error of a mean, divided by a small deviation, would become an advantage.
    """
    if len(values) < 2 or values.max() == values.min():
        return torch.zeros_like(values)
    return values - values.mean()


def _std(values: Tensor) -> Tensor:
    """The sample standard deviation (n - 1), 0 for fewer than two values."""
    if len(values) < 2:
        return values.new_zeros(())
    return (_centered(values).square().sum() / (len(values) - 1)).sqrt()
