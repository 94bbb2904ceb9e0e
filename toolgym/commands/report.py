"""`toolgym report`: write the HTML report of one run, or of several runs on one page.

A training writes the report of its run at its end. This command also writes it for interrupted
runs, and compares runs: trainings, or evaluations of `toolgym eval --out FOLDER`.
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
            help="Run folders of `toolgym train` or `toolgym eval --out`, shown in this order.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="HTML file to write (default: report.html in the run folder, or for several runs"
            " next to the first)."
        ),
    ] = None,
    episodes: Annotated[
        int, typer.Option(min=0, help="Maximum number of tasks whose episodes are shown.")
    ] = 100,
) -> None:
    """Write the HTML report of one or several runs.

    The page shows results, learning curves, transcripts and settings, and works offline. Plots
    require the extra `report`; without it the page has tables. Several runs are drawn in the same
    plots.

    Example:
        toolgym report runs/explore
        toolgym report runs/explore runs/control --out comparison.html
        toolgym report evaluations/expert evaluations/random --out players.html --episodes 500
    """
    from toolgym.report import write_report
    from toolgym.runs.run import Run

    shown = [Run.open(path) for path in runs]
    typer.echo(str(write_report(shown, out, episodes=episodes)))
