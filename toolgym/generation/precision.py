"""Float32 computation with a model whose weights are in half precision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

_HALF = (torch.float16, torch.bfloat16)


@contextmanager
def in_float32(model: nn.Module) -> Iterator[None]:
    """Context manager in which a model computes in float32. The model's weights are not changed.

    Use this context manager to compare two computations of logits. In half precision, the rounding
    error exceeds the effect of an incorrect position, and changes which experts a
    mixture-of-experts model selects. One module is converted at a time, since a float32 copy of a
    large model may not fit in memory.
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
    """Yield the hooks that convert a module's own tensors to float32 while it computes."""
    originals = [tensor.data for tensor in half]

    def widen(*_: Any) -> None:
        for tensor, original in zip(half, originals, strict=True):
            tensor.data = original.float()

    def narrow(*_: Any) -> None:
        for tensor, original in zip(half, originals, strict=True):
            tensor.data = original

    yield module.register_forward_pre_hook(widen)
    yield module.register_forward_hook(narrow, always_call=True)
