"""Whoever looks on while a run goes through its phases: the command line, a test, nobody.

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
"""Called with how much of a phase is done, and a word on how it stands."""


class Watch(Protocol):
    """Is told of each phase."""

    def phase(self, title: str, total: int) -> AbstractContextManager[Advance]:
        """A phase of `total` units begins; it ends with the context."""
        ...


class Silent:
    """Looks away."""

    @contextmanager
    def phase(self, title: str, total: int) -> Iterator[Advance]:
        """Nothing is shown."""
        yield lambda done, note: None


# How much memory a run has held at most, for whoever has to fit it onto a machine.
#
# On a GPU that is what its tensors took; elsewhere what the process took, which Linux tells in KiB
# and macOS in bytes.


def peak_memory(device: torch.device) -> float:
    """The most that the process, or its GPU, has held, in MiB."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held / (2**20 if sys.platform == "darwin" else 2**10)
