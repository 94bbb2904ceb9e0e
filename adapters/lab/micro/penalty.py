"""The divergence from a reference, differentiated as it is written: the way it is usually done.

`adapters.reference.divergence` makes the expected gradient of every estimate exact. Here are the
two that are met in the field as they are, for comparison, with d = log pi - log pi_ref:

    k1 = d                gradient  grad log pi, which is 0 in expectation: no anchor at all
    k3 = e^-d + d - 1               (1 - e^-d) grad log pi, that of another divergence

Papers: k3 so in GRPO, Shao et al. 2024, arXiv:2402.03300.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from adapters.reference.loss_config import LossConfig
from adapters.reference.losses import Totals, aggregate

Plain = Literal["k1", "k3"]


def plain_penalty(
    estimate: Plain, logprobs: Tensor, ref_logprobs: Tensor, mask: Tensor, config: LossConfig
) -> Tensor:
    """The divergence of a batch, in nats: a scalar with gradient.

    Args:
        estimate: Which one.
        logprobs: [N, T] float, under the policy, with gradient.
        ref_logprobs: [N, T] float, under the reference.
        mask: [N, T], 1 at the tokens that the policy sampled.
        config: Its aggregation, and the limit of a token's d.
    """
    limit = config.kl_limit
    gap = (logprobs - ref_logprobs).clamp(min=-limit, max=limit)
    each = gap if estimate == "k1" else torch.exp(-gap) + gap - 1
    return aggregate(each, mask.bool(), Totals.of(mask), config)
