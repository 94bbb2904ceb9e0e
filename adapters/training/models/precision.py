"""A model in float32 for a while: what is measured of it is then no matter of rounding.

Whether a model computes the same in two ways is asked before training begins. The rounding of half
precision is larger than what a wrong position changes, and turns the choice of experts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

_HALF = (torch.float16, torch.bfloat16)


@contextmanager
def in_float32(model: PreTrainedModel) -> Iterator[None]:
    """A context in which weights are float32 while they are used; the model's own come back.

    One module at a time, since a float32 copy of a large model may not fit.
    """
    handles = [
        handle
        for module in model.modules()
        if (half := [t for t in _own_tensors(module) if t.dtype in _HALF])
        for handle in _widening(module, half)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _own_tensors(module: nn.Module) -> list[Tensor]:
    return [*module.parameters(recurse=False), *module.buffers(recurse=False)]


def _widening(module: nn.Module, half: Sequence[Tensor]) -> Iterator[Any]:
    """The hooks that make a module's own tensors float32 before it computes, and not after it."""
    originals = [tensor.data for tensor in half]

    def widen(*_: Any) -> None:
        for tensor, original in zip(half, originals, strict=True):
            tensor.data = original.float()

    def narrow(*_: Any) -> None:
        for tensor, original in zip(half, originals, strict=True):
            tensor.data = original

    yield module.register_forward_pre_hook(widen)
    yield module.register_forward_hook(narrow, always_call=True)
