"""Progress bars on stderr: what is done, how much of it, the time it took and will take.

Bars appear on a terminal only: not in a pipe or a log, not with TERM=dumb, and not with `--quiet`.
Results go to stdout, which is never touched. `NO_COLOR` removes the colors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Protocol

from toolgym.commands import harmless
from toolgym.long_work import listening

if TYPE_CHECKING:
    from rich.console import Console

NARROW = 60  # columns; below this there is no room for a bar


class Show(Protocol):
    """Updates a bar."""

    def __call__(self, done: int, total: int | None, note: str = "") -> None:
        """Show how much is done, how much there is (None if unknown), and a remark."""


@cache
def _screen() -> Console:
    """The console of all bars: bars that are open at the same time share one display."""
    from rich.console import Console

    return Console(stderr=True)


@contextmanager
def progress_bar(what: str, *, quiet: bool = False, transient: bool = False) -> Iterator[Show]:
    """Show a progress bar inside this context.

    Args:
        what: The work, in a word or two.
        quiet: Show nothing.
        transient: Remove the bar at the end. It is also removed when the work fails.

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
    # Only on a terminal: redirecting stdout would send what is printed to a file to stderr.
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
    """A progress bar for each phase of a training."""

    @contextmanager
    def phase(self, title: str, total: int) -> Iterator[Callable[[int, str], None]]:
        """Show a bar for a phase of `total` steps; yields a function of steps done and a remark."""
        with progress_bar(f"{title:<24}") as show:
            show(0, total)
            yield lambda done, note: show(done, total, note)


@contextmanager
def long_work_shown(*, quiet: bool = False) -> Iterator[None]:
    """Show a bar for each long work that a library reports (`toolgym.long_work`)."""
    shown: dict[str, tuple[Show, ExitStack]] = {}

    def hear(what: str, done: int, total: int) -> None:
        if what not in shown and done < total:
            stack = ExitStack()
            shown[what] = (
                stack.enter_context(progress_bar(what, quiet=quiet, transient=True)),
                stack,
            )
        if what in shown:
            show, stack = shown[what]
            show(done, total if total > 1 else None)  # work without parts has a moving bar
            if done >= total:
                del shown[what]
                stack.close()

    with listening(hear):
        try:
            yield
        finally:
            for _, stack in reversed(shown.values()):
                stack.close()
