"""`toolgym stats`: what the agents of a run wrote, counted by what their environment understands.

The counting is the family's (`TaskFamily.statistics`); here its tables go to the terminal or
to JSON. A file of `toolgym eval --out` is as good as a run folder: its lines are the same records,
without phase and step.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgym.commands import (
    AsJson,
    Phase,
    Quiet,
    family_of,
    print_json,
    print_table,
    say,
)
from toolgym.commands.completion import run_folders
from toolgym.commands.progress import Progress, progress_bar
from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from toolgym.runs.files import Record
    from toolgym.statistics import Statistics, Table

RunPath = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="A run folder, or a file of `toolgym eval --out`.",
        autocompletion=run_folders,
    ),
]
Top = Annotated[int, typer.Option(min=1, help="Patterns to tell at most.")]


def command(
    run: RunPath,
    phase: Phase = None,
    top: Top = 10,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Count what the agents of a run wrote: how much is valid, what is frequent, how varied it is.

    Which tables there are, the environment says; those of the workflow environments tell validity,
    patterns, operators, structures, diversity and entropy. Shares come with 95 % Wilson intervals.

    Example:
        toolgym stats runs/compose-001
        toolgym stats runs/compose-001 --phase before --phase after
    """
    from toolgym.runs.episodes import rollouts_of

    tally: Counter[str] = Counter()
    with progress_bar("rollouts counted", quiet=quiet) as progress:
        counted = _tallied(rollouts_of(run, phase), tally, progress)
        statistics = _count(counted, run, phase, top)
    if as_json:
        about = {"run": str(run), "env_id": min(tally), "rollouts": tally.total()}
        print_json(about | statistics.to_json())
        return
    say(_subject(tally))
    for table in statistics.tables:
        _print(table)


def _tallied(
    rollouts: Iterable[Record], tally: Counter[str], progress: Progress
) -> Iterator[Record]:
    """The rollouts as they come, counted by environment while they pass."""
    for number, rollout in enumerate(rollouts, start=1):
        tally[str(rollout.get("env_id", ""))] += 1
        progress(number, None)  # how many there are, only the end of the file tells
        yield rollout


def _count(
    rollouts: Iterator[Record], run: Path, phases: Sequence[str] | None, top: int
) -> Statistics:
    """The statistics of all rollouts, by the family of the first one's environment.

    Raises:
        ConfigurationError: There is no rollout, or the family counts nothing.
    """
    first = next(rollouts, None)
    if first is None:
        where = f" of phase {' or '.join(phases)}" if phases else ""
        raise ConfigurationError(f"{run} has no rollouts{where}.")
    family = family_of(str(first.get("env_id", "")))
    return family.statistics(itertools.chain([first], rollouts), top)


def _subject(tally: Counter[str]) -> str:
    return f"{tally.total():,} rollouts of {', '.join(sorted(tally))}."


def _print(table: Table) -> None:
    from rich.table import Table as Grid

    from toolgym.statistics import cell_text

    say(f"\n{table.title}" if table.rows else f"\n{table.title}: none")
    if not table.rows:
        return
    grid = Grid(box=None, pad_edge=False, header_style="")
    for place, name in enumerate(table.columns):
        grid.add_column(name, justify="left" if table.is_text(place) else "right")
    for row in table.rows:
        grid.add_row(*map(cell_text, row))
    print_table(grid)
    if table.note:
        say(table.note)
