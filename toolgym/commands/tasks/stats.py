"""`toolgym tasks stats`: how many tasks there are of each kind.

The counting is `toolgym.inspection`, the page `toolgym.report.small_pages`; here the counts become
a table or JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from toolgym.commands import AsJson, console, family_of
from toolgym.commands.tasks.options import (
    EXPLORE,
    Databases,
    DataSet,
    Environment,
    OneSplit,
    task_sets,
)

if TYPE_CHECKING:
    from toolgym.inspection import TaskStats

Page = Annotated[
    Path | None, typer.Option("--html", help="Write a page with plots into this file, too.")
]


def stats(
    dataset: DataSet,
    split: OneSplit = None,
    env_id: Environment = EXPLORE,
    databases: Databases = None,
    as_json: AsJson = False,
    html: Page = None,
) -> None:
    """Count the tasks of a data set, by database, hardness and shape of the result.

    Every gold is run once; what can not be played is counted as refused.

    Example:
        toolgym tasks stats bundled
        toolgym tasks stats tasks --html tasks.html
    """
    from toolgym.commands.evaluate import progress_bar
    from toolgym.inspection import count_tasks
    from toolgym.report.small_pages import write_task_page

    found = task_sets(env_id, dataset, split, databases)
    with progress_bar("counted") as progress:
        counted = count_tasks(dataset, found, family_of(env_id), progress)
    if html is not None:
        write_task_page(counted, html)
    if as_json:
        typer.echo(json.dumps(counted.to_json(), indent=2, ensure_ascii=False))
        return
    _print(counted)
    if html is not None:
        typer.echo(f"\nPage: {html}")


def _print(counted: TaskStats) -> None:
    typer.echo(f"{counted.name}: {counted.tasks:,} tasks, {counted.refused:,} of them refused\n")
    first, *others = counted.facts
    values = [value for fact in others for value in counted.values(fact)]
    table = Table("split", first, "tasks", *values, box=None, pad_edge=False)
    for column in table.columns[2:]:
        column.justify = "right"
    for row in counted.rows():
        numbers = [row.tasks, *(row.counts.get(value, 0) for value in values)]
        table.add_row(row.split, row.item, *(f"{number:,}" for number in numbers))
    console().print(table)
