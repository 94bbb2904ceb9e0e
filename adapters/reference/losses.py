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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from torch import Tensor

from toolgym.errors import ConfigurationError, refused_fields

# Loss settings: ratio, surrogate, aggregation and KL, and the losses of papers by name.
#
# A paper's loss is one choice of each: which ratio, how it is kept in bounds, what the sum over
# tokens is divided by. `loss_config("gspo")` gives the choices of a paper, any of which can be
# changed; what does not go together is refused.


Estimate = Literal["k1", "k2", "k3"]


class LossConfig(BaseModel):
    """One loss. rho is the ratio of a token's probabilities under the policy and under the one that
    sampled it, A its advantage."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    surrogate: Literal["clip", "cispo"] = "clip"
    """`clip`: a token whose ratio has left the bounds gets no gradient any more. `cispo`: every
    token keeps its gradient, weighted by its ratio cut off at the bounds."""
    ratio: Literal["token", "sequence"] = "token"
    """`sequence`: one ratio for a rollout, the geometric mean of its tokens' (GSPO)."""
    old_log_probs: Literal["recorded", "computed"] = "recorded"
    """The denominator of ratios. `recorded`: the log-probabilities at which tokens were sampled, so
    that the ratio also corrects what rounding makes different between sampling and training.
    `computed`: those that the learner finds before the first update of a batch, for bounds that are
    narrower than this rounding: GSPO's, outside of which bfloat16 puts half of the rollouts."""
    epsilon_low: float = Field(0.2, ge=0, le=1)
    """Ratios are bounded below by 1 - epsilon_low; 1 leaves no lower bound."""
    epsilon_high: float = Field(0.28, ge=0)
    """Ratios are bounded above by 1 + epsilon_high. More room above than below keeps rare tokens
    alive (clip-higher of DAPO)."""
    dual_clip: float | None = Field(None, gt=1)
    """Where A < 0, a ratio above this gets no gradient: a token that became likelier though it was
    bad is otherwise pushed down without bound. None: no such bound."""
    aggregation: Literal["sample", "token", "constant"] = "token"
    """What counts the same: `sample` every rollout, which makes the tokens of long ones count less;
    `token` every token; `constant` every token too, divided by a fixed length, so that a step with
    fewer tokens is a smaller step."""
    constant_length: int | None = Field(None, ge=1)
    """For `constant`: tokens of a rollout at most."""
    beta: float = Field(0.0, ge=0)
    """KL coefficient; 0 needs no reference model."""
    kl: Estimate = "k3"
    """How the divergence in the loss is estimated; the expected gradient is exact for each."""
    kl_ratio: Literal["token", "policy"] = "token"
    """The ratio that k1 and k3 are multiplied by: the token's own, which makes the gradient exact,
    or the one of the policy term, as in TRL. They differ under a sequence ratio only."""
    kl_in_reward: bool = False
    """Leave the divergence out of the loss, because it was taken off the rewards
    (`penalized_rewards`). For comparison."""
    entropy_bonus: float = Field(0.0, ge=0)
    """Subtracted from the loss per nat of mean entropy of the sampled tokens' distributions."""
    log_ratio_limit: float = Field(20.0, gt=0, le=80)
    """Log-ratios are clamped to this many nats on both sides; beyond it there is no gradient.
    exp(89) is infinite in float32, and one infinite token makes every weight nan."""
    kl_limit: float = Field(10.0, gt=0, le=20)
    """The divergence of a token is clamped to this many nats on both sides; a token further away is
    pulled back as one at the limit."""

    @property
    def beta_in_loss(self) -> float:
        """The price of divergence that the loss charges."""
        return 0.0 if self.kl_in_reward else self.beta

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        if (self.aggregation == "constant") != (self.constant_length is not None):
            raise ValueError(
                f"aggregation={self.aggregation!r} with constant_length={self.constant_length}:"
                " give a length with 'constant', and only there."
            )
        if self.dual_clip is not None and self.surrogate == "cispo":
            raise ValueError(
                "dual_clip has no meaning for 'cispo', which cuts no gradient: drop it."
            )
        if self.dual_clip is not None and self.dual_clip <= 1 + self.epsilon_high:
            raise ValueError(
                f"dual_clip > 1 + epsilon_high does not hold: {self.dual_clip:g} <="
                f" {1 + self.epsilon_high:g}; raise dual_clip, 3 is usual."
            )
        if self.kl_in_reward and not self.beta:
            raise ValueError("kl_in_reward without beta takes nothing off: set beta, or drop it.")
        return self


