"""Advantages of a batch, by the estimators of `adapters.training.algorithms.advantages`.

The estimators know rewards and groups. This module adds what a trainer has besides: rollouts that
are left out of the loss, a KL penalty in the reward, turn-level advantages spread over tokens, and
tokens on which good and bad rollouts do not differ.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from adapters.reference.config import ReferenceConfig
from adapters.reference.distributed import Processes
from adapters.reference.losses import penalized_rewards
from adapters.reference.rollout import Batch
from adapters.training.algorithms.advantages import TURN_ESTIMATORS, advantages, token_advantages

# Conflict tokens: common prefixes and suffixes of rollouts with advantages of opposite sign.
#
# Every rollout of a group opens with the same `<tool_call>{"name": "` and closes with the same
# tokens. The good ones push those up, the bad ones push them down, and a group in which most are
# bad unlearns the form that all of them need. Trajectory-based GTPO (Simoni et al. 2025,
# arXiv:2508.03772) spares such tokens in rollouts of negative advantage, and lets those of positive
# advantage speak twice. It is an option: the weights multiply the advantages, and with them the
# expected gradient is no longer that of the reward.
#
# Only the masking is taken over. The paper also drops rollouts of high entropy and divides each
# rollout by its number of conflict tokens; here entropy is the guards' affair, and the loss says
# what it divides by.


def conflict_weights(
    tokens: Tensor,
    lengths: Tensor,
    advantages: Tensor,
    groups: Tensor,
    *,
    amplify: float = 2.0,
) -> Tensor:
    """The weight of each token's advantage.

        w_{i,t} = 0         where t is a conflict token and A_i < 0
                  amplify   where t is a conflict token and A_i > 0
                  1         elsewhere

    A token is in conflict if its run from the beginning, or its run back from the end, consists of
    tokens that some rollout of the group with the other sign of advantage has at the same places.

    Paper: arXiv:2508.03772, where `amplify` is 2.

    Args:
        tokens: [N, T] int, completions from their first token on, padded on the right; results of
            tools are part of them and of the runs.
        lengths: [N] int, tokens of each completion.
        advantages: [N] or [N, T] float; rollouts with 0 neither give nor get conflicts.
        groups: [N] int, equal for the rollouts of one task.
        amplify: Weight of a conflict token in a rollout of positive advantage.

    Returns:
        [N, T] in the dtype of `advantages`; 1 at padding.
    """
    places = torch.arange(tokens.shape[1], device=tokens.device)
    present = places < lengths[:, None]
    signs = advantages.sign()
    signs = (signs if signs.dim() == 2 else signs[:, None]).expand(tokens.shape)
    signs = torch.where(present, signs, torch.zeros_like(signs))
    backwards = (lengths[:, None] - 1 - places).clamp(min=0)
    prefixes = _opposed_prefixes(tokens, signs, present, groups)
    reversed_suffixes = _opposed_prefixes(
        tokens.gather(1, backwards), signs.gather(1, backwards), present, groups
    )
    conflict = prefixes | (reversed_suffixes.gather(1, backwards) & present)
    weights = torch.ones_like(signs)
    weights = torch.where(conflict & (signs > 0), amplify, weights)
    return torch.where(conflict & (signs < 0), 0.0, weights)


def _opposed_prefixes(tokens: Tensor, signs: Tensor, present: Tensor, groups: Tensor) -> Tensor:
    """The prefix of each rollout that occurs in one of the other sign too: [N, T] bool."""
    opposed = torch.zeros_like(present)
    for group in set(groups.tolist()):
        rows = (groups == group).nonzero().squeeze(1)
        ids, sign, inside = tokens[rows], signs[rows], present[rows]
        same = (ids[:, None] == ids[None, :]) & inside[:, None] & inside[None, :]
        opposed[rows] = (same & (sign[:, None] * sign[None, :] < 0)).any(dim=1)
    return opposed.int().cumprod(dim=1).bool()


def compute_advantages(
    batch: Batch,
    reference: Tensor | None,
    config: ReferenceConfig,
    processes: Processes | None = None,
) -> Tensor:
    """The advantages of a batch.

    Groups none of whose rollouts takes part in the loss take no part in the statistics either; a
    rollout that alone is left out (it ran out of tokens) is still one that the others did better
    than.

    Args:
        batch: The rollouts of this process.
        reference: [N, T] float, log-probabilities under the reference, or None.
        config: The estimator and its options.
        processes: The processes that hold the rest of the batch; None: there is one process.

    Returns:
        [N], or [N, T] where tokens of a rollout differ.
    """
    rewards = batch.rewards
    if config.loss.kl_in_reward and reference is not None:
        rewards = penalized_rewards(
            rewards,
            batch.log_probs,
            reference,
            batch.loss_mask,
            beta=config.loss.beta,
            limit=config.loss.kl_limit,
        )
    values = _estimate(batch, rewards, config, processes or Processes())
    if config.advantages in TURN_ESTIMATORS:
        values = token_advantages(values, batch.turn_of_token)
    if not config.spare_conflicts:
        return values
    weights = conflict_weights(batch.tokens, batch.lengths, values, batch.groups)
    return weights * (values if values.dim() == 2 else values[:, None])


def _estimate(
    batch: Batch, rewards: Tensor, config: ReferenceConfig, processes: Processes
) -> Tensor:
    """The estimates of this process' rollouts, with statistics over those of all processes."""
    width = max(processes.gather([batch.turn_mask.shape[1]]))
    padding = (0, width - batch.turn_mask.shape[1])
    turns = (pad(batch.turn_rewards, padding), pad(batch.turn_mask, padding))
    own = (rewards, batch.groups, batch.loss_mask.any(dim=1), *turns)
    all_rewards, groups, has_loss, turn_rewards, turn_mask = (
        torch.cat(parts) for parts in zip(*processes.gather([own]), strict=True)
    )
    has_learner = ((groups[:, None] == groups) & has_loss).any(dim=1)
    values = advantages(
        config.advantages,
        all_rewards,
        groups,
        scored=all_rewards.isfinite() & has_learner,
        step_rewards=turn_rewards,
        taken=turn_mask,
        discount=config.turn_discount,
        limit=config.advantage_limit,
    )
    first = sum(processes.gather([len(batch)])[: processes.rank])
    values = values[first : first + len(batch)]
    return values if values.dim() == 1 else values[:, : batch.turn_mask.shape[1]]


def count_loss_tokens(batch: Batch) -> float:
    """The number of tokens in the loss."""
    return float(torch.count_nonzero(batch.loss_mask))
