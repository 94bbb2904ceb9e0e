"""Fork safety: recreates locks, connections and threads in a forked child process.

A fork copies the memory, but only one thread. A lock that another thread holds at the time of the
fork stays locked in the child forever, and the data that the lock protects may be inconsistent.
Open files, server connections and thread pools still belong to the parent. An object that owns such
resources has a method `renew` that recreates them. `renew_in_child(owner)` arranges for `renew` to
be called at the start of every child process.
"""

from __future__ import annotations

import os
from typing import Any, Final, Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """An object with locks, connections or threads that a forked child must recreate."""

    def renew(self) -> None:
        """Create the resources without waiting and without using the old ones.

        This method is called when the object is created, and in each child process. The parent's
        threads do not exist in the child, and each may have been in the middle of a method at the
        fork.
        """


_owners: Final[WeakSet[Renewable]] = WeakSet()
_inherited: Final[list[Any]] = []


def renew_in_child(owner: Renewable) -> None:
    """Call `owner.renew` in every forked child process, as long as the owner exists."""
    _owners.add(owner)


def leave_to_parent(*resources: Any) -> None:
    """Keep the parent's resources open but unused, since closing them could affect the parent.

    Args:
        resources: Connections, threads and similar objects. None and empty objects are ignored.
    """
    _inherited.extend(filter(None, resources))


def _renew_all() -> None:
    for owner in list(_owners):
        owner.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
