"""Advantage estimators: pure functions that map rewards to advantages.

Rewards and group numbers have the shape [N], with one value per rollout. The rollouts of one task
have the same group number and need not be adjacent. A rollout without a reward (nan) gets the
advantage 0 and is excluded from all statistics. Statistics are computed over all rollouts that are
passed, so gather the rollouts of all processes first.

In these formulas, r_i is the reward of a rollout, n the size of its group g, and std the sample
standard deviation:

    group_normalized: GRPO, (r_i - mean_g r) / (std_g r + 1e-4)
    group_centered: Dr. GRPO, r_i - mean_g r
    leave_one_out: RLOO, r_i - mean_{j != i} r_j = n / (n - 1) (r_i - mean_g r)
    batch_scaled: Lite PPO, (r_i - mean_g r) / max(std r + 1e-4, 0.1)
    batch_normalized: REINFORCE++, (r_i - mean r) / max(std r + 1e-4, 0.1)
    batch_normalized_baseline: REINFORCE++ with baseline, a_i / max(std a + 1e-4, 0.1) with
        a_i = r_i - mean_g r
    turn_normalized: GTPO, for each turn s: a_is / max(std a + 1e-4, 0.1) with
        a_is = G_is - mean_{j != i} G_js and G_is = r_is + r_i(s+1) + ...

Papers: Shao et al. 2024, arXiv:2402.03300 (GRPO); Liu et al. 2025, arXiv:2503.20783 (Dr. GRPO);
Ahmadian et al. 2024, arXiv:2402.14740 (RLOO); Liu et al. 2025, arXiv:2508.08221 (Lite PPO); Hu
2025, arXiv:2501.03262 (REINFORCE++); Ding et al. 2025, arXiv:2511.14846 (GTPO). `group_normalized`,
`group_centered` and `batch_scaled` correspond to TRL's `scale_rewards` "group", "none" and "batch";
TRL's "batch" has no lower bound of 0.1 on the divisor.

Dividing by the standard deviation of a group discards the scale of the reward differences within
the group. In groups of two, every nonzero advantage is 0.707 or -0.707, regardless of the rewards.
The reference trainer therefore uses `batch_normalized_baseline` by default. The GTPO paper
normalizes each turn only over the rollouts that reached it, which introduces a bias if the policy
decides when to stop (verl-project/verl#7244). In this implementation, the baseline of a turn
averages over all other rollouts of the group, and a rollout that ended before the turn has a return
of 0.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from toolgym.errors import ConfigurationError

EPSILON: Final = 1e-4
"""Value added to every standard deviation before dividing, as in TRL."""
FLOOR: Final = 0.1
"""Minimum divisor of the advantages of a batch.

Once nearly every rollout is correct, rewards differ only by the cost of a call, .01. Without this
minimum, such a difference would become an advantage near 1.
"""


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
        name: Name of an estimator in `ESTIMATORS` or `TURN_ESTIMATORS`.
        rewards: [N] float, nan for a rollout without a reward.
        groups: [N] int, the group number of each rollout, equal for rollouts of the same task.
        turn_rewards: [N, S] float, required by turn-level estimators. Rewards given at the end of
            the episode are assigned to the last turn.
        taken: [N, S] bool, True for each turn that the rollout contains. Required by turn-level
            estimators.
        limit: Advantages are clipped to [-limit, limit]; None disables clipping.

    Returns:
        Advantages of shape [N], or [N, S] from a turn-level estimator.

    Raises:
        ConfigurationError: If there is no such estimator, or `turn_rewards` or `taken` is missing.

    >>> rewards, groups = torch.tensor([1.0, 0.0, torch.nan, 0.5]), torch.tensor([0, 0, 0, 1])
    >>> advantages("leave_one_out", rewards, groups).tolist()
    [1.0, -1.0, 0.0, 0.0]
    """
    scored = rewards.isfinite()[:, None]
    if name in ESTIMATORS:
        counted, values = scored, rewards[:, None].where(scored, 0.0)  # [N, 1]
    elif name not in TURN_ESTIMATORS:
        names = ", ".join([*ESTIMATORS, *TURN_ESTIMATORS])
        raise ConfigurationError(f"unknown advantage estimator {name!r}; choose one of {names}.")
    elif turn_rewards is None or taken is None:
        raise ConfigurationError(
            f"{name!r} needs the rewards of turns: pass turn_rewards and taken."
        )
    else:
        counted = taken & scored
        values = turn_rewards.where(counted, 0.0).flip(1).cumsum(1).flip(1).where(counted, 0.0)
    compared = torch.zeros_like(groups) if name == "batch_normalized" else groups
    members = (compared[:, None] == compared) & scored.T  # [N, N]
    size, weights = members.sum(1, keepdim=True), members.to(values.dtype)
    # If all rewards are equal, differences to one member are exactly 0. Differences to a mean may
    # not be, and a rounding error divided by a small deviation would become an advantage.
    leads = values - values[members.long().argmax(1)]
    leads = (leads - weights @ leads / size.clamp(min=1)).where(counted, 0.0)
    if name in ("leave_one_out", "turn_normalized"):
        leads = leads * size / (size - 1).clamp(min=1)
    if name == "group_normalized":
        variance = weights @ leads.square() / (size - 1).clamp(min=1)
        leads = leads / (variance.sqrt() + EPSILON)
    elif name not in ("group_centered", "leave_one_out"):
        spread = (values if name == "batch_scaled" else leads)[counted]
        deviation = spread.std() if len(spread) > 1 else spread.new_zeros(())
        leads = leads / (deviation + EPSILON).clamp(min=FLOOR)
    result = leads if name in TURN_ESTIMATORS else leads[:, 0]
    return result if limit is None else result.clamp(min=-limit, max=limit)


ESTIMATORS: Final = (
    "group_normalized",
    "group_centered",
    "leave_one_out",
    "batch_scaled",
    "batch_normalized",
    "batch_normalized_baseline",
)
"""Names of the estimators that return one advantage for each rollout."""
TURN_ESTIMATORS: Final = ("turn_normalized",)
"""Names of the estimators that return one advantage for each turn."""
