"""Progress events of a run's phases, and their listeners: the command line's bars, a test, nobody.

The phases report here and nowhere else, so that nothing below the command line prints. `Silent` is
the former name of `NoProgress`, which version 0.1.0 documents and which goes on to work.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import torch

from toolgym.runs.files import object_text, read_object, replace_file

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


class TimedProgress:
    """Another listener, and a file with the seconds that the phases took, by title.

    A phase that a process was killed in has what came after it was taken up again; what lies inside
    of another phase is counted for itself and not for that one.

    Args:
        inner: It is told everything.
        file: One JSON object; what it holds is added to.
        clock: Seconds that only rise.
    """

    def __init__(
        self, inner: ProgressListener, file: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._inner, self._file, self._clock = inner, file, clock
        self._inside: list[float] = []

    @property
    def seconds(self) -> dict[str, float]:
        """By title, of the phases that were left so far."""
        return read_object(self._file) if self._file.is_file() else {}

    @contextmanager
    def phase(self, title: str, total: int) -> Iterator[Advance]:
        """The inner listener's phase, and its time."""
        began = self._clock()
        self._inside.append(0.0)
        try:
            with self._inner.phase(title, total) as advance:
                yield advance
        finally:
            passed = self._clock() - began
            own = passed - self._inside.pop()
            if self._inside:
                self._inside[-1] += passed
            known = self.seconds
            known[title] = round(known.get(title, 0.0) + own, 1)
            replace_file(self._file, [object_text(known)])


Silent = NoProgress
"""The documented name of `NoProgress` in version 0.1.0."""


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
