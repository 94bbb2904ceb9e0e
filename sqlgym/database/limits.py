"""Limits of one statement, and the meter that ends it when they are reached.

The budget is counted in steps of SQLite's virtual machine, from the statement's start: it ends at
the same place wherever file and SQLite version are the same, however slow the machine. The clocks
are only the net behind it, and what they stop is told apart: it may go well the next time. So is
what memory stops.
"""

from __future__ import annotations

import functools
import sqlite3
import statistics
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from functools import partial
from itertools import repeat

from sqlgym.database.memory import LANE, SHARE, memory_used
from sqlgym.database.turnstile import LONG, TURNSTILE
from toolgym.errors import ConfigurationError

STEPS_PER_TICK = 1_000
"""Virtual-machine steps between two looks at the meter."""
PARTS = 20
"""Looks at the clock within a tick, for a statement whose single steps may be long."""
_UNSEEN = 0.05
"""Seconds that a statement may run before its processor time is looked at."""
_LEAST = 0.5
"""Seconds of the processor that any statement may use, however few its steps."""
_MEASURED = 200
"""Ticks that are measured to know this machine, five times."""


@dataclass(frozen=True)
class Limits:
    """Limits of one statement. The defaults are far above any honest question's need."""

    steps: int = 20_000_000
    """Virtual-machine steps; about a second of work. The same everywhere, unlike a clock."""
    slowness: float = 2.75
    """Processor time, as a multiple of what so many plain steps take on this machine: the net
    under `steps`, for single steps that are slow."""
    seconds: float = 10.0
    """Wall-clock time, but for what it waits for its neighbours: the last net."""
    memory_bytes: int = 96 << 20
    """Memory that it may take beyond its result, in bytes."""
    rows: int = 10_000
    """Rows fetched; a result with more is marked as truncated."""
    result_bytes: int = 8_000_000
    """Memory of the rows fetched, in bytes; a result with more is marked as truncated."""
    columns: int = 250
    """Columns of a result, terms of GROUP BY or ORDER BY; more where the file has wide tables."""
    value_bytes: int = 100_000
    """Length of one text or blob, in bytes."""
    sql_bytes: int = 100_000
    """Length of the statement in UTF-8, in bytes."""
    expression_depth: int = 500
    """Depth of an expression; also the number of terms in a chain of AND or OR."""
    compound_terms: int = 100
    """Parts of a UNION, INTERSECT or EXCEPT."""
    written_out: int = 500_000
    """Words that it holds, its views and table expressions written out wherever they are named; a
    function call counts as many."""
    names: int = 20_000
    """Tables, columns and functions that it names, its views and table expressions written out:
    what compiling it costs."""
    calls: int = 200
    """Function calls written in it, its views and table expressions written out."""
    like_pattern_bytes: int = 256
    """Length of a LIKE or GLOB pattern, whose cost grows with it, in bytes."""
    heap_bytes: int = 2 << 30
    """Memory of the SQLite library in this process, in bytes, the user's own connections included;
    it only ever gets lower. The belt over `memory_bytes`; 0 leaves it out."""

    @classmethod
    def of(cls, limits: Limits | Mapping[str, float] | None) -> Limits:
        """Read limits from a mapping by their names; None stands for the defaults.

        Raises:
            ConfigurationError: A name is unknown, or a limit is not a positive number.
        """
        if limits is None or isinstance(limits, Limits):
            return limits or cls()
        names = [field.name for field in fields(cls)]
        for name, value in limits.items():
            if name not in names:
                raise ConfigurationError(f"Unknown limit {name!r}. They are {', '.join(names)}.")
            if not isinstance(value, int | float) or value <= 0:
                raise ConfigurationError(f"The limit {name!r} must be positive, got {value!r}.")
        more = max(1.0, limits.get("steps", cls.steps) / cls.steps)
        return cls(**{"seconds": cls.seconds * more, **limits})  # type: ignore[arg-type]


class Meter:
    """Counts ticks of one statement and ends it when its budget, time or memory is spent.

    Attributes:
        ticks: Thousands of virtual-machine steps so far.
        stopped: None, `too_many_steps`, `deadline` or `too_much_memory`: why it was ended.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._budget = limits.steps // STEPS_PER_TICK
        self._most = max(0, limits.memory_bytes - SHARE)
        self._unseen = min(_UNSEEN, limits.seconds)
        self._share = min(SHARE, limits.memory_bytes)
        self.ticks = 0
        self.stopped: str | None = None
        self._parts = 0
        self._before = self._calm = 0
        self._end = self._next_look = 0.0
        self._processor: float | None = None

    def start(self) -> None:
        """Begin a new statement."""
        self.ticks = self._parts = 0
        self.stopped = self._processor = None
        now = time.monotonic()
        self._end = now + self._limits.seconds
        self._next_look = now + self._unseen
        self._before = memory_used()
        self._calm = self._before + self._share

    def finish(self) -> None:
        """The statement is over; to be called whatever its end was."""
        if self.ticks:
            LANE.end(self)

    def __call__(self) -> int:
        """SQLite's progress handler: nonzero ends the statement."""
        self.ticks += 1
        if self.ticks <= LONG:
            self._proves_long()
        if self.ticks > self._budget:
            self.stopped = "too_many_steps"
        else:
            if LANE.holder is not None or memory_used() > self._calm:
                self._look_at_memory()
            if time.monotonic() > self._next_look:
                self._look_at_clocks()
        return self.stopped is not None

    def part(self) -> int:
        """The progress handler where a tick has `PARTS` looks at the clock."""
        self._parts += 1
        if self._parts == 1:
            self._processor = time.thread_time()
        if self._parts % PARTS == 0:
            return self()
        if time.monotonic() > self._next_look:
            self._look_at_clocks()
        return self.stopped is not None

    def grown(self) -> int:
        """By how many bytes SQLite's memory has grown since the statement's start."""
        return memory_used() - self._before

    def _proves_long(self) -> None:
        if self.ticks == 1:
            LANE.begin(self)
        if self.ticks == LONG:
            TURNSTILE.leave()

    def _look_at_memory(self) -> None:
        """Go into the lane, wait for who is in it, or end where too much was taken inside."""
        if LANE.holder is self:
            if memory_used() > self._calm:
                self.stopped = "too_much_memory"
            return
        TURNSTILE.leave()
        began = time.monotonic()
        LANE.wait()
        if memory_used() > self._calm:
            LANE.enter(self)
            self._calm = memory_used() + self._most
        waited = time.monotonic() - began
        self._end += waited
        self._next_look += waited

    def _look_at_clocks(self) -> None:
        """The processor's clock cannot have gone further than the one on the wall."""
        now = time.monotonic()
        self._processor = self._processor or time.thread_time()
        plain = self._limits.steps / STEPS_PER_TICK * seconds_per_tick()
        left = max(_LEAST, self._limits.slowness * plain)
        left += self._processor - time.thread_time()
        if now > self._end or left < 0:
            self.stopped = "deadline"
        self._next_look = min(self._end, now + max(left, 0.001))


@functools.cache
def seconds_per_tick() -> float:
    """Processor time of a thousand plain steps on this machine; measured once, in milliseconds."""
    sql = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    times = []
    with closing(sqlite3.connect(":memory:")) as connection:
        for _ in range(5):
            go_on = partial(next, repeat(0, _MEASURED), 1)
            connection.set_progress_handler(go_on, STEPS_PER_TICK)
            began = time.thread_time()
            try:
                connection.execute(sql).fetchall()
            except sqlite3.OperationalError:  # that is how it ends
                times.append((time.thread_time() - began) / _MEASURED)
    return statistics.median(times)
