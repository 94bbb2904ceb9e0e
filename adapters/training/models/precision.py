"""The precision in which this machine computes fast.

Half precision is for machines that have instructions for it. Without them PyTorch multiplies
matrices of bfloat16 one number after another: 1.2 thousand million operations a second on a core
with AVX2 that makes 63 in float32 (PyTorch 2.13, 1,024 x 576 by 576 x 1,536).
"""

from __future__ import annotations

import platform
from typing import Any, Literal

import torch

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