LOSSES: Final[Mapping[str, Mapping[str, Any]]] = {
    # arXiv:2402.03300: per-rollout means.
    "grpo": {"epsilon_high": 0.2, "aggregation": "sample"},
    # arXiv:2503.14476: clip-higher, all tokens of the step count the same.
    "dapo": {"epsilon_high": 0.28, "aggregation": "token"},
    # arXiv:2503.20783: a constant divisor; the length has to be said.
    "dr_grpo": {"epsilon_high": 0.2, "aggregation": "constant"},
    # arXiv:2507.18071: sequence ratios stay very close to 1, hence the narrow bounds.
    "gspo": {
        "ratio": "sequence",
        "old_log_probs": "computed",
        "epsilon_low": 3e-4,
        "epsilon_high": 4e-4,
        "aggregation": "sample",
    },
    # arXiv:2506.13585, which has no lower bound; weights up to 5 as in arXiv:2510.13786.
    "cispo": {"surrogate": "cispo", "epsilon_low": 1.0, "epsilon_high": 4.0},
}
"""By name: what a paper's loss sets. Where TRL writes `epsilon_high=5` for CISPO, meaning the bound
itself, it is 4 here: the bound is 1 + epsilon_high throughout. TRL's `bnpo` is "dapo" with each
micro-batch divided by its own tokens."""


def loss_config(name: str, **changes: Any) -> LossConfig:
    """The loss of that name, with changes.

    Args:
        name: A key of `LOSSES`.
        changes: Fields of `LossConfig`.

    Raises:
        ConfigurationError: There is no such loss, or the changes do not fit.
    """
    if name not in LOSSES:
        raise ConfigurationError(f"there is no loss {name!r}; choose among {', '.join(LOSSES)}.")
    try:
        return LossConfig.model_validate({**LOSSES[name], **changes})
    except ValidationError as problem:
        raise ConfigurationError(
            f"this loss is refused: {refused_fields(problem, name)}."
        ) from None


# The KL divergence from a reference: three estimates per token, and the gradient of each.
#
# With d = log pi - log pi_ref at a sampled token and rho = pi / pi_old:
#
#     k1 = d                     unbiased, may be negative
#     k2 = d^2 / 2               biased, never negative
#     k3 = e^-d + d - 1          unbiased, never negative
#
# (Schulman 2020, "Approximating KL divergence"). What trains is the gradient, and that is another
# matter: differentiating a sampled value forgets that the samples depend on the policy too. The
# expected gradient of k1 as it is is zero, that of k3 is some other vector, that of k2 is exact.
# Times rho, which is 1 in value when the batch is fresh but carries a gradient, k1 and k3 become
# exact, and stay so on an old batch. So here k2 is taken as it is and the others times rho. (Of
# each token's own divergence: how a token changes later ones is left out, as everywhere.)
#
# The penalty belongs into the loss. Subtracted from the reward it passes through the group's
# statistics and the clipping; that form is kept for comparison (`penalized_rewards`).


def divergence(
    estimate: Estimate, logprobs: Tensor, ref_logprobs: Tensor, ratio: Tensor, limit: float
) -> Tensor:
    """The KL penalty of each token, to be averaged over tokens sampled by the old policy.

        k1:  rho d                  gradient  rho (d + 1) grad log pi
        k2:  d^2 / 2                          d grad log pi
        k3:  rho (e^-d + d - 1)               rho d grad log pi

    d is clamped to the limit on both sides, in the values and in these gradients: a token further
    from the reference is pulled back as one at the limit. Clamping before differentiating would
    leave rho k3 with the gradient of rho alone, which pushes the token away, 22,000 times as hard
    at 10 nats; and without a limit e^-d is infinite where the policy is 89 nats below its
    reference, after which every weight is nan.

    Args:
        estimate: Which one.
        logprobs: [N, T] float, under the policy, in nats, with gradient.
        ref_logprobs: [N, T] float, under the reference.
        ratio: [N, T] or [N, 1] float, rho with gradient; k2 has no use for it.
        limit: In nats. In float32 the two parts of the gradient of k3, near e^limit each, cancel to
            a thousandth of a nat at 10, and not at all at 20.

    Returns:
        [N, T], in nats.
    """
    gap = (logprobs - ref_logprobs).detach().clamp(min=-limit, max=limit)
    movement = logprobs - logprobs.detach()  # 0, with the gradient of log pi
    if estimate == "k1":
        return ratio * (gap + movement)
    if estimate == "k2":
        return gap**2 / 2 + gap * movement
    value = torch.exp(-gap) + gap - 1
    return ratio * (value + (gap - value) * movement)


