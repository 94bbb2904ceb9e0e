"""`toolgym lab`: claims about how training fails, run as controlled experiments.

Work is done in units of one cell and one seed, each kept when it is done: a run that was ended, or
one of the pieces that `--full` is cut into, goes on where it was. What came of it is one page for
people, one object for programs, and a verdict on every claim on stdout.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from toolgym.commands import (
    AsJson,
    Quiet,
    print_json,
    print_table,
    say,
)
from toolgym.commands.completion import offered
from toolgym.commands.progress import Bars
from toolgym.errors import ConfigurationError, EnvironmentFault

if TYPE_CHECKING:
    from adapters.lab.experiment import Experiment, Scale
    from adapters.lab.results import Finding
    from adapters.lab.runner import Failure
    from adapters.lab.units import Unit


def _named(incomplete: str) -> list[str]:
    from adapters.lab.catalogue import MODULES

    return offered(MODULES, incomplete)


Names = Annotated[
    list[str] | None,
    typer.Argument(help="Experiments; all without one.", autocompletion=_named),
]
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
    as_json: AsJson = False,
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
        toolgym lab --report --json
        toolgym lab group-size --full --piece 1/3
    """
    from adapters.training.models.places import loading_pytorch
    from toolgym.processes import usable_cores

    check_installed()
    if piece is not None and not all(part.isdecimal() for part in f"{piece}/".split("/", 2)[:2]):
        raise ConfigurationError(
            f"--piece takes I/N, as in --piece 1/3 (--plan tells N), got {piece!r}."
        )
    scale = scale_of(quick, full, smoke)
    with loading_pytorch():
        chosen = chosen_of(names or (), scale)
    if list_:
        return print_json(experiments_of(chosen)) if as_json else print_experiments(chosen)
    jobs = jobs or usable_cores()
    units, asked = units_for(chosen, seeds, jobs, piece)
    if plan:
        todo = plan_of(chosen, units, out, jobs)
        return print_json(todo) if as_json else print_plan(todo)
    failures = [] if report else do(asked, out, jobs, quiet)
    tell(chosen, units, failures, out, pictures, as_json=as_json)


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


def experiments_of(chosen: Chosen) -> list[dict[str, Any]]:
    """What `--list` tells of each experiment."""
    return [
        {
            "name": each.name,
            "document": each.document,
            "title": each.title,
            "predictions": len(each.predictions),
        }
        for each, _ in chosen
    ]


def print_experiments(chosen: Chosen) -> None:
    """One line for each experiment."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="")
    for column in ("experiment", "document", "title", "predictions"):
        table.add_column(column)
    for each in experiments_of(chosen):
        table.add_row(*map(str, each.values()))
    print_table(table)


def plan_of(chosen: Chosen, units: Sequence[Unit], out: Path, jobs: int) -> dict[str, Any]:
    """What there is to do, what is done, how long the rest takes, and in which pieces."""
    from adapters.lab.runner import estimate, left_of, pieces_of

    left = left_of(units, out)
    of, undone = (Counter(unit.experiment for unit in each) for each in (units, left))
    experiments = [
        {
            "name": each.name,
            "size": scale,
            "units": of[each.name],
            "left": undone[each.name],
            "seconds": estimate([unit for unit in left if unit.experiment == each.name], jobs),
        }
        for each, scale in chosen
    ]
    pieces = pieces_of(units, jobs)
    todo = [left_of(piece, out) for piece in pieces]
    return {
        "jobs": jobs,
        "seconds": estimate(left, jobs),
        "experiments": experiments,
        "pieces": [
            {
                "piece": f"{number}/{len(pieces)}",
                "units": len(piece),
                "left": len(rest),
                "seconds": estimate(rest, jobs),
            }
            for number, (piece, rest) in enumerate(zip(pieces, todo, strict=True), start=1)
        ],
    }


def print_plan(plan: dict[str, Any]) -> None:
    """The plan as a table, and its pieces below."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="")
    for column in ("experiment", "size", "units", "left", "of them takes"):
        table.add_column(column, justify="left" if column in ("experiment", "size") else "right")
    for each in plan["experiments"]:
        counts = (f"{each['units']:,}", f"{each['left']:,}", _minutes(each["seconds"]))
        table.add_row(each["name"], each["size"], *counts)
    print_table(table)
    took = _minutes(plan["seconds"])
    say(f"All that is left: about {took} on {plan['jobs']} cores.")
    for each in plan["pieces"]:
        told = f"about {_minutes(each['seconds'])}" if each["left"] else "done"
        say(f"--piece {each['piece']}: {each['units']:,} units, {told}")


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.0f} s"


def do(units: Sequence[Unit], out: Path, jobs: int, quiet: bool) -> list[Failure]:
    """Do what is left of some units; those that failed."""
    from adapters.lab.runner import estimate, left_of, run_units

    left = left_of(units, out)
    took = _minutes(estimate(left, jobs))
    say(f"{len(units):,} units, {len(left):,} to do: about {took}.", err=True)
    if quiet or not left:
        return run_units(left, out, jobs, None)
    with Bars().phase("units", len(left)) as show:
        number = itertools.count(1)
        return run_units(
            left, out, jobs, lambda unit: show(next(number), f"{unit.experiment} {unit.cell}")
        )


def tell(
    chosen: Chosen,
    units: Sequence[Unit],
    failures: Sequence[Failure],
    out: Path,
    pictures: Path | None,
    *,
    as_json: bool = False,
) -> None:
    """Write what came of all units that are done, and say it."""
    from adapters.lab.figures import write_pictures
    from adapters.lab.results import finding, to_json, write_lab_report, write_results

    found = [finding(each, scale, units, out, failures) for each, scale in chosen]
    try:
        written = [write_results(found, out), write_lab_report(found, out)]
        if pictures is not None:
            figures = [one for each in found for one in each.figures()]
            written += write_pictures(figures, pictures)
    except OSError as problem:
        raise EnvironmentFault(f"{out} cannot be written to: {problem.strerror}.") from problem
    if as_json:
        experiments = {each.experiment.name: to_json(each) for each in found}
        print_json({"experiments": experiments, "files": written})
    else:
        print_verdicts(found)
        say("\n".join(map(str, written)))
    for failure in failures:
        unit = failure.unit
        say(f"{unit.experiment}, {unit.cell}, seed {unit.seed}: {failure.error}", err=True)
    if failures:
        raise typer.Exit(FAILED)


def print_verdicts(found: Sequence[Finding]) -> None:
    """Each claim, what was measured, and the verdict."""
    for each in found:
        say(f"\n{each.experiment.name} ({each.scale}, {each.done} of {each.wanted} units)")
        for prediction, verdict in each.told():
            say(f"  {verdict.outcome.upper()}: {prediction.claim}")
            say(f"    {verdict.sentence}")
        if untold := each.untold():
            say(f"  INCONCLUSIVE: {untold} claims, at smoke size by design.")
    tally = Counter(verdict.outcome for each in found for _, verdict in each.verdicts())
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(tally.items()))
    say(f"\n{told or 'nothing was claimed'}.")
