"""What one statement may use, and the meter that ends it when that is used up.

The budget is counted in steps of SQLite's virtual machine, from the statement's start: it ends at
the same place wherever file and SQLite version are the same, however slow the machine. The clock is
only the net behind it, and what the clock stops is told apart: it may go well the next time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from sqlgym.turnstile import LONG, TURNSTILE

STEPS_PER_TICK = 1_000
"""Virtual-machine steps between two looks at the meter."""


@dataclass(frozen=True)
class Limits:
    """What one statement may use. The defaults are far above any honest question's need."""

    steps: int = 20_000_000
    """Virtual-machine steps; about a second of work. The same everywhere, unlike a clock."""
    seconds: float = 10.0
    """Wall-clock time: the net under `steps`, for a machine or a function that is very slow."""
    rows: int = 10_000
    """Rows fetched; a result with more is marked as truncated."""
    result_bytes: int = 8_000_000
    """Memory of the rows fetched, in bytes; a result with more is marked as truncated."""
    value_bytes: int = 100_000
    """Length of one text or blob, in bytes."""
    sql_bytes: int = 100_000
    """Length of the statement in UTF-8, in bytes."""
    expression_depth: int = 500
    """Depth of an expression; also the number of terms in a chain of AND or OR."""
    compound_terms: int = 100
    """Parts of a UNION, INTERSECT or EXCEPT."""
    names: int = 20_000
    """Tables, columns and functions that it names, its views and table expressions written out:
    what compiling it costs."""
    calls: int = 200
    """Function calls written in it, its views and table expressions written out."""
    like_pattern_bytes: int = 256
    """Length of a LIKE or GLOB pattern, whose cost grows with it, in bytes."""
    heap_bytes: int = 1 << 29
    """Memory of the SQLite library in this process, in bytes; it only ever gets lower."""


class Meter:
    """Counts ticks of one statement and ends it when its budget or its time is spent.

    Attributes:
        ticks: Thousands of virtual-machine steps so far.
        stopped: None, `too_many_steps` or `deadline`: why the statement was ended.
    """

    def __init__(self, limits: Limits) -> None:
        self._budget = limits.steps // STEPS_PER_TICK
        self._seconds = limits.seconds
        self.ticks = 0
        self.stopped: str | None = None
        self._end = 0.0

    def start(self) -> None:
        """Begin a new statement."""
        self.ticks = 0
        self.stopped = None
        self._end = time.monotonic() + self._seconds

    def __call__(self) -> int:
        """SQLite's progress handler: nonzero ends the statement."""
        self.ticks += 1
        if self.ticks == LONG:
            TURNSTILE.leave()
        if self.ticks > self._budget:
            self.stopped = "too_many_steps"
        elif time.monotonic() > self._end:
            self.stopped = "deadline"
        return self.stopped is not None
