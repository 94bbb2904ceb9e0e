"""`toolgym report`: the page of a run, made again or for several runs together.

Training writes the page of its own run at its end; this command makes it for a run that was
interrupted, or lays runs over each other, such as one and its control with shuffled rewards, or the
folders of several evaluations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolgym.commands import load_environments
from toolgym.commands.completion import run_folders


def command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN", help="Run folders, shown in this order.", autocompletion=run_folders
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write; by default report.html in the run's folder, or beside."),
    ] = None,
    episodes: Annotated[
        int, typer.Option(min=0, help="Tasks whose episodes are shown, at most.")
    ] = 100,
) -> None:
    """Write the report of one or several runs as one HTML page.

    The page holds all it shows and needs no network. Plots need the extra `report`; without it the
    numbers are shown in tables.

    Example:
        toolgym report runs/explore
        toolgym report runs/explore runs/control --out comparison.html
        toolgym report evaluations/expert evaluations/random --out players.html --episodes 500
    """
    from toolgym.report import write_report
    from toolgym.runs.run import Run

    shown = [Run.open(path) for path in runs]
    load_environments()  # here, where a package that is broken is told in one line
    typer.echo(str(write_report(shown, out, episodes=episodes)))
