"""Progress events of a run's phases, and their listeners: the command line's bars, a test, nobody.

The phases report here and nowhere else, so that nothing below the command line prints.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import torch

Advance = Callable[[int, str], None]
"""Callback with the units of a phase done so far, and a note on its state."""


class ProgressListener(Protocol):
    """Receiver of the progress events of each phase."""

    def phase(self, title: str, total: int) -> AbstractContextManager[Advance]:
        """A context that lasts as long as a phase of `total` units."""
        ...


class NoProgress:
    """A `ProgressListener` that ignores every event."""

    @contextmanager
    def phase(self, title: str, total: int) -> Iterator[Advance]:
        """A context whose callback does nothing."""
        yield lambda done, note: None


# Peak memory of a run, which decides on what machine it fits.
#
# On a GPU that is the memory of its tensors; elsewhere that of the process, which Linux reports in
# KiB and macOS in bytes.


def peak_memory(device: torch.device) -> float:
    """Peak memory of the GPU's tensors, or else of the process, in MiB."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
