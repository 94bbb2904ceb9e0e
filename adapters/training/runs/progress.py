"""Progress of the phases of a run, shown as bars on the command line, and peak memory use."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import torch

Advance = Callable[[int, str], None]
"""Callback with the number of finished units of a phase and a note on its state."""


class ProgressListener(Protocol):
    """A listener for the progress of each phase."""

    def phase(self, title: str, total: int) -> AbstractContextManager[Advance]:
        """Return a context manager for a phase of `total` units of work."""
        ...


class NoProgress:
    """A `ProgressListener` that shows nothing."""

    @contextmanager
    def phase(self, title: str, total: int) -> Iterator[Advance]:
        """Return a context manager whose callback does nothing."""
        yield lambda done, note: None


def peak_memory(device: torch.device) -> float:
    """Return the peak memory in MiB of the tensors on the GPU, or else of the process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in KiB on Linux, in bytes on macOS
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
