"""Progress of commands on stderr: what is done, how far it is, how long it took and will take.

All bars of a process are lines of one display. A command shows its own work by `progress_bar`, a
training its phases by `Bars`, and what a library tells of its long work (`toolgym.long_work`) is
shown by `watched`, whether or not another bar is there.

Nothing is shown where nobody looks: in a pipe, in a log, on a terminal without cursor control, or
with `--quiet`. Stdout is for results and is never touched. `NO_COLOR` takes the colours away, and a
terminal of fewer than `NARROW` columns gets numbers without a bar.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from toolgym.commands import console
from toolgym.long_work import listening

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Display
    from rich.progress import ProgressColumn, TaskID

NARROW: Final = 60


class Progress(Protocol):
    """Called with how much is done and how much there is; None where nobody knows that yet."""

    def __call__(self, done: int, total: int | None) -> None:
        """Show it."""


class _Bars:
    """The display that all bars of a process share, there as long as one of them is."""

    def __init__(self) -> None:
        self._display: Display | None = None
        self._users = 0

    @contextmanager
    def open(self) -> Iterator[Display | None]:
        """The display; None where nobody looks."""
        if self._display is None:
            screen = console(stderr=True)
            if not is_watched(screen):
                yield None
                return
            from rich.progress import Progress as Display

            # Not into a file: what is printed to stdout meanwhile would go to stderr.
            both = sys.stdout.isatty()
            self._display = Display(*_columns(screen.width), console=screen, redirect_stdout=both)
            self._display.start()
        display = self._display
        self._users += 1
        try:
            yield display
        finally:
            if self._display is display:
                self._users -= 1
                if not self._users:
                    self.close()

    def close(self) -> None:
        """Take the display away, whoever still uses it."""
        self._users = 0
        display, self._display = self._display, None
        if display is not None:
            # An empty display would leave an empty line.
            display.live.transient = not any(task.visible for task in display.tasks)
            display.stop()


_BARS: Final = _Bars()


def is_watched(screen: Console) -> bool:
    """Whether a line that moves can be seen: stderr is a terminal that moves its cursor."""
    return sys.stderr.isatty() and screen.is_interactive


def _columns(width: int) -> list[ProgressColumn]:
    from rich import progress

    columns: list[ProgressColumn] = [
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.fields[note]}", markup=False),
    ]
    return columns if width >= NARROW else [columns[0], *columns[2:4]]


@contextmanager
def progress_bar(what: str, *, quiet: bool = False) -> Iterator[Progress]:
    """A bar for some work; yields the function that moves it.

    Args:
        what: Is being done, in a word or two.
        quiet: Show nothing.
    """
    if quiet:
        yield _unseen
        return
    with _BARS.open() as display:
        if display is None:
            yield _unseen
            return
        task = display.add_task(what, total=None, note="")
        is_seen = False

        def show(done: int, total: int | None) -> None:
            nonlocal is_seen
            is_seen = True
            display.update(task, completed=done, total=total)

        try:
            yield show
        except BaseException:
            is_seen = False  # what went wrong is told alone
            raise
        finally:
            if not is_seen:
                display.remove_task(task)


def _unseen(done: int, total: int | None) -> None:
    """What becomes of progress that nobody looks at."""


class Bars:
    """A bar for each phase of a run, with a word on how it stands."""

    @contextmanager
    def phase(self, title: str, total: int) -> Iterator[Callable[[int, str], None]]:
        """A context that lasts as long as a phase of `total` units."""
        with _BARS.open() as display:
            if display is None:
                yield lambda done, note: None
                return
            task = display.add_task(f"{title:<24}", total=total, note="")
            yield lambda done, note: display.update(task, completed=done, note=note)


@contextmanager
def watched(*, quiet: bool = False) -> Iterator[None]:
    """A context in which the long work of libraries is shown, each as long as it lasts.

    At its end no bar is left. An interrupt can come where a context was entered and nothing yet
    waits to leave it; its bar would be drawn once more below what is told next.
    """
    if quiet:
        yield
        return
    work = _LongWork()
    try:
        with listening(work.hear):
            yield
    finally:
        work.close()
        _BARS.close()


class _LongWork:
    """A listener with a bar for each work that it hears of, from its beginning to its end."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[Display, TaskID, ExitStack]] = {}

    def hear(self, what: str, done: int, total: int) -> None:
        """Show how far it is."""
        if what not in self._shown and done < total:
            self._begin(what, total)
        if what in self._shown:
            display, task, end = self._shown[what]
            display.update(task, completed=done)
            if done >= total:
                del self._shown[what]
                end.close()

    def _begin(self, what: str, total: int) -> None:
        end = ExitStack()
        display = end.enter_context(_BARS.open())
        if display is None:
            return
        # A work that tells its beginning and its end only has a bar that moves by itself.
        task = display.add_task(what, total=total if total > 1 else None, note="")
        end.callback(display.remove_task, task)
        self._shown[what] = (display, task, end)

    def close(self) -> None:
        """Take away what did not come to its end."""
        for _, _, end in self._shown.values():
            end.close()
        self._shown.clear()
