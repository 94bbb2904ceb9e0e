"""A user who interrupts a training run.

It stands where the progress bars of `toolgym train` do, so the interrupt comes from within a phase,
at a step that the test chose, as a key pressed at a terminal does.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from adapters.training.runs.progress import Advance


class Interrupt:
    """Presses Ctrl-C when a phase has come to a step."""

    def __init__(self, title: str, step: int) -> None:
        self.title, self.step = title, step

    @contextmanager
    def phase(self, title: str, total: int) -> Iterator[Advance]:
        def advance(done: int, note: str) -> None:
            if title == self.title and done >= self.step:
                raise KeyboardInterrupt

        yield advance
