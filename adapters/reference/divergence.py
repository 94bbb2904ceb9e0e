"""The KL divergence from a reference: three estimates per token, and the gradient of each.

With d = log pi - log pi_ref at a sampled token and rho = pi / pi_old:

    k1 = d                     unbiased, may be negative
    k2 = d^2 / 2               biased, never negative
    k3 = e^-d + d - 1          unbiased, never negative

(Schulman 2020, "Approximating KL divergence"). What trains is the gradient, and that is another
matter: differentiating a sampled value forgets that the samples depend on the policy too. The
expected gradient of k1 as it is is zero, that of k3 is some other vector, that of k2 is exact.
Times rho, which is 1 in value when the batch is fresh but carries a gradient, k1 and k3 become
exact, and stay so on an old batch. So here k2 is taken as it is and the others times rho. (Of each
token's own divergence: how a token changes later ones is left out, as everywhere.)

The penalty belongs into the loss. Subtracted from the reward it passes through the group's
statistics and the clipping; that form is kept for comparison (`penalized_rewards`).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Estimate = Literal["k1", "k2", "k3"]


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
        beta: Price of a nat, in units of reward.
        limit: Of one token's part, in nats.

    Returns:
        [N], nan where it was; without gradient.
    """
    gaps = (old_logprobs - ref_logprobs).detach().clamp(min=-limit, max=limit)
    moved = torch.where(mask.bool(), gaps, torch.zeros_like(gaps)).sum(dim=1)
    return rewards - (beta * moved).to(rewards.dtype)
