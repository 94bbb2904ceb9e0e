"""How the time of a reader grows with the length of a text.

A reader may take four times as long for four times the text, and not much more. Small texts find
the shapes that are worth a long one: every shape is read at 2,000 and 8,000 characters, the slowest
of each at 32,000 and 128,000, and those that are slowest there, or grow fastest, up to 1 MB. A text
that shows growth beyond the limit is reported as soon as it takes long enough to be measured, so a
cubic reader ends the search and not the machine.

Time is the processor's, in one process, and the smallest of several where it seems to be too much.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.growth.shapes import Shape, texts

MOST_GROWTH = 6.0
"""Times the processor time for four times the text."""
WORTH_MEASURING = 0.1
"""Seconds below which a time says nothing."""
LARGEST = 1 << 20
PACKAGES = ("toolgym", "sqlgym", "aflowgym", "adapters")
_SCREENED, _SLOWEST, _STEEPEST = (2_000, 8_000), 10, 6
_PAUSES = (0.0, 0.2, 0.5, 1.0, 2.0)
"""Seconds between the rounds in which a text is measured that seems to grow too steeply."""
_MORE_THAN_PLAIN = 1.5
_NEIGHBOURS = 24
_BUDGET = float(os.environ.get("TOOLGYM_GROWTH_SECONDS", "0.5"))
"""Seconds of processor time for one reader at one length; each shape alone is always tried."""


@dataclass(frozen=True)
class Reader:
    """A function that reads text of a model, of a server or of a stranger's file.

    Attributes:
        name: Where it stands, such as `toolgym.calls.parse_calls`.
        read: Calls it with one text.
        refuses: What it raises, by its documentation, for a text that it cannot take.
        limit: Characters above which it reads no further, if it has such a limit.
        marks: What it looks for in a text.
        before: Beginnings that it takes seriously.
        after: Ends that it waits for.
    """

    name: str
    read: Callable[[str], Any]
    refuses: tuple[type[BaseException], ...] = ()
    limit: int | None = None
    marks: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Growth:
    """One text at two lengths: seconds of processor time for `size / 4` and `size` characters.

    `plain` is what plain linear work grew by at the same time: 4, and more on a busy machine.
    """

    text: str
    size: int
    shorter: float
    longer: float
    plain: float = 4.0

    @property
    def ratio(self) -> float:
        """Times as long for four times the text."""
        return self.longer / max(self.shorter, 1e-9)

    @property
    def is_too_steep(self) -> bool:
        """Whether this is more than linear, beyond what noise and memory explain."""
        most = max(MOST_GROWTH, _MORE_THAN_PLAIN * self.plain)
        return self.longer > WORTH_MEASURING and self.ratio > most

    def __str__(self) -> str:
        return f"{self.size:>9,} {self.longer:8.3f} s  x{self.ratio:5.1f}  {self.text}"


def seconds(reader: Reader, text: str, repetitions: int = 1) -> float:
    """Processor time to read a text, the smallest of the repetitions.

    Python's collector is left out: it goes through whatever is alive in the process.
    """
    best = float("inf")
    for _ in range(repetitions):
        for cache in _caches():
            cache.cache_clear()
        gc.disable()
        begin = time.process_time()
        try:
            with contextlib.suppress(*reader.refuses):
                reader.read(text)
            best = min(best, time.process_time() - begin)
        finally:
            gc.enable()
    return best


@functools.cache
def _caches() -> tuple[Any, ...]:
    """What our modules remember by their arguments: a text is to be read, not looked up."""
    modules = [m for name, m in sys.modules.items() if name.partition(".")[0] in PACKAGES]
    values = [value for module in modules for value in vars(module).values()]
    inner = [each for v in values if isinstance(v, type) for each in vars(v).values()]
    found = {id(v): v for v in (*values, *inner) if callable(getattr(v, "cache_clear", None))}
    return tuple(v for v in found.values() if v is not _caches)


def growth(reader: Reader, shape: Shape, size: int) -> Growth:
    """How the time grows from a quarter of the size to the size; measured again if it matters."""
    longer = seconds(reader, shape.fill(size))
    if longer <= WORTH_MEASURING:
        return Growth(shape.name, size, longer, longer)
    found = Growth(shape.name, size, seconds(reader, shape.fill(size // 4)), longer)
    for pause in _PAUSES:
        if not found.is_too_steep:
            return found
        # Whatever else runs on the machine makes a time longer, and never shorter.
        time.sleep(pause)
        shorter = _of_a_quarter(reader, shape, size // 4)
        longer = min(found.longer, seconds(reader, shape.fill(size)))
        found = Growth(shape.name, size, shorter, longer, _plain_growth(size))
    return found


def _of_a_quarter(reader: Reader, shape: Shape, size: int) -> float:
    """Processor time for a text of about this size, wherever its end is cut.

    A text that is cut in the middle of a word may be refused at once where the next one is read to
    its end, so the slowest of several neighbours counts, and the smallest of three times of that.
    """
    neighbours = [shape.fill(size + more) for more in range(_NEIGHBOURS)]
    slowest = max(neighbours, key=lambda text: seconds(reader, text))
    return seconds(reader, slowest, 3)


def _plain_growth(size: int) -> float:
    """What plain linear work of this size grows by just now, beside whatever shares the caches."""
    longer, shorter = (
        min(_seconds_of_plain_work(length) for _ in range(3)) for length in (size, size // 4)
    )
    return longer / max(shorter, 1e-9)


def _seconds_of_plain_work(length: int) -> float:
    begin = time.process_time()
    sum(map(len, [f"{place}x" for place in range(4 * length)]))
    return time.process_time() - begin


def worst(reader: Reader, slowest: int = _SLOWEST, steepest: int = _STEEPEST) -> Growth:
    """The first text that grows too steeply, or else the slowest of the longest texts.

    Args:
        reader: What is measured.
        slowest: How many of the slowest shapes are read at full length.
        steepest: How many of those that grew fastest are. A slow reader gets as many as `_BUDGET`
            has time for, and at least one of each.
    """
    screened: list[tuple[float, Shape]] = []
    begin = time.process_time()
    every = texts(reader.marks, reader.before, reader.after)
    for shape in sorted(every, key=lambda shape: shape.name != shape.core):  # those alone first
        if time.process_time() - begin > 2 * _BUDGET and shape.name != shape.core:
            break
        found = growth(reader, shape, _SCREENED[0])
        if not found.is_too_steep:
            found = growth(reader, shape, _SCREENED[1])
        if found.is_too_steep:
            return found
        screened.append((found.longer, shape))
    kept = _one_of_each(screened)
    results: list[Growth] = []
    for size, goes_on in _sizes(reader.limit):
        ranked: list[tuple[float, float, Shape]] = []
        begin = time.process_time()
        for place, (before, shape) in enumerate(kept):
            if place > 1 and time.process_time() - begin > _BUDGET:
                break
            found = growth(reader, shape, size)
            if found.is_too_steep:
                return found
            results.append(found)
            ranked.append((found.longer, found.longer / max(before, 1e-5), shape))
        if goes_on:
            kept = _choice(ranked, slowest, steepest)
    return max(results, key=lambda found: found.longer)


def _sizes(limit: int | None) -> Iterator[tuple[int, bool]]:
    """The lengths after screening, and whether the next may drop what was quick at this one."""
    reach = min(limit or LARGEST, LARGEST)
    for size in (32_000, 128_000, LARGEST):
        if size >= reach:
            yield reach, True
            break
        yield size, True
    if reach < LARGEST:
        yield LARGEST, False  # above the reader's own limit


def _one_of_each(screened: Sequence[tuple[float, Shape]]) -> list[tuple[float, Shape]]:
    """Of every repeated thing the combination of beginning and end that took longest."""
    best: dict[str, tuple[float, Shape]] = {}
    for taken, shape in screened:
        if shape.core not in best or best[shape.core][0] < taken:
            best[shape.core] = taken, shape
    return list(best.values())


def _choice(
    ranked: list[tuple[float, float, Shape]], slowest: int, steepest: int
) -> list[tuple[float, Shape]]:
    """The shapes that go on, the steepest and the slowest first."""
    steep = sorted(ranked, key=lambda each: -each[1])[:steepest]
    slow = sorted(ranked, key=lambda each: -each[0])[:slowest]
    chosen = {shape.name: (taken, shape) for taken, _, shape in (steep[0], slow[0], *steep, *slow)}
    return list(chosen.values())
