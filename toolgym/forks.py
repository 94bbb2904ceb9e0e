"""Fork safety: locks, connections and threads that a child must not take over.

A fork copies the memory and one thread. A lock that another thread held at that moment stays locked
in the child for ever, what it guarded may be half done, and a file, a server or a pool of threads
behind an object is still the parent's. So whoever owns such things has a method `renew` that makes
them afresh, and says so with `renew_in_child`: it is then called in the child before anything else.
"""

from __future__ import annotations

import os
from typing import Any, Final, Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """Has something that a forked child makes afresh."""

    def renew(self) -> None:
        """Make it, the first time or in a child; must neither wait nor touch what the parent has.

        Other threads of the parent may have been anywhere in a method; they are not in the child.
        """


_owners: Final[WeakSet[Renewable]] = WeakSet()
_inherited: Final[list[Any]] = []


def renew_in_child(owner: Renewable) -> None:
    """Call `owner.renew` in every process that is forked off, for as long as the owner lives."""
    _owners.add(owner)


def leave_to_parent(*things: Any) -> None:
    """Keep, unused, what belongs to the parent: to close it here could harm it there.

    Args:
        things: What is None or empty is not kept.
    """
    _inherited.extend(filter(None, things))


def _renew_all() -> None:
    for owner in list(_owners):
        owner.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
