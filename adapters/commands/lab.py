"""`toolgym lab`: claims about how training fails, run as controlled experiments.

Work is done in units of one cell and one seed, each kept when it is done: a run that was ended, or
one of the pieces that `--full` is cut into, goes on where it was. What came of it is one page for
people, one object for programs, and a verdict on every claim on stdout.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from toolgym.commands import console
from toolgym.errors import ConfigurationError, EnvironmentFault

if TYPE_CHECKING:
    from adapters.lab.experiment import Experiment, Scale
    from adapters.lab.results import Finding
    from adapters.lab.runner import Failure
    from adapters.lab.units import Unit

Names = Annotated[list[str] | None, typer.Argument(help="Experiments; all without one.")]
Quick = Annotated[
    bool,
    typer.Option("--quick", help="Seeds enough for the headline claims, the others at smoke size."),
]
Full = Annotated[bool, typer.Option("--full", help="Every cell of every experiment.")]
Smoke = Annotated[bool, typer.Option("--smoke", help="Everything at the smallest size there is.")]
Seeds = Annotated[int | None, typer.Option(min=1, help="Seeds of each cell.")]
Out = Annotated[Path, typer.Option(help="Where units, results and the page are kept.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes; one for each core.")]
Piece = Annotated[
    str | None, typer.Option(metavar="I/N", help="Only this piece of the work; see --plan.")
]
Pictures = Annotated[
    Path | None, typer.Option(help="Write the figures as PNG into this folder, too.")
]
List = Annotated[bool, typer.Option("--list", help="Say which experiments there are, and end.")]
Plan = Annotated[bool, typer.Option("--plan", help="Say what is to be done, in pieces, and end.")]
Report = Annotated[
    bool, typer.Option("--report", help="Do nothing more: tell what came of what is done.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]

FAILED: Final = 1
Chosen = list[tuple["Experiment", "Scale"]]


def command(
    names: Names = None,
    quick: Quick = False,
    full: Full = False,
    smoke: Smoke = False,
    seeds: Seeds = None,
    out: Out = Path("runs/lab"),
    jobs: Jobs = None,
    piece: Piece = None,
    pictures: Pictures = None,
    list_: List = False,
    plan: Plan = False,
    report: Report = False,
    quiet: Quiet = False,
) -> None:
    """Test claims about how training fails, and say which hold.

    Without --full or --smoke it is --quick; experiments that are named have seeds enough for a
    verdict then. What is done is kept and not done again. The exit status is 1 if a unit failed; a
    refuted claim is a result.

    Example:
        toolgym lab --list
        toolgym lab --quick
        toolgym lab group-size --full --plan
        toolgym lab group-size --full --piece 1/3
    """
    check_installed()
    if piece is not None and not all(part.isdecimal() for part in f"{piece}/".split("/", 2)[:2]):
        raise ConfigurationError(
            f"--piece takes I/N, as in --piece 1/3 (--plan tells N), got {piece!r}."
        )
    chosen = chosen_of(names or (), scale_of(quick, full, smoke))
    if list_:
        print_experiments(chosen)
        return
    jobs = jobs or os.cpu_count() or 1
    units, asked = units_for(chosen, seeds, jobs, piece)
    if plan:
        print_plan(chosen, units, out, jobs)
        return
    failures = [] if report else do(asked, out, jobs, quiet)
    tell(chosen, units, failures, out, pictures)


def check_installed() -> None:
    """Raise ConfigurationError if the extra `train` is missing."""
    from adapters.commands.train import check_installed as check

    check()


def scale_of(quick: bool, full: bool, smoke: bool) -> Scale:
    """The one that was asked for.

    Raises:
        ConfigurationError: More than one was.
    """
    if quick + full + smoke > 1:
        raise ConfigurationError("--quick, --full and --smoke exclude each other; leave one.")
    return "full" if full else "smoke" if smoke else "quick"


def chosen_of(names: Sequence[str], scale: Scale) -> Chosen:
    """The experiments, each at its size.

    Raises:
        ConfigurationError: There is no such experiment.
    """
    from adapters.lab.catalogue import HEADLINES, MODULES, experiment

    if names:
        return [(experiment(name), scale) for name in dict.fromkeys(names)]
    return [
        (experiment(name), "smoke" if scale == "quick" and name not in HEADLINES else scale)
        for name in MODULES
    ]


def units_for(
    chosen: Chosen, seeds: int | None, jobs: int, piece: str | None
) -> tuple[list[Unit], list[Unit]]:
    """All units, and those of the piece that was asked for.

    Raises:
        ConfigurationError: There is no such piece.
    """
    from adapters.lab.runner import piece_named, pieces_of
    from adapters.lab.units import units_of

    units = [unit for each, scale in chosen for unit in units_of(each, scale, seeds)]
    if piece is None:
        return units, units
    return units, piece_named(piece, pieces_of(units, jobs))


def print_experiments(chosen: Chosen) -> None:
    """One line for each experiment."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="")
    for column in ("experiment", "document", "title", "predictions"):
        table.add_column(column)
    for each, _ in chosen:
        table.add_row(each.name, each.document, each.title, str(len(each.predictions)))
    console().print(table)


