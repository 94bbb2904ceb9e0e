"""Float32 weights in the bytes of a bfloat16 model.

A bfloat16 number is the upper half of a float32 number. A model that computes in bfloat16 has eight
bits of a weight, and an update of a thousandth of it would be rounded away; so the bits that are
missing are kept beside the model, and both together are the float32 weight: 4 bytes, where a second
copy in float32 makes 6. Every weight comes back to the bit (`join` after `divide`).
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

_HALF: Final = 16  # bits that bfloat16 lacks
_HALFWAY: Final = 2**15  # between two neighbours: one more than an int16 holds


def divide(values: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest bfloat16 of float32 numbers, and the bits that are missing, as int16.

    Halfway between two the larger is the nearest one, so that what is missing fits.
    """
    near = values.bfloat16().view(torch.int16).int()
    missing = values.view(torch.int32) - (near << _HALF)
    up = ((missing == _HALFWAY) & values.isfinite()).int()
    near, missing = near + up, missing - (up << _HALF)
    return near.short().view(torch.bfloat16), missing.short()


def join(weights: Tensor, missing: Tensor) -> Tensor:
    """The float32 numbers of `divide`."""
    whole = (weights.view(torch.int16).int() << _HALF) + missing.int()
    return whole.view(torch.float32)
