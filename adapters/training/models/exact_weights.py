"""Float32 weights in the bytes of a half-precision model, and rounding that keeps the mean.

A bfloat16 number is the upper half of a float32 number. A model that computes in bfloat16 has eight
bits of a weight, and an update of a thousandth of it would be rounded away; so the bits that are
missing are kept beside the model, and both together are the float32 weight: 4 bytes, where a second
copy in float32 makes 6. Every weight comes back to the bit (`join` after `divide`).

Where less is kept, numbers are rounded up or down by chance, with the chance that keeps their mean:
many small changes then add up to what they are, though each is below what the format holds. The
chances come from a generator that is seeded by name, so a run that is repeated rounds the same way.
What is not finite stays what it is, since the guards look for it.
"""

from __future__ import annotations

import hashlib
from typing import Final

import torch
from torch import Tensor

HALF: Final = 16  # bits that bfloat16 lacks
_HALFWAY: Final = 2**15  # between two neighbours: one more than an int16 holds


class Chances:
    """Uniform random bits that depend on names alone.

    Args:
        seed: Of the run.
        device: Where the bits are needed.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._seed = seed
        self._generator = torch.Generator(device)

    def named(self, *place: int) -> Chances:
        """The same, at the beginning of the stream of a name, such as update and parameter."""
        name = f"toolgym-rounding-{self._seed}-{'-'.join(map(str, place))}"
        digest = hashlib.sha256(name.encode()).digest()
        self._generator.manual_seed(int.from_bytes(digest[:8], "big") >> 1)
        return self

    def bits(self, like: Tensor, count: int) -> Tensor:
        """Integers from 0 to 2^count - 1, int32, for each number of a flat tensor."""
        # Four at a time, which is four times as fast.
        words = torch.empty((len(like) + 3) // 4, dtype=torch.int64, device=like.device)
        words.random_(-(2**63), None, generator=self._generator)
        return words.view(torch.int16)[: len(like)].int().bitwise_and_(2**count - 1)


def rounded(values: Tensor, chances: Chances, bits: int = HALF) -> Tensor:
    """Float32 numbers without their last bits, rounded up or down by chance; [n] float32.

    Args:
        values: [n] float32.
        bits: How many; 16 leave what bfloat16 holds.
    """
    whole = values.view(torch.int32)
    chance = chances.bits(values, bits).masked_fill_(~values.isfinite(), 0)
    return chance.add_(whole).bitwise_and_(-(2**bits)).view(torch.float32)


def divide(values: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest bfloat16 of float32 numbers, and the bits that are missing, as int16.

    Halfway between two the larger is the nearest one, so that what is missing fits.
    """
    near = values.bfloat16().view(torch.int16).int()
    missing = values.view(torch.int32) - (near << HALF)
    up = ((missing == _HALFWAY) & values.isfinite()).int()
    near, missing = near + up, missing - (up << HALF)
    return near.short().view(torch.bfloat16), missing.short()


def join(weights: Tensor, missing: Tensor) -> Tensor:
    """The float32 numbers of `divide`."""
    whole = (weights.view(torch.int16).int() << HALF) + missing.int()
    return whole.view(torch.float32)
