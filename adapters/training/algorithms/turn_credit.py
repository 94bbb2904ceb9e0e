"""Turn-level advantages: the return from each turn on, less a leave-one-out baseline.

The estimators of a whole rollout give its every token one number, so a good third turn pays for a
bad first one. Environments here tell the reward of every step (the differences of the running
score), so a turn can answer for what came after it and for nothing that came before.

The published form (Group Turn Policy Optimization, Ding et al. 2025, arXiv:2511.14846) normalises
over the members of a group that reached the same turn index. Where the policy decides when to stop,
as it does with every tool, that leans. If rewards are normalised one by one, a rollout is charged a
baseline for every turn it takes, a hidden price on going on (verl-project/verl#7244); if returns
are, a turn that few reached is compared mostly with itself. Here a baseline is made of the others'
rollouts only, and a rollout that has ended goes on earning 0, so every turn is compared with the
same number of others. The expected gradient is then exact, which a test holds by enumeration.
"""

from __future__ import annotations

import torch
from torch import Tensor

from adapters.training.algorithms.group_statistics import (
    STD_FLOOR,
    batch_std,
    floored,
    group_lead,
    group_members,
    scored_mask,
    zero_unless,
)


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
    leads = torch.stack([group_lead(column, members) for column in returns.unbind(dim=1)], dim=1)
    return zero_unless(taken, leads * (size / (size - 1).clamp(min=1))[:, None])


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
