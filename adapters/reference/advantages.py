"""Advantages of a batch: what `adapters.training` estimates, for the tokens of this trainer.

The estimators know rewards and groups. What else decides over who is compared with whom is told
here: rollouts that were left out, a divergence that is charged in the reward, turns that have an
advantage each, and tokens on which good and bad rollouts do not differ.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from adapters.reference.batch import Batch
from adapters.reference.config import ReferenceConfig
from adapters.reference.distributed import Processes
from adapters.reference.divergence import penalized_rewards
from adapters.training.algorithms.advantages import TURN_ESTIMATORS, advantages
from adapters.training.algorithms.conflict_tokens import conflict_weights
from adapters.training.algorithms.turn_credit import token_advantages


def compare(
    batch: Batch,
    reference: Tensor | None,
    config: ReferenceConfig,
    processes: Processes | None = None,
) -> Tensor:
    """How much better each rollout was than what it is compared with.

    Groups none of whose rollouts takes part in the loss take no part in the statistics either; a
    rollout that alone is left out (it ran out of tokens) is still one that the others did better
    than.

    Args:
        batch: All that this process has of it.
        reference: [N, T] float, log-probabilities under the reference, or None.
        config: Which estimator, and what is done to its result.
        processes: That have the rest; None: there is no rest.

    Returns:
        [N], or [N, T] where tokens of a rollout differ.
    """
    rewards = batch.rewards
    if config.loss.kl_in_reward and reference is not None:
        rewards = penalized_rewards(
            rewards,
            batch.log_probs,
            reference,
            batch.learnt,
            beta=config.loss.beta,
            limit=config.loss.kl_limit,
        )
    found = _estimated(batch, rewards, config, processes or Processes())
    if config.advantages in TURN_ESTIMATORS:
        found = token_advantages(found, batch.turn_of_token)
    if not config.spare_conflicts:
        return found
    weights = conflict_weights(batch.tokens, batch.lengths, found, batch.groups)
    return weights * (found if found.dim() == 2 else found[:, None])


def _estimated(
    batch: Batch, rewards: Tensor, config: ReferenceConfig, processes: Processes
) -> Tensor:
    """What the estimator says of this process' rollouts, beside those of all others."""
    width = max(processes.gather([batch.taken.shape[1]]))
    missing = (0, width - batch.taken.shape[1])
    turns = (pad(batch.turn_rewards, missing), pad(batch.taken, missing))
    own = (rewards, batch.groups, batch.learnt.any(dim=1), *turns)
    earned, groups, learns, turn_rewards, taken = (
        torch.cat(parts) for parts in zip(*processes.gather([own]), strict=True)
    )
    has_learner = ((groups[:, None] == groups) & learns).any(dim=1)
    found = advantages(
        config.advantages,
        earned,
        groups,
        scored=earned.isfinite() & has_learner,
        step_rewards=turn_rewards,
        taken=taken,
        discount=config.turn_discount,
        limit=config.advantage_limit,
    )
    before = sum(processes.gather([len(batch)])[: processes.rank])
    found = found[before : before + len(batch)]
    return found if found.dim() == 1 else found[:, : batch.taken.shape[1]]


def learnt_tokens(batch: Batch) -> float:
    """How many tokens the loss is taken over."""
    return float(torch.count_nonzero(batch.learnt))
