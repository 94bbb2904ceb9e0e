"""Chooses the precision that a machine computes fast in, and lends a model float32.

Half precision is for machines with instructions for it. Without them PyTorch multiplies matrices of
bfloat16 at 1.2 billion operations a second, on a core with AVX2 that reaches 63 billion in float32
(PyTorch 2.13, 1,024 x 576 by 576 x 1,536).

Whether a model computes the same in two ways is checked in float32, since the rounding of half
precision is larger than the effect of a wrong position, and changes the choice of experts.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

_HALF = (torch.float16, torch.bfloat16)
_INSTRUCTIONS = ("avx512_bf16", "amx_bf16")


def multiplies_bfloat16() -> bool:
    """Whether the GPU, or without one the processor, has instructions for matrices of bfloat16.

    Unknown counts as no, since float32 is fast everywhere.
    """
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if platform.machine().lower() in ("aarch64", "arm64"):
        operations = torch.ops.mkldnn
        return bool(getattr(operations, "_is_mkldnn_bf16_supported", lambda: False)())
    found: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # not in old versions
    return any(found.get(name, False) for name in _INSTRUCTIONS)


def fast_dtype() -> Literal["float32", "bfloat16"]:
    """The data type that this machine computes fastest in."""
    return "bfloat16" if multiplies_bfloat16() else "float32"


@contextmanager
def in_float32(model: PreTrainedModel) -> Iterator[None]:
    """A context in which a forward pass computes in float32; the weights are unchanged afterwards.

    Weights are converted module by module, since a float32 copy of a large model may not fit.
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
    """Hooks that make a module's own tensors float32 only while it computes."""
    originals = [tensor.data for tensor in half]

    def widen(*_: Any) -> None:
        for tensor, original in zip(half, originals, strict=True):
            tensor.data = original.float()

    def narrow(*_: Any) -> None:
        for tensor, original in zip(half, originals, strict=True):
            tensor.data = original

    yield module.register_forward_pre_hook(widen)
    yield module.register_forward_hook(narrow, always_call=True)
