"""How much memory a run has held at most, for whoever has to fit it onto a machine.

On a GPU that is what its tensors took; elsewhere what the process took, which Linux tells in KiB
and macOS in bytes.
"""

from __future__ import annotations

import resource
import sys

import torch


def peak_memory(device: torch.device) -> float:
    """The most that the process, or its GPU, has held, in MiB."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held / (2**20 if sys.platform == "darwin" else 2**10)
