"""Tasks about a database: as a stream, or so many at once.

Everything is decided by the seed and by what the file holds: no clock, no order of a hash.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from sqlgym.database.database import Database, open_database
from sqlgym.synthesis.reading.profiling import profile
from sqlgym.synthesis.reading.world import World
from sqlgym.synthesis.rephrasing import Rephraser, solved_by_expert
from sqlgym.synthesis.report import LEVELS, Synthesis, SynthesisReport, SynthTask
from sqlgym.synthesis.search import VARIANTS, Search
from sqlgym.tasks.hardness import Hardness
from toolgym.errors import ConfigurationError, ToolError

WORDINGS = ("en",)
"""Languages in which questions are written."""


def mix_of(hardness: Mapping[str, float] | None) -> dict[Hardness, float]:
    """Shares of the levels that sum to one; those given are only compared with each other.

    Args:
        hardness: Share by level; a level that is not named is left out. None for evenly.

    Raises:
        ConfigurationError: A level is unknown, a share is no number from 0 on, or all are 0.

    >>> mix_of({"easy": 3, "extra": 1})
    {'easy': 0.75, 'extra': 0.25}
    """
    if hardness is None:
        return {level: 1 / len(LEVELS) for level in LEVELS}
    unknown = [name for name in hardness if name not in LEVELS]
    if unknown:
        raise ConfigurationError(
            f"hardness: there is no level {unknown[0]!r}; the levels are {', '.join(LEVELS)}."
        )
    for level, share in hardness.items():
        if not math.isfinite(share) or share < 0:
            raise ConfigurationError(f"hardness: the share of {level} is {share}; give 0 or more.")
    total = sum(hardness.values())
    if total <= 0:
        raise ConfigurationError("hardness: all shares are 0; give one level at least a share.")
    return {level: hardness[level] / total for level in LEVELS if hardness.get(level)}


def stream(
    database: str | Path | Database,
    *,
    seed: int = 0,
    hardness: Mapping[str, float] | None = None,
    tables: Sequence[str] | None = None,
    variants: int = VARIANTS,
    wording: str = "en",
    rephrase: Callable[[str, str], str] | None = None,
    report: SynthesisReport | None = None,
) -> Iterator[SynthTask]:
    """Tasks about a database, one after the other, until nothing new is found for long.

    Args:
        database: An SQLite file, or an open `Database`.
        seed: Decides all choices; one seed gives the same tasks for the same file everywhere.
        hardness: How the levels are mixed, as shares; evenly if None.
        tables: The names of the tables to ask about; all but views if None.
        variants: Tasks whose SQL may differ in its literals only. More of them give more tasks
            where a database is small, and tasks that are more alike.
        wording: The language of the questions; "en" is the only one so far.
        rephrase: Gets question and SQL and gives another wording; see `Rephraser` for what is
            checked before it is kept.
        report: Filled while the stream runs.

    Raises:
        ConfigurationError: Nothing sensible can be asked, or an option is wrong.
        EnvironmentFault: The file cannot be read.
    """
    opened = database if isinstance(database, Database) else open_database(database)
    if wording not in WORDINGS:
        raise ConfigurationError(
            f"there is no wording {wording!r}: questions are written in {', '.join(WORDINGS)}."
        )
    if variants < 1:
        raise ConfigurationError(f"variants={variants}: give 1 or more.")
    mix = mix_of(hardness)
    world = _world(opened, tables)
    report = report if report is not None else SynthesisReport()
    report.tables_left_out.update(world.left_out)
    report.references += [
        f"{link.child.name}.{link.column} -> {link.parent.name}.{link.target}"
        for link in world.links
        if link.is_inferred
    ]
    rng = random.Random(f"synthesis-{seed}")
    search = Search(opened, world, mix, report, rng, variants=variants)
    if rephrase is not None:
        search.rephraser = Rephraser(opened, rephrase, report, search.is_taken, solved_by_expert)
    return search.tasks()


def synthesize(
    database: str | Path | Database,
    *,
    n: int = 500,
    seed: int = 0,
    hardness: Mapping[str, float] | None = None,
    tables: Sequence[str] | None = None,
    variants: int = VARIANTS,
    wording: str = "en",
    rephrase: Callable[[str, str], str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Synthesis:
    """The first `n` tasks of `stream`, or fewer where there are no more.

    Args:
        database: An SQLite file, or an open `Database`.
        n: How many tasks.
        seed, hardness, tables, variants, wording, rephrase: As of `stream`.
        progress: Told after each task how many there are, and `n`.

    Raises:
        ConfigurationError: Nothing sensible can be asked, or an option is wrong.
        EnvironmentFault: The file cannot be read.
    """
    if n < 1:
        raise ConfigurationError(f"n={n}: ask for at least one task.")
    report = SynthesisReport()
    found = stream(
        database,
        seed=seed,
        hardness=hardness,
        tables=tables,
        variants=variants,
        wording=wording,
        rephrase=rephrase,
        report=report,
    )
    tasks: list[SynthTask] = []
    for task in itertools.islice(found, n):
        tasks.append(task)
        if progress is not None:
            progress(len(tasks), n)
    if not tasks:
        name = database.path if isinstance(database, Database) else database
        raise ConfigurationError(
            f"no sensible question was found about {name}: its tables are too small or too much"
            " alike. Add rows, or write questions by hand."
        )
    return Synthesis(tuple(tasks), report)


def _world(database: Database, tables: Sequence[str] | None) -> World:
    if isinstance(tables, str):
        raise ConfigurationError(f"tables={tables!r} is one text: give a list, [{tables!r}].")
    try:
        world = profile(database, tables)
    except ToolError as error:  # a name in `tables` that does not exist
        raise ConfigurationError(f"tables: {error.message} {error.hint}") from None
    if not world.entities:
        reasons = "; ".join(f"{name}: {why}" for name, why in sorted(world.left_out.items())[:5])
        raise ConfigurationError(
            f"nothing can be asked about {database.path}: it has no table with rows"
            f"{f' ({reasons})' if reasons else ''}."
        )
    return world