def print_plan(chosen: Chosen, units: Sequence[Unit], out: Path, jobs: int) -> None:
    """What there is to do, what is done, how long the rest takes, and in which pieces."""
    from rich.table import Table

    from adapters.lab.runner import estimate, left_of, pieces_of

    left = left_of(units, out)
    of, undone = (Counter(unit.experiment for unit in each) for each in (units, left))
    table = Table(box=None, pad_edge=False, header_style="")
    for column in ("experiment", "size", "units", "left", "of them takes"):
        table.add_column(column, justify="left" if column in ("experiment", "size") else "right")
    for each, scale in chosen:
        took = [unit for unit in left if unit.experiment == each.name]
        told = _minutes(estimate(took, jobs))
        table.add_row(each.name, scale, f"{of[each.name]:,}", f"{undone[each.name]:,}", told)
    console().print(table)
    pieces = pieces_of(units, jobs)
    typer.echo(f"All that is left: about {_minutes(estimate(left, jobs))} on {jobs} cores.")
    for number, each_piece in enumerate(pieces, start=1):
        todo = left_of(each_piece, out)
        told = f"about {_minutes(estimate(todo, jobs))}" if todo else "done"
        typer.echo(f"--piece {number}/{len(pieces)}: {len(each_piece):,} units, {told}")


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.0f} s"


def do(units: Sequence[Unit], out: Path, jobs: int, quiet: bool) -> list[Failure]:
    """Do what is left of some units; those that failed."""
    from adapters.lab.runner import estimate, left_of, run_units

    left = left_of(units, out)
    took = _minutes(estimate(left, jobs))
    typer.echo(f"{len(units):,} units, {len(left):,} to do: about {took}.", err=True)
    with _bar(len(left), quiet) as advance:
        return run_units(left, out, jobs, advance)


def tell(
    chosen: Chosen,
    units: Sequence[Unit],
    failures: Sequence[Failure],
    out: Path,
    pictures: Path | None,
) -> None:
    """Write what came of all units that are done, and say it."""
    from adapters.lab.figures import write_pictures
    from adapters.lab.results import finding, write_lab_report, write_results

    found = [finding(each, scale, units, out, failures) for each, scale in chosen]
    try:
        written = [write_results(found, out), write_lab_report(found, out)]
        if pictures is not None:
            figures = [one for each in found for one in each.figures()]
            written += write_pictures(figures, pictures)
    except OSError as problem:
        raise EnvironmentFault(f"{out} cannot be written to: {problem.strerror}.") from problem
    print_verdicts(found)
    for file in written:
        typer.echo(str(file))
    for failure in failures:
        unit = failure.unit
        typer.echo(f"{unit.experiment}, {unit.cell}, seed {unit.seed}: {failure.error}", err=True)
    if failures:
        raise typer.Exit(FAILED)


def print_verdicts(found: Sequence[Finding]) -> None:
    """Each claim, what was measured, and the verdict."""
    for each in found:
        typer.echo(f"\n{each.experiment.name} ({each.scale}, {each.done} of {each.wanted} units)")
        for prediction, verdict in each.told():
            typer.echo(f"  {verdict.outcome.upper()}: {prediction.claim}")
            typer.echo(f"    {verdict.sentence}")
        if untold := each.untold():
            typer.echo(f"  INCONCLUSIVE: {untold} claims, at smoke size by design.")
    tally = Counter(verdict.outcome for each in found for _, verdict in each.verdicts())
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(tally.items()))
    typer.echo(f"\n{told or 'nothing was claimed'}.")


@contextmanager
def _bar(total: int, quiet: bool) -> Iterator[Callable[[Unit], None] | None]:
    """A bar on stderr that moves with each unit; in a pipe nothing."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    if quiet or not total or not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console(stderr=True)) as progress:
        task = progress.add_task("units", total=total)

        def advance(unit: Unit) -> None:
            progress.update(task, advance=1, description=f"{unit.experiment} {unit.cell}")

        yield advance
