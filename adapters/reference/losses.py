"""Policy losses by name, with a KL penalty and an entropy bonus.

Each loss is a function that returns a surrogate loss and a weight for every token:

    loss = sum of weight * (surrogate + beta * kl)  -  entropy_bonus * mean entropy

All tensors have the shape [M], where M is the number of sampled tokens in a forward pass. The
tokens are ordered by rollout and do not include prompts or tool results. A step may consist of
several passes on several processes. Weights are normalized over the entire step (`Totals`), so
losses, gradients and metrics of the passes add up to those of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import torch
from torch import Tensor

from adapters.training.settings import GrpoSettings
from toolgym.errors import ConfigurationError

LOG_RATIO_LIMIT: Final = 20.0
"""Limit of log-ratios, in nats.

exp(89) is infinite in float32, and one infinite ratio would turn every model weight into nan.
"""
KL_LIMIT: Final = 10.0
"""Limit of the log-ratio to the reference in the KL penalty, in nats."""


class Totals(NamedTuple):
    """The size of a step, summed over all passes and processes.

    Attributes:
        rollouts: Number of rollouts with at least one token in the loss.
        tokens: Number of tokens in the loss.
        max_length: Maximum number of tokens of a completion, used as a divisor in the `dr_grpo`
            loss.
    """

    rollouts: float
    tokens: float
    max_length: int


class Surrogate(NamedTuple):
    """A policy loss without KL penalty and entropy bonus.

    Attributes:
        loss: [M] float, with gradient.
        weight: [M] float, the weight of each token in the sum over the step.
        ratio: [M] float, the importance ratio before clipping.
    """

    loss: Tensor
    weight: Tensor
    ratio: Tensor


class Pass(NamedTuple):
    """The tokens of a forward pass that are in the loss.

    Attributes:
        log_probs: [M] float, log-probabilities under the policy, with gradient.
        old_log_probs: [M] float, log-probabilities at sampling.
        advantages: [M] float, the advantage of each token.
        rollout: [M] int, the number of the rollout of each token, from 0.
    """

    log_probs: Tensor
    old_log_probs: Tensor
    advantages: Tensor
    rollout: Tensor


def grpo(batch: Pass, low: float, high: float, totals: Totals) -> Surrogate:
    """Compute the GRPO loss, which clips the ratio of each token.

    The loss is averaged over the tokens of each rollout, then over rollouts. Shao et al. 2024,
    arXiv:2402.03300.
    """
    ratio = importance_ratio(batch.log_probs - batch.old_log_probs)
    return Surrogate(clipped(ratio, batch.advantages, low, high), per_rollout(batch, totals), ratio)


def dapo(batch: Pass, low: float, high: float, totals: Totals) -> Surrogate:
    """Compute the DAPO loss, which clips the ratio of each token with a wider upper bound.

    The loss is averaged over all tokens. The wider bound lets rare tokens become more likely. Yu et
    al. 2025, arXiv:2503.14476.
    """
    ratio = importance_ratio(batch.log_probs - batch.old_log_probs)
    weight = torch.full_like(ratio, 1 / (totals.tokens or 1))
    return Surrogate(clipped(ratio, batch.advantages, low, high), weight, ratio)


def dr_grpo(batch: Pass, low: float, high: float, totals: Totals) -> Surrogate:
    """Compute the Dr. GRPO loss, which clips the ratio of each token and divides by a constant.

    The constant is the number of rollouts times `max_length`, so it does not depend on the number
    of tokens. Liu et al. 2025, arXiv:2503.20783.
    """
    ratio = importance_ratio(batch.log_probs - batch.old_log_probs)
    weight = torch.full_like(ratio, 1 / ((totals.rollouts or 1) * totals.max_length))
    return Surrogate(clipped(ratio, batch.advantages, low, high), weight, ratio)


def gspo(batch: Pass, low: float, high: float, totals: Totals) -> Surrogate:
    """Compute the GSPO loss, which clips one ratio for each rollout.

    This ratio is the geometric mean of the ratios of the rollout's tokens, and the loss is averaged
    over rollouts. Zheng et al. 2025, arXiv:2507.18071. In bfloat16, rounding alone can move this
    ratio beyond its bounds, so compute in float32 or set wider bounds.
    """
    lengths = over_rollout(torch.ones_like(batch.log_probs), batch)
    ratio = importance_ratio(over_rollout(batch.log_probs - batch.old_log_probs, batch) / lengths)
    return Surrogate(clipped(ratio, batch.advantages, low, high), per_rollout(batch, totals), ratio)


def cispo(batch: Pass, low: float, high: float, totals: Totals) -> Surrogate:
    """Compute the CISPO loss, which weights the log-probability of each token by its clipped ratio.

    Every token contributes to the gradient. MiniMax 2025, arXiv:2506.13585, which uses no lower
    bound. The upper bound of 5 is from arXiv:2510.13786.
    """
    ratio = importance_ratio(batch.log_probs - batch.old_log_probs)
    bounded = ratio.detach().clamp(1 - low, 1 + high)
    weight = torch.full_like(ratio, 1 / (totals.tokens or 1))
    return Surrogate(-bounded * batch.advantages * batch.log_probs, weight, ratio)


class _Named(NamedTuple):
    function: Callable[[Pass, float, float, Totals], Surrogate]
    low: float
    high: float


LOSSES: Final[Mapping[str, _Named]] = {
    "grpo": _Named(grpo, 0.2, 0.2),
    "dapo": _Named(dapo, 0.2, 0.28),
    "dr_grpo": _Named(dr_grpo, 0.2, 0.2),
    "gspo": _Named(gspo, 3e-4, 4e-4),
    "cispo": _Named(cispo, 1.0, 4.0),
}
"""The losses by name, each with the `epsilon_low` and `epsilon_high` of its paper."""


def importance_ratio(log_ratio: Tensor) -> Tensor:
    """Return the ratio of the policy's probability to that at sampling, from its logarithm."""
    return log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()


