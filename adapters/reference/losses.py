"""The policy loss of a batch: clipped surrogate, KL penalty and entropy bonus.

It reads as it is computed: the ratio of each token to the policy that sampled it, the surrogate
that turns ratio and advantage into a value per token, the divergence from the reference, the sum
over tokens divided by what the aggregation counts, the entropy bonus. Which paper's loss it is
stands in the `LossConfig`.

Tensors are [N, T]: N rollouts, T tokens of the longest. A token counts where the mask is 1, that
is, where the policy sampled it; at all others (results of tools, padding, rollouts that were left
out) log-probabilities may be anything, nan included.

A step is often more than fits into memory at once. `Totals` counts the rollouts and tokens of the
whole step; given to each part, the losses, the gradients and the metrics of the parts add up to
those of the step in one piece.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from adapters.reference.divergence import divergence
from adapters.reference.loss_config import LossConfig


class Loss(NamedTuple):
    """The loss and its metrics.

    Attributes:
        value: Scalar with gradient.
        metrics: Scalars without gradient, all but `policy_loss` means over the step's tokens:
            `policy_loss` (the surrogate's part of the value), `ratio`, `clip_low` and `clip_high`
            (shares of tokens that a bound deprives of their gradient; under `cispo`, that it
            weights), `clip_dual`, `log_ratio_limited` (share at the clamp); `kl` in nats, with a
            reference; `entropy` in nats, where it was given.
    """

    value: Tensor
    metrics: dict[str, Tensor]


@dataclass(frozen=True)
class Totals:
    """The numbers of rollouts and tokens of a step, by which losses are divided.

    Sum them up with `+`. Where gradients are averaged over processes afterwards, as DDP does, take
    the totals of all processes divided by how many there are.

    Attributes:
        rollouts: The rollouts with a token in the loss.
        tokens: The tokens in the loss.
    """

    rollouts: float
    tokens: float

    @classmethod
    def of(cls, mask: Tensor) -> Totals:
        """Count a batch: mask [N, T], 1 at the tokens that count."""
        counted = mask.bool()
        return cls(float(counted.any(dim=1).sum()), float(counted.sum()))

    def __add__(self, other: Totals) -> Totals:
        return Totals(self.rollouts + other.rollouts, self.tokens + other.tokens)

    def __truediv__(self, processes: int) -> Totals:
        return Totals(self.rollouts / processes, self.tokens / processes)


def policy_loss(
    logprobs: Tensor,
    old_logprobs: Tensor | None,
    advantages: Tensor,
    mask: Tensor,
    *,
    config: LossConfig,
    ref_logprobs: Tensor | None = None,
    entropy: Tensor | None = None,
    totals: Totals | None = None,
) -> Loss:
    """The loss of a batch, or of a part of one.

        L = 1/Z sum_t (surrogate_t + beta kl_t) - entropy_bonus 1/|tokens| sum_t H_t

    with Z by the aggregation, see `aggregate`.

    Args:
        logprobs: [N, T] float, of the sampled tokens under the policy, in nats, with gradient.
        old_logprobs: [N, T] float, under the policy that sampled; None: it is this very policy.
        advantages: [N] or [N, T] float.
        mask: [N, T], 1 at the tokens that the policy sampled and that count.
        config: Which loss.
        ref_logprobs: [N, T] float, under the reference; needed where `beta` is not 0.
        entropy: [N, T] float, of each token's distribution, in nats; with gradient, and needed,
            where there is an entropy bonus.
        totals: Of the whole step, if this is a part of it.

    Raises:
        ValueError: `config` asks for something that was not given.
    """
    _require(config, ref_logprobs, entropy)
    counted, totals = mask.bool(), totals or Totals.of(mask)
    logprobs = _where(counted, logprobs)
    before = (logprobs if old_logprobs is None else _where(counted, old_logprobs)).detach()
    lead = _where(counted, advantages if advantages.dim() == 2 else advantages[:, None])
    moved = log_ratio(logprobs - before, counted, config)
    ratio = limited_exp(moved, config)
    value = aggregate(surrogate(ratio, logprobs, lead, config), counted, totals, config)
    metrics = {"policy_loss": value}
    metrics |= _ratio_metrics(moved, ratio, lead, counted, totals, config)
    if ref_logprobs is not None:
        own = ratio if config.kl_ratio == "policy" else limited_exp(logprobs - before, config)
        kl = divergence(config.kl, logprobs, _where(counted, ref_logprobs), own, config.kl_limit)
        metrics["kl"] = _mean(kl, counted, totals)
        value = _plus(value, config.beta_in_loss, aggregate(kl, counted, totals, config))
    if entropy is not None:
        metrics["entropy"] = _mean(entropy, counted, totals)
        value = _plus(value, -config.entropy_bonus, metrics["entropy"])
    return Loss(value, {name: metric.detach() for name, metric in metrics.items()})


def log_ratio(gaps: Tensor, counted: Tensor, config: LossConfig) -> Tensor:
    """The log-ratio of the policy to the policy that sampled, by token or by sequence.

        token:     l_t = log pi - log pi_old
        sequence:  l   = 1/|o| sum_t l_t

    Papers: token, PPO, Schulman et al. 2017, arXiv:1707.06347; sequence, GSPO, Zheng et al. 2025,
    arXiv:2507.18071.

    Args:
        gaps: [N, T] float, l_t, 0 where nothing counts.
        counted: [N, T] bool.
        config: Its `ratio`.

    Returns:
        [N, T] for `token`, [N, 1] for `sequence`.
    """
    if config.ratio == "token":
        return gaps
    return gaps.sum(dim=1, keepdim=True) / counted.sum(dim=1, keepdim=True).clamp(min=1)


def limited_exp(logs: Tensor, config: LossConfig) -> Tensor:
    """The ratio behind a log-ratio: rho = exp(clamp(l, -limit, limit)), any shape.

    The limit is `log_ratio_limit` in nats. What is beyond it gets no gradient.
    """
    return logs.clamp(min=-config.log_ratio_limit, max=config.log_ratio_limit).exp()


def surrogate(ratio: Tensor, logprobs: Tensor, lead: Tensor, config: LossConfig) -> Tensor:
    """The surrogate loss of each token with its advantage A.

        clip:   -min(min(rho, dual_clip) A, clamp(rho, 1 - epsilon_low, 1 + epsilon_high) A)
        cispo:  -sg(clamp(rho, 1 - epsilon_low, 1 + epsilon_high)) A log pi          sg: no gradient

    Where A < 0, the first equals max(min(rho A, clamp(rho) A), dual_clip A), the way dual clip is
    usually written; where A > 0, dual_clip changes nothing, being above the upper bound.

    Papers: clip, PPO, arXiv:1707.06347; separate bounds, DAPO, Yu et al. 2025, arXiv:2503.14476;
    dual clip, Ye et al. 2019, arXiv:1912.09729; CISPO, MiniMax 2025, arXiv:2506.13585.

    Args:
        ratio: [N, T] or [N, 1] float, with gradient.
        logprobs: [N, T] float, with gradient.
        lead: [N, T] float, the advantages.
        config: Its `surrogate`, bounds and `dual_clip`.

    Returns:
        [N, T].
    """
    bounded = ratio.clamp(min=1 - config.epsilon_low, max=1 + config.epsilon_high)
    if config.surrogate == "cispo":
        return -bounded.detach() * lead * logprobs
    capped = ratio if config.dual_clip is None else ratio.clamp(max=config.dual_clip)
    return -torch.minimum(capped * lead, bounded * lead)


def aggregate(per_token: Tensor, counted: Tensor, totals: Totals, config: LossConfig) -> Tensor:
    """The sum over tokens, divided by rollouts, tokens or a constant.

        sample:    1/N sum_i 1/|o_i| sum_t x_{i,t}          N = rollouts of the step that count
        token:     1/(sum_i |o_i|) sum_i sum_t x_{i,t}
        constant:  1/(N constant_length) sum_i sum_t x_{i,t}

    Papers: sample, GRPO, arXiv:2402.03300; token, DAPO, arXiv:2503.14476; constant, Dr. GRPO,
    arXiv:2503.20783. A rollout none of whose tokens counts is in no N, so leaving rollouts out does
    not make the step of the others smaller.

    Args:
        per_token: [N, T] float.
        counted: [N, T] bool.
        totals: What to divide by.
        config: Its `aggregation` and `constant_length`.

    Returns:
        A scalar, 0 where nothing counts.
    """
    known = _where(counted, per_token)
    if config.aggregation == "sample":
        each = known.sum(dim=1) / counted.sum(dim=1).clamp(min=1)
        return each.sum() / (totals.rollouts or 1)
    if config.aggregation == "token":
        return known.sum() / (totals.tokens or 1)
    return known.sum() / ((totals.rollouts or 1) * (config.constant_length or 1))


def _ratio_metrics(
    moved: Tensor,
    ratio: Tensor,
    lead: Tensor,
    counted: Tensor,
    totals: Totals,
    config: LossConfig,
) -> dict[str, Tensor]:
    low, high = ratio < 1 - config.epsilon_low, ratio > 1 + config.epsilon_high
    if config.surrogate == "clip":
        low, high = low & (lead < 0), high & (lead > 0)
    shares = {
        "ratio": ratio,
        "clip_low": low,
        "clip_high": high,
        "log_ratio_limited": moved.abs() > config.log_ratio_limit,
    }
    if config.dual_clip is not None:
        shares["clip_dual"] = (ratio > config.dual_clip) & (lead < 0)
    return {name: _mean(share, counted, totals) for name, share in shares.items()}


def _require(config: LossConfig, ref_logprobs: Tensor | None, entropy: Tensor | None) -> None:
    if config.beta_in_loss and ref_logprobs is None:
        raise ValueError("beta is not 0: pass ref_logprobs, or set beta to 0.")
    if config.entropy_bonus and entropy is None:
        raise ValueError("there is an entropy bonus: pass entropy, or set entropy_bonus to 0.")


def _plus(value: Tensor, price: float, term: Tensor) -> Tensor:
    """`value + price term`; what costs nothing stays out, or 0 times nan would be nan."""
    return value + price * term if price else value


def _mean(values: Tensor, counted: Tensor, totals: Totals) -> Tensor:
    return _where(counted, values).sum() / (totals.tokens or 1)


def _where(counted: Tensor, values: Tensor) -> Tensor:
    """The values, 0 and without gradient where nothing counts: [N, T] from [N, T] or [N, 1]."""
    return torch.where(counted, values, torch.zeros_like(values))
