"""Fork safety: renews locks, connections and threads in a forked child.

A fork copies the memory and one thread. A lock that another thread held at that moment stays locked
in the child forever, the data that it guarded may be incomplete, and a file, a server or a pool of
threads behind an object still belongs to the parent. So an object that owns such things has a
method `renew` that makes new ones; after `renew_in_child(owner)` it is called first in every child.
"""

from __future__ import annotations

import os
from typing import Any, Final, Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """An object with locks, connections or threads that a forked child must make anew."""

    def renew(self) -> None:
        """Make them, the first time or in a child; must neither wait nor use the parent's.

        Other threads of the parent may have been anywhere in a method; they are not in the child.
        """


_owners: Final[WeakSet[Renewable]] = WeakSet()
_inherited: Final[list[Any]] = []


def renew_in_child(owner: Renewable) -> None:
    """Call `owner.renew` in every process that is forked off, for as long as the owner lives."""
    _owners.add(owner)


def leave_to_parent(*things: Any) -> None:
    """Keep things of the parent alive and unused, since closing them here could harm the parent.

    Args:
        things: Connections, threads etc.; those that are None or empty are not kept.
    """
    _inherited.extend(filter(None, things))


def _renew_all() -> None:
    for owner in list(_owners):
        owner.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