def clipped(ratio: Tensor, advantages: Tensor, low: float, high: float) -> Tensor:
    """Return the clipped surrogate of PPO, Schulman et al. 2017, arXiv:1707.06347.

    -min(ratio A, clamp(ratio, 1 - low, 1 + high) A)
    """
    return -torch.minimum(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)


def per_rollout(batch: Pass, totals: Totals) -> Tensor:
    """Return weights [M] that give every rollout the same total weight, regardless of length."""
    lengths = over_rollout(torch.ones_like(batch.log_probs), batch)
    return 1 / (lengths * (totals.rollouts or 1))


def over_rollout(values: Tensor, batch: Pass) -> Tensor:
    """Return, for each token, the sum of `values` over the rollout of the token."""
    return torch.zeros_like(values).index_add(0, batch.rollout, values)[batch.rollout]


def kl_penalty(log_probs: Tensor, reference: Tensor, ratio: Tensor) -> Tensor:
    """Return the k3 estimate of each token's KL divergence from the reference, in nats, as [M].

        ratio * (exp(-d) + d - 1) with d = log pi - log pi_ref, clamped to +-`KL_LIMIT`

    Schulman 2020, "Approximating KL divergence". The gradient of the estimate alone ignores that
    the tokens were sampled from the policy. With the factor `ratio`, the expected gradient
    equals that of the KL divergence, and the gradient of a token is `ratio * d * grad log pi`. The
    gradient is computed explicitly, so that a token beyond the limit has the gradient of a token at
    the limit.

    Args:
        log_probs: [M], log-probabilities under the policy, with gradient.
        reference: [M], log-probabilities under the reference.
        ratio: [M], importance ratio of each token, with gradient.
    """
    gap = (log_probs - reference).detach().clamp(-KL_LIMIT, KL_LIMIT)
    value = torch.exp(-gap) + gap - 1
    return ratio * (value + (gap - value) * (log_probs - log_probs.detach()))


def policy_loss(
    batch: Pass,
    config: GrpoSettings,
    totals: Totals,
    *,
    reference: Tensor | None = None,
    entropy: Tensor | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Compute the loss of a pass and its metrics.

    Args:
        batch: The tokens in the loss, at least one.
        config: Settings with the name of the loss and its coefficients.
        totals: The size of the entire step.
        reference: [M] float, log-probabilities under the reference. Required if `beta` is not 0.
        entropy: [M] float, in nats, with gradient if there is an entropy bonus.

    Returns:
        The loss, a scalar with gradient, and metrics, which are scalars without gradient:
        `policy_loss`, `ratio`, `clip_low` and `clip_high` (tokens with a clipped ratio), `mismatch`
        (nats; see `toolgym.runs.metrics`), `kl` and `entropy`. Each metric is the contribution of
        this pass to the mean over the tokens of the step.

    Raises:
        ConfigurationError: If `beta` is not 0 and there is no `reference`.
    """
    if config.beta and reference is None:
        raise ConfigurationError("beta is not 0: pass reference log-probabilities, or set it to 0.")
    function, low, high = LOSSES[config.loss]
    low = low if config.epsilon_low is None else config.epsilon_low
    high = high if config.epsilon_high is None else config.epsilon_high
    surrogate = function(batch, low, high, totals)
    value = (surrogate.weight * surrogate.loss).sum()
    log_ratio = (batch.log_probs - batch.old_log_probs).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    token_ratio = log_ratio.exp()
    metrics = {"policy_loss": value}
    tokens = {
        "ratio": surrogate.ratio,
        "clip_low": (surrogate.ratio < 1 - low) & (batch.advantages < 0),
        "clip_high": (surrogate.ratio > 1 + high) & (batch.advantages > 0),
        "mismatch": token_ratio - 1 - log_ratio,
    }
    if reference is not None:
        tokens["kl"] = kl_penalty(batch.log_probs, reference, token_ratio)
        value = value + config.beta * (surrogate.weight * tokens["kl"]).sum()
    if entropy is not None:
        tokens["entropy"] = entropy
    metrics |= {name: each.sum() / (totals.tokens or 1) for name, each in tokens.items()}
    if config.entropy_bonus:
        value = value - config.entropy_bonus * metrics["entropy"]
    return value, {name: metric.detach() for name, metric in metrics.items()}
