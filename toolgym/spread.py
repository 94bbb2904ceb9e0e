"""Where the independent parts of some work are done: in this process, or in others.

An evaluation is made of batches of episodes and a synthesis of databases, and no part needs
another. A `Spread` does the parts somewhere and gives the results in the order of the parts, so
that they are the same wherever and in whatever order they were done. `HERE` does one after the
other in this process; installed packages bring others by the entry-point group `toolgym.spreads`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar, cast

from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.plugins import SPREADS, find_plugins

T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is."""
Tell = Callable[[int], None]
"""Called inside a part with how much of it is done."""
Work = Callable[[T, Tell | None], R]
"""What is done with each part; its second argument is None where nobody listens."""


@dataclass(frozen=True)
class Part(Generic[T]):
    """One part of some work.

    Attributes:
        name: What errors call it.
        size: How much it is, in the unit of the progress.
        about: What the work is given.
    """

    name: str
    size: int
    about: T


class PartLost(EnvironmentFault):
    """A part that cannot be done, since its worker was lost each time it was tried."""


class Spread(Protocol):
    """Somewhere that parts of work are done.

    Attributes:
        sends: Whether they are done in other processes. Then the work is a function at the top of a
            module (or a `functools.partial` of one), done perhaps more than once, and what it is
            given and gives can be pickled.
    """

    sends: bool

    def map(
        self, work: Work[T, R], parts: Sequence[Part[T]], progress: Progress | None = None
    ) -> Iterator[R]:
        """The result of each part, in order.

        Raises:
            PartLost: A part cannot be done; the message names it.
        """
        ...


class Here:
    """This process, in which one part is done after the other."""

    sends = False

    def map(
        self, work: Work[T, R], parts: Sequence[Part[T]], progress: Progress | None = None
    ) -> Iterator[R]:
        """The result of each part, done when it is asked for; what the work raises passes."""
        total, before = sum(part.size for part in parts), 0
        for part in parts:
            yield work(part.about, _telling(progress, before, total))
            before += part.size
            if progress is not None:
                progress(before, total)


HERE: Final = Here()


def _telling(progress: Progress | None, before: int, total: int) -> Tell | None:
    return None if progress is None else lambda done: progress(before + done, total)


def open_spread(name: str, address: str) -> AbstractContextManager[Spread]:
    """A registered spread, which is left at the end of the context.

    Args:
        name: As a package registers it, such as `ray`.
        address: Where it is, in its own words.

    Raises:
        ConfigurationError: No installed package brings it.
    """
    plugin = find_plugins(SPREADS).get(name)
    if plugin is None:
        raise ConfigurationError(
            f"no installed package brings {name!r}; run: pip install 'toolgym[{name}]'"
        )
    return cast("AbstractContextManager[Spread]", plugin.load()(address))
