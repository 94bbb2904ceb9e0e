"""Progress bars on stderr that show the finished work, the elapsed time and the remaining time.

Bars appear only in a terminal, and not with TERM=dumb or `--quiet`. `NO_COLOR` removes the colors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Protocol

from toolgym.commands import harmless
from toolgym.long_work import progress_listener

if TYPE_CHECKING:
    from rich.console import Console

NARROW = 60  # minimum number of columns for a bar


class Show(Protocol):
    """A function that updates a progress bar."""

    def __call__(self, done: int, total: int | None, note: str = "") -> None:
        """Show the number of finished units, the total (None if unknown), and a remark."""


@cache
def _screen() -> Console:
    """Return the console that all open bars share."""
    from rich.console import Console

    return Console(stderr=True)


@contextmanager
def progress_bar(what: str, *, quiet: bool = False, transient: bool = False) -> Iterator[Show]:
    """Show a progress bar until the context ends.

    Args:
        what: Short description of the work.
        quiet: Whether to show nothing.
        transient: Whether to remove the bar at the end. If the work fails, the bar is always
            removed.

    Yields:
        The function that updates the bar.
    """
    if quiet or not sys.stderr.isatty() or not _screen().is_interactive:
        yield lambda done, total, note="": None
        return
    from rich import progress

    columns: list[progress.ProgressColumn] = [
        progress.TextColumn("{task.description}", markup=False),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
    ]
    if _screen().width >= NARROW:
        columns.insert(1, progress.BarColumn())
        columns.append(progress.TimeRemainingColumn())
        columns.append(progress.TextColumn("{task.fields[note]}", markup=False))
    # In a terminal only: otherwise output for a file would be redirected to stderr.
    both = sys.stdout.isatty()
    with progress.Progress(
        *columns, console=_screen(), transient=transient, redirect_stdout=both
    ) as bars:
        task = bars.add_task(harmless(what), total=None, note="")

        def show(done: int, total: int | None, note: str = "") -> None:
            bars.update(task, completed=done, total=total, note=note)

        try:
            yield show
        except BaseException:
            bars.live.transient = True
            raise


class Bars:
    """A progress bar for each phase of a run."""

    @contextmanager
    def phase(self, title: str, total: int) -> Iterator[Callable[[int, str], None]]:
        """Show a bar for a phase, and yield a function that updates the bar."""
        with progress_bar(f"{title:<24}") as show:
            show(0, total)
            yield lambda done, note: show(done, total, note)


@contextmanager
def long_work_shown(*, quiet: bool = False) -> Iterator[None]:
    """Show a bar for each long operation that a library reports (`toolgym.long_work`)."""
    shown: dict[str, tuple[Show, ExitStack]] = {}

    def show_progress(what: str, done: int, total: int) -> None:
        if what not in shown and done < total:
            stack = ExitStack()
            shown[what] = (
                stack.enter_context(progress_bar(what, quiet=quiet, transient=True)),
                stack,
            )
        if what in shown:
            show, stack = shown[what]
            show(done, total if total > 1 else None)  # a moving bar for work without parts
            if done >= total:
                del shown[what]
                stack.close()

    with progress_listener(show_progress):
        try:
            yield
        finally:
            for _, stack in reversed(shown.values()):
                stack.close()
