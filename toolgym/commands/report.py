"""`toolgym report`: write the HTML report of one or several runs.

A training run writes its report when it ends. This command also writes a report for interrupted
runs, and one page for several training runs or evaluations of `toolgym eval --out FOLDER`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Run folders of `toolgym train` or `toolgym eval --out`.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="HTML file to write (default: report.html in the run folder; for several runs, in"
            " the parent folder of the first)."
        ),
    ] = None,
    episodes: Annotated[
        int, typer.Option(min=0, help="Maximum number of tasks whose episodes are shown.")
    ] = 100,
) -> None:
    """Write the HTML report of one or several runs.

    The page shows results, learning curves, transcripts and settings, and works offline. Plots
    require the `report` extra.

    Example:
        toolgym report runs/explore
        toolgym report runs/explore runs/control --out comparison.html
        toolgym report evaluations/expert evaluations/random --out players.html --episodes 500
    """
    from toolgym.report import write_report
    from toolgym.runs.run import Run

    shown = [Run.open(path) for path in runs]
    typer.echo(str(write_report(shown, out, episodes=episodes)))
