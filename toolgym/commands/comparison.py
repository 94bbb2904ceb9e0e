"""`toolgym eval --compare`: two evaluations on the same tasks, task by task.

The numbers are made in `toolgym.runs.paired`; here they go to the terminal, or to one JSON object.
"""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from toolgym.commands import (
    print_json,
    print_table,
    say,
)
from toolgym.runs.paired import Compared, compare_folders

_SHOWN = 5  # tasks that are named to either side


def print_comparison(env_id: str, first: Path, second: Path, *, as_json: bool) -> None:
    """Compare what two places hold, and print it.

    Args:
        env_id: That was played in both.

    Raises:
        ConfigurationError: One of them is not there, or they have no task in common.
    """
    found = compare_folders(first, second, env_id)
    if as_json:
        plain = [
            {"name": each.name, "unseen": each.unseen, **each.result.to_json()} for each in found
        ]
        about = {"env_id": env_id, "first": str(first), "second": str(second)}
        print_json({**about, "comparisons": plain})
        return
    for place, each in enumerate(found):
        say(("\n" if place else "") + f"{each.name}: {second} compared with {first}")
        print_table(_table(each))
        say(each.unseen)


def _table(compared: Compared) -> Table:
    result, table = compared.result, Table(box=None, show_header=False, pad_edge=False)
    low, high = result.difference.low, result.difference.high
    tries = f", up to {result.tries} tries each" if result.tries > 1 else ""
    alone = f" ({result.unpaired} more are not in both)" if result.unpaired else ""
    table.add_row("tasks", f"{result.tasks}{tries}{alone}")
    table.add_row("accuracy of the first", f"{result.first:.3f}")
    table.add_row("accuracy of the second", f"{result.second:.3f}")
    value = f"{result.difference.value:+.3f}  [{low:+.3f}, {high:+.3f}]"
    table.add_row("difference", value)
    table.add_row("interval", "95 %, for other tasks like these")
    table.add_row("better with the second", _named(result.gained))
    table.add_row("better with the first", _named(result.lost))
    table.add_row("p-value (sign test)", f"{result.chance:.3g}")
    return table


def _named(tasks: tuple[str, ...]) -> str:
    some = ", ".join(tasks[:_SHOWN]) + (", ..." if len(tasks) > _SHOWN else "")
    return f"{len(tasks)}" + (f" ({some})" if tasks else "")
