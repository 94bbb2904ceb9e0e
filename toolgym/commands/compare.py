"""`toolgym compare`: compare two evaluations on their common tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgym.commands import AsJson, print_json, print_table, say

if TYPE_CHECKING:
    from rich.table import Table

    from toolgym.runs.paired import Compared

_SHOWN = 5  # maximum number of task ids that are shown in a row

First = Annotated[
    Path,
    typer.Argument(
        metavar="FIRST",
        help="First evaluation: a folder or file of `toolgym eval --out`, or a run folder of"
        " `toolgym train`.",
    ),
]
Second = Annotated[
    Path,
    typer.Argument(
        metavar="SECOND",
        help="Second evaluation. If both are the same run folder, its evaluations before and"
        " after training are compared.",
    ),
]


def command(first: First, second: Second, as_json: AsJson = False) -> None:
    """Compare two evaluations on the tasks that they have in common.

    Prints the difference in accuracy with a paired 95 % confidence interval, and the p-value of an
    exact sign test.

    Example:
        toolgym compare runs/expert runs/random
        toolgym compare runs/explore-001 runs/explore-001 --json
    """
    from toolgym.runs.paired import compare_folders

    found = compare_folders(first, second)
    if as_json:
        plain = [{"name": each.name, **each.result.to_json()} for each in found]
        return print_json({"first": first, "second": second, "comparisons": plain})
    for place, each in enumerate(found):
        say(("\n" if place else "") + f"{each.name}: {second} compared with {first}")
        print_table(_table(each))


def _table(compared: Compared) -> Table:
    from rich.table import Table

    result, table = compared.result, Table(box=None, show_header=False, pad_edge=False)
    low, high = result.difference.low, result.difference.high
    tries = f", up to {result.tries} attempts each" if result.tries > 1 else ""
    unpaired = f" ({result.unpaired} more are in one evaluation only)" if result.unpaired else ""
    table.add_row("environment", result.env_id)
    for which, about in zip(("first", "second"), compared.about, strict=True):
        table.add_row(f"{which} evaluation", about)
    table.add_row("tasks", f"{result.tasks}{tries}{unpaired}")
    table.add_row("accuracy of the first", f"{result.first:.3f}")
    table.add_row("accuracy of the second", f"{result.second:.3f}")
    ends = f"[{low:+.3f}, {high:+.3f}]"
    table.add_row("difference (95 % interval)", f"{result.difference.value:+.3f}  {ends}")
    table.add_row("better with the second", _named(result.gained))
    table.add_row("better with the first", _named(result.lost))
    table.add_row("p-value (sign test)", f"{result.chance:.3g}")
    return table


def _named(tasks: tuple[str, ...]) -> str:
    some = ", ".join(tasks[:_SHOWN]) + (", ..." if len(tasks) > _SHOWN else "")
    return f"{len(tasks)}" + (f" ({some})" if tasks else "")
