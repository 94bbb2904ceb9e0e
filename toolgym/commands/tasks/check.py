"""`toolgym tasks check`: verify every task and print one report.

How many can be played, which are refused and why, which questions are there twice, which databases
are damaged.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from toolgym.commands import AsJson, arguments_for
from toolgym.commands.tasks.options import EXPLORE, Databases, DataSet, Environment
from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from toolgym.inspection import TaskReport

Split = Annotated[str, typer.Option(help="A part of the data set.")]
Shown = Annotated[int, typer.Option(min=0, help="Lines of refusals, faults and duplicates, each.")]


def check(
    dataset: DataSet,
    split: Split = "dev",
    env_id: Environment = EXPLORE,
    databases: Databases = None,
    show: Shown = 20,
    as_json: AsJson = False,
) -> None:
    """Verify every task and report what can be played, what is refused, and why.

    Verdicts are kept in the cache folder, so a second check is quick. The exit status is 2 where
    nothing can be played.

    Example:
        toolgym tasks check bundled --split dev
    """
    from toolgym import registration
    from toolgym.commands.evaluate import progress_bar
    from toolgym.inspection import check_tasks

    options = arguments_for(env_id, dataset=dataset, split=split, databases=databases)
    tasks = registration.make(env_id, **options).tasks
    with progress_bar("checked") as progress:
        report = check_tasks(tasks, progress)
    if as_json:
        typer.echo(json.dumps(report.to_json(), indent=2))
    else:
        _print(report, show)
    if not report.playable:
        raise ConfigurationError(
            f"none of the {report.tasks:,} tasks of {report.name} is playable."
        )


def _print(report: TaskReport, show: int) -> None:
    typer.echo(f"{report.name}: {report.tasks:,} tasks on {report.items:,} items")
    typer.echo(f"playable: {report.playable:,}")
    reasons = ", ".join(f"{count:,} {code}" for code, count in report.codes.items())
    refused = [f"{r['task_id']} [{r['code']}] {r['reason']}" for r in report.refused]
    _print_list("refused", refused, show, f" ({reasons})" if reasons else "")
    faults = [f"{fault['task_id']} {fault['message']}" for fault in report.faults]
    _print_list("faults of the machine", faults, show)
    _print_list("questions asked twice", [", ".join(ids) for ids in report.duplicates], show)


def _print_list(what: str, lines: list[str], show: int, more: str = "") -> None:
    typer.echo(f"{what}: {len(lines):,}{more}")
    for line in lines[:show]:
        typer.echo(f"  {line}")
    if len(lines) > show > 0:
        typer.echo(f"  ... ({len(lines) - show:,} more; --show N, or --json for all)")
