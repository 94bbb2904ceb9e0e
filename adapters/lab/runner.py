"""The runner of many units: those that are left, an estimate of their time, and processes.

Every process computes with one thread: the micro-model is too small to share out. A unit that fails
is told at the end with what it said, and the others go on. Whatever ends the parent, be it Ctrl-C
or a signal that it cannot catch, ends the processes with it, in the middle of a unit: a unit that
was not kept is done again by the next run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adapters.lab.units import Unit, record_of, work
from toolgym.errors import ConfigurationError
from toolgym.processes import process_pool

PIECE: Final = 15 * 60.0
"""Seconds that a piece should take by the estimate, which leaves room up to twenty minutes."""
STARTUP: Final = 6.0
"""Seconds until processes have imported what they need."""


@dataclass(frozen=True)
class Failure:
    """A unit that failed, and what it said."""

    unit: Unit
    error: str


def left_of(units: Sequence[Unit], out: Path) -> list[Unit]:
    """Those that have to be done."""
    return [unit for unit in units if record_of(unit, out) is None]


def estimate(units: Sequence[Unit], jobs: int) -> float:
    """Seconds that units should take."""
    total = math.fsum(unit.seconds for unit in units)
    return total / jobs + (STARTUP if units else 0.0)


def pieces_of(units: Sequence[Unit], jobs: int) -> list[list[Unit]]:
    """The units cut into pieces of `PIECE` seconds, in order."""
    pieces: list[list[Unit]] = []
    spent = math.inf
    for unit in units:
        cost = unit.seconds / jobs
        if spent + cost > PIECE:
            pieces.append([])
            spent = STARTUP
        pieces[-1].append(unit)
        spent += cost
    return pieces


def piece_named(text: str, pieces: Sequence[list[Unit]]) -> list[Unit]:
    """The piece that `I/N` asks for, from 1.

    Raises:
        ConfigurationError: There are not N pieces, or there is no such one.
    """
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal()) or int(of) != len(pieces):
        raise ConfigurationError(f"there are {len(pieces)} pieces: ask for 1/{len(pieces)} and on.")
    if not 1 <= int(number) <= len(pieces):
        raise ConfigurationError(f"pieces go from 1 to {len(pieces)}, got {number}.")
    return pieces[int(number) - 1]


def run_units(
    units: Sequence[Unit], out: Path, jobs: int, done: Callable[[Unit], None] | None = None
) -> list[Failure]:
    """Do units.

    Args:
        jobs: Processes; 1 does it in this one.
        done: Called after each unit, failed or not.

    Returns:
        Those that failed, in the order of `units`.
    """
    failed: dict[int, str] = {}
    with _executor(jobs) as executor:
        for place, error in _outcomes(executor, units, out, jobs):
            if error is not None:
                failed[place] = error
            if done is not None:
                done(units[place])
    return [Failure(unit, failed[place]) for place, unit in enumerate(units) if place in failed]


def _outcomes(
    executor: Executor, units: Sequence[Unit], out: Path, jobs: int
) -> Iterator[tuple[int, str | None]]:
    """Of each unit as it ends its place, and what it said if it failed."""
    waiting = {executor.submit(work, units[place], out): place for place in _order(units, jobs)}
    for future in as_completed(waiting):
        problem = future.exception()
        if isinstance(problem, BrokenProcessPool):
            yield waiting[future], "its process was ended; run again to go on."
        else:
            error = None if problem is None else f"{type(problem).__name__}: {problem}"
            yield waiting[future], error


def _order(units: Sequence[Unit], jobs: int) -> list[int]:
    """Seed by seed, so that what is done is balanced whenever it ends; as many seeds at a time as
    there are processes, so that no two of them make the same start at once."""
    cells = {each: i for i, each in enumerate(dict.fromkeys((u.experiment, u.cell) for u in units))}

    def key(place: int) -> tuple[int, int, int]:
        unit = units[place]
        return unit.seed // jobs, cells[unit.experiment, unit.cell], unit.seed

    return sorted(range(len(units)), key=key)


@contextmanager
def _executor(jobs: int) -> Iterator[Executor]:
    """Processes, or a thread of this one; none of them is left when the context is."""
    if jobs == 1:
        with ThreadPoolExecutor(1) as thread:
            try:
                yield thread
            finally:
                thread.shutdown(wait=True, cancel_futures=True)
        return
    with process_pool(jobs) as processes:
        yield processes
