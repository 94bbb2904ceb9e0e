"""`toolgym watch`: the report of a run while it goes on, in a browser or on the terminal.

The page is that of `toolgym report`. It asks this command for what is new, and keeps what its
reader chose: the steps, the runs and series that are switched off, what is unfolded and searched.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgym.commands import console, load_environments, say
from toolgym.commands.completion import run_folders
from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from toolgym.report.view import RunView

SECONDS = 2.0
"""Between two looks at the run, on the terminal."""
_ALL = 1000
"""Lines of a pipe, which has room for every curve."""


def command(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run folder.", autocompletion=run_folders)
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine; 0 takes a free one.")
    ] = 0,
    terminal: Annotated[
        bool, typer.Option("--terminal", help="Draw it on the terminal, until the run has ended.")
    ] = False,
) -> None:
    """Show the report of a run while it goes on, as a page that this machine alone can open.

    Nothing but that report is served, on the loopback interface. Ctrl-C ends it; the run goes on.

    Example:
        toolgym watch runs/explore-001
        toolgym watch runs/explore-001 --port 8765
        toolgym watch runs/explore-001 --terminal
    """
    from toolgym.runs.run import Run

    Run.open(run)  # a folder that is no run is told before anything is served
    load_environments()
    try:
        if terminal:
            _draw(run)
        else:
            _serve(run, port)
    except KeyboardInterrupt:
        say("Stopped watching; the run itself was left alone.", err=True)


def _serve(run: Path, port: int) -> None:
    from toolgym.report.server import WatchedRun, WatchServer

    with WatchServer(WatchedRun(run), port) as server:
        say(f"{run} is shown at {server.url} (Ctrl-C ends this).")
        server.serve_forever()


def _draw(path: Path) -> None:
    """Draw the run until no process writes it any more."""
    from rich.live import Live

    out = console()
    height = out.height if out.is_terminal else _ALL
    shown, is_going_on = _frame(path, out.width, height)
    if not out.is_terminal or not is_going_on:
        out.print(shown)
        return
    with Live(shown, console=out, auto_refresh=False) as live:
        while is_going_on:
            time.sleep(SECONDS)
            shown, is_going_on = _frame(path, out.width, height)
            live.update(shown, refresh=True)


def _frame(path: Path, width: int, height: int) -> tuple[RenderableType, bool]:
    """What is to be seen, and whether a process is still writing the run."""
    from rich.text import Text

    from toolgym.notebook import visible
    from toolgym.report.terminal import frame
    from toolgym.report.view import views
    from toolgym.runs.run import Run

    try:
        view: RunView = views([Run.open(path)])[0]
    except ConfigurationError as problem:
        return Text(visible(f"This run cannot be read now. {problem}")), Run(path, {}).is_held
    return frame(view, width, height), view.is_going_on
