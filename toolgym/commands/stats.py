"""`toolgym stats`: print statistics of the actions in a run, an evaluation or a log.

The family of the environment computes the statistics (`TaskFamily.statistics`). A file of `toolgym
eval --out` is read like a run folder. Any other file is treated as a log and read by the first
family that finds outputs in it (`TaskFamily.read_log`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgym.commands import (
    AsJson,
    Phase,
    Quiet,
    RunsEnv,
    family_of,
    load_environments,
    print_json,
    print_table,
    say,
)
from toolgym.commands.progress import progress_bar
from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from toolgym.statistics import Table


def command(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="Run folder, file written by `toolgym eval --out`, or log of another trainer.",
        ),
    ],
    phase: Phase = None,
    env: RunsEnv = None,
    top: Annotated[
        int, typer.Option(min=1, help="Maximum number of rows in a table of frequent patterns.")
    ] = 10,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Print statistics of the rollouts of a run, or of the model outputs in a log.

    The tables depend on the environment. For workflow environments, the tables show validity,
    errors, frequent workflows, operators, structures, and collapses between steps. Proportions have
    95 % Wilson intervals.

    A log is a JSONL file, or the output of another trainer with lines such as `DSL质量:
    fallback=False, ops=2, chain=True, DSL=Custom -> Programmer`. Each line of a JSONL file is a
    workflow: a string, or an object with the key `workflow` or `dsl` and optionally `step`,
    `phase`, `correct`, `score` or `reward`.

    Example:
        toolgym stats runs/compose-001
        toolgym stats runs/compose-001 --phase before --phase after
        toolgym stats training.log --json
        toolgym stats workflows.jsonl --top 20
    """
    from toolgym.registration import recorded
    from toolgym.runs.episodes import is_log, rollouts_of
    from toolgym.runs.run import Run
    from toolgym.statistics import recorded_kwargs

    counted = 0
    with progress_bar("rollouts counted", quiet=quiet) as progress:

        def counting(rollouts: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
            nonlocal counted
            for counted, rollout in enumerate(rollouts, start=1):
                progress(counted, None)  # the total is not known before the end of the file
                yield rollout

        is_run = not is_log(run)
        if is_run:
            rollouts: Iterator[Mapping[str, Any]] = rollouts_of(run, phase)
            first = next(rollouts, None)
            if first is None:
                where = f" of phase {' or '.join(phase)}" if phase else ""
                raise ConfigurationError(f"{run} has no rollouts{where}.")
            rollouts = itertools.chain([first], rollouts)
            env_id = env or recorded(str(first.get("env_id", "")))
        else:
            env_id, rollouts = _read_log(run, env, phase)
        kwargs = recorded_kwargs(Run.open(run).config) if run.is_dir() else None
        statistics = family_of(env_id).statistics(counting(rollouts), top, kwargs)
    if as_json:
        about = {"run": str(run), "env_id": env_id, "rollouts": counted}
        return print_json(about | statistics.to_json())
    say(f"{counted:,} {'rollouts' if is_run else 'outputs in a log'} of {env_id}.")
    for table in statistics.tables:
        _print(table)


def _read_log(
    run: Path, env: str | None, phases: Sequence[str] | None
) -> tuple[str, Iterator[Mapping[str, Any]]]:
    """Return an environment whose family finds outputs in a log, and the outputs."""
    from toolgym.registration import tool_env_ids
    from toolgym.runs.episodes import log_lines

    load_environments()
    for env_id in [env] if env else tool_env_ids():
        outputs = family_of(env_id).read_log(log_lines(run))
        found = (each for each in outputs if not phases or each.get("phase") in phases)
        if (first := next(found, None)) is not None:
            return env_id, itertools.chain([first], found)
    where = f" of phase {' or '.join(phases)}" if phases else ""
    raise ConfigurationError(
        f"{run} contains neither episodes of `toolgym eval --out` nor outputs{where} that an"
        " environment can read. `toolgym stats --help` describes the log formats."
    )


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