def penalized_rewards(
    rewards: Tensor,
    old_logprobs: Tensor,
    ref_logprobs: Tensor,
    mask: Tensor,
    *,
    beta: float,
    limit: float,
) -> Tensor:
    """Rewards less a KL penalty: the reward of a rollout minus beta times its divergence.

        r'_i = r_i - beta sum_t clamp(log pi_old - log pi_ref, -limit, limit)

    In expectation its gradient is that of the whole rollout's divergence, later tokens included.
    To be called before advantages are estimated, with `kl_in_reward` set in the `LossConfig`.

    Papers: Ouyang et al. 2022, arXiv:2203.02155; Ahmadian et al. 2024, arXiv:2402.14740.

    Args:
        rewards: [N] float, nan where unscored.
        old_logprobs: [N, T] float, under the policy that sampled.
        ref_logprobs: [N, T] float, under the reference.
        mask: [N, T], 1 at the tokens that the policy sampled.
        beta: KL coefficient, in units of reward per nat.
        limit: Of one token's part, in nats.

    Returns:
        [N], nan where it was; without gradient.
    """
    gaps = (old_logprobs - ref_logprobs).detach().clamp(min=-limit, max=limit)
    moved = torch.where(mask.bool(), gaps, torch.zeros_like(gaps)).sum(dim=1)
    return rewards - (beta * moved).to(rewards.dtype)


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
    per_token = _where(counted, advantages if advantages.dim() == 2 else advantages[:, None])
    moved = log_ratio(logprobs - before, counted, config)
    ratio = limited_exp(moved, config)
    value = aggregate(surrogate(ratio, logprobs, per_token, config), counted, totals, config)
    metrics = {"policy_loss": value}
    metrics |= _ratio_metrics(moved, ratio, per_token, counted, totals, config)
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


def surrogate(ratio: Tensor, logprobs: Tensor, advantages: Tensor, config: LossConfig) -> Tensor:
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
        advantages: [N, T] float.
        config: Its `surrogate`, bounds and `dual_clip`.

    Returns:
        [N, T].
    """
    bounded = ratio.clamp(min=1 - config.epsilon_low, max=1 + config.epsilon_high)
    if config.surrogate == "cispo":
        return -bounded.detach() * advantages * logprobs
    capped = ratio if config.dual_clip is None else ratio.clamp(max=config.dual_clip)
    return -torch.minimum(capped * advantages, bounded * advantages)


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
    values = _where(counted, per_token)
    if config.aggregation == "sample":
        each = values.sum(dim=1) / counted.sum(dim=1).clamp(min=1)
        return each.sum() / (totals.rollouts or 1)
    if config.aggregation == "token":
        return values.sum() / (totals.tokens or 1)
    return values.sum() / ((totals.rollouts or 1) * (config.constant_length or 1))


def _ratio_metrics(
    moved: Tensor,
    ratio: Tensor,
    advantages: Tensor,
    counted: Tensor,
    totals: Totals,
    config: LossConfig,
) -> dict[str, Tensor]:
    low, high = ratio < 1 - config.epsilon_low, ratio > 1 + config.epsilon_high
    if config.surrogate == "clip":
        low, high = low & (advantages < 0), high & (advantages > 0)
    shares = {
        "ratio": ratio,
        "clip_low": low,
        "clip_high": high,
        "log_ratio_limited": moved.abs() > config.log_ratio_limit,
    }
    if config.dual_clip is not None:
        shares["clip_dual"] = (ratio > config.dual_clip) & (advantages < 0)
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
