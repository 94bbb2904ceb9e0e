"""`toolgym stats`: print statistics of the actions in a run.

The family of the environment computes them (`TaskFamily.statistics`). A file of `toolgym eval
--out` is read like a run folder; its lines are the same records without phase and step.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgym.commands import (
    AsJson,
    Phase,
    Quiet,
    RunsEnv,
    family_of,
    print_json,
    print_table,
    say,
)
from toolgym.commands.progress import progress_bar
from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from toolgym.runs.files import Record
    from toolgym.statistics import Table


def command(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A run folder, or a file of `toolgym eval --out`."),
    ],
    phase: Phase = None,
    env: RunsEnv = None,
    top: Annotated[
        int, typer.Option(min=1, help="Maximum number of rows of a table of frequent patterns.")
    ] = 10,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Print statistics of the rollouts of a run.

    The tables depend on the environment. Workflow environments report validity, errors, patterns,
    operators, structures and diversity. Shares have 95 % Wilson intervals.

    Example:
        toolgym stats runs/compose-001
        toolgym stats runs/compose-001 --phase before --phase after
    """
    from toolgym.registration import recorded
    from toolgym.runs.episodes import rollouts_of

    counted: Counter[str] = Counter()
    with progress_bar("rollouts counted", quiet=quiet) as progress:

        def counting(rollouts: Iterable[Record]) -> Iterator[Record]:
            for number, rollout in enumerate(rollouts, start=1):
                counted[str(rollout.get("env_id", ""))] += 1
                progress(number, None)  # the total is not known before the end of the file
                yield rollout

        rollouts = counting(rollouts_of(run, phase))
        first = next(rollouts, None)
        if first is None:
            where = f" of phase {' or '.join(phase)}" if phase else ""
            raise ConfigurationError(f"{run} has no rollouts{where}.")
        family = family_of(env or recorded(str(first.get("env_id", ""))))
        statistics = family.statistics(itertools.chain([first], rollouts), top)
    if as_json:
        about = {"run": str(run), "env_id": min(counted), "rollouts": counted.total()}
        return print_json(about | statistics.to_json())
    say(f"{counted.total():,} rollouts of {', '.join(sorted(counted))}.")
    for table in statistics.tables:
        _print(table)


def _print(table: Table) -> None:
    from rich.table import Table as Grid

    from toolgym.statistics import cell_text

    say(f"\n{table.title}" if table.rows else f"\n{table.title}: none")
    if not table.rows:
        return
    grid = Grid(box=None, pad_edge=False)
    for place, name in enumerate(table.columns):
        grid.add_column(name, justify="left" if table.is_text(place) else "right")
    for row in table.rows:
        grid.add_row(*map(cell_text, row))
    print_table(grid)
    if table.note:
        say(table.note)
