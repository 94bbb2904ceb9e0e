"""Group and batch statistics of rewards: deviations from means, and standard deviations.

A group is given by a number per rollout, and its members need not stand together. Each function
works on an N x N membership mask, so nothing is sorted, no order of addition depends
on a device's scheduling, and a rollout that a fault left unscored drops out of every sum.

Where all rewards are equal, every deviation is exactly 0 here, not the rounding of a mean,
since divided by a small deviation such a rest would be an advantage, and an update would follow
where there is nothing to learn.

Where several processes share a batch, gather rewards and groups first: statistics of a part are
other statistics.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import Tensor

STD_EPS: Final = 1e-4
"""Added to every standard deviation that divides, as TRL adds it."""
STD_FLOOR: Final = 0.1
"""The least that a whole batch is divided by. Once nearly every rollout is right, rewards differ by
the cost of a call, .01: without the floor that would become an advantage of full size."""


def scored_mask(rewards: Tensor, scored: Tensor | None) -> Tensor:
    """The mask of the scored rollouts.

    Args:
        rewards: [N] float; anything where unscored, usually nan.
        scored: [N] bool, or None: those with a finite reward.

    Returns:
        [N] bool.
    """
    return rewards.isfinite() if scored is None else scored.bool()


def zero_unless(counted: Tensor, values: Tensor) -> Tensor:
    """The values with 0 where they do not count, since nan times 0 is nan; equal shapes."""
    return torch.where(counted, values, torch.zeros_like(values))


def group_members(groups: Tensor, counted: Tensor) -> Tensor:
    """The membership mask of the groups.

    Args:
        groups: [N] int, equal for the rollouts of one task.
        counted: [N] bool.

    Returns:
        [N, N] bool: row i is True at the counted members of i's group, i among them if it counts.
    """
    return (groups[:, None] == groups[None, :]) & counted[None, :]


def group_lead(values: Tensor, members: Tensor) -> Tensor:
    """Each value less the mean of its group, exactly 0 where all values of the group are equal.

    Args:
        values: [N] float, 0 where nothing counts.
        members: [N, N] bool, from `group_members`.

    Returns:
        [N]; 0 for what does not count.
    """
    table = values[None, :].expand(members.shape)
    mean = zero_unless(members, table).sum(dim=1) / members.sum(dim=1).clamp(min=1)
    highest = table.masked_fill(~members, -math.inf).amax(dim=1)
    lowest = table.masked_fill(~members, math.inf).amin(dim=1)
    return zero_unless(members.diagonal() & (highest > lowest), values - mean)


def group_std(values: Tensor, members: Tensor) -> Tensor:
    """The sample standard deviation (n - 1) of each rollout's group, 0 where n < 2.

    Shapes as for `group_lead`.
    """
    squares = (group_lead(values, members) ** 2)[None, :].expand(members.shape)
    spread = zero_unless(members, squares).sum(dim=1)
    return (spread / (members.sum(dim=1) - 1).clamp(min=1)).sqrt()


def batch_lead(values: Tensor, counted: Tensor, weights: Tensor | None = None) -> Tensor:
    """Each value less the mean of all that count, exactly 0 where all are equal.

    Args:
        values: Any shape, 0 where nothing counts.
        counted: Bool of the same shape.
        weights: How often each value counts, of the same shape; None: once.

    Returns:
        The same shape; 0 for what does not count.
    """
    times = _times(values, counted, weights)
    mean = (values * times).sum() / times.sum().clamp(min=1)
    highest = values.masked_fill(~counted, -math.inf).max()
    lowest = values.masked_fill(~counted, math.inf).min()
    return zero_unless(counted & (highest > lowest), values - mean)


def batch_std(values: Tensor, counted: Tensor, weights: Tensor | None = None) -> Tensor:
    """The sample standard deviation of all that count: a scalar, 0 where fewer than two do.

    Arguments as for `batch_lead`.
    """
    times = _times(values, counted, weights)
    squares = batch_lead(values, counted, weights) ** 2 * times
    return (squares.sum() / (times.sum() - 1).clamp(min=1)).sqrt()


def floored(std: Tensor, floor: float) -> Tensor:
    """The divisor max(std + 1e-4, floor)."""
    return (std + STD_EPS).clamp(min=floor)


def _times(values: Tensor, counted: Tensor, weights: Tensor | None) -> Tensor:
    return (counted if weights is None else zero_unless(counted, weights)).to(values.dtype)
