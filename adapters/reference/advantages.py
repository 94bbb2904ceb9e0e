"""Advantages of a batch, by the estimators of `adapters.training.algorithms.advantages`.

The estimators know rewards and groups. This module adds what a trainer has besides: rollouts that
are left out of the loss, a KL penalty in the reward, and turn-level advantages spread over tokens.
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
    return values


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
