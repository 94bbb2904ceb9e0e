"""The folder of the starts of trainings, so that units which begin alike begin only once.

A start is a matter of a seed and of code, and takes longer than what follows it. Inside
`remembered_in(folder)` starts are written there by whoever makes one first, under names that change
with whatever could change their weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_folder: ContextVar[Path | None] = ContextVar("toolgym_lab_starts", default=None)


@contextmanager
def remembered_in(folder: Path) -> Iterator[None]:
    """Keep starts in this folder, and take them from there."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def remembered_folder() -> Path | None:
    """The folder of starts; None where they are not kept."""
    return _folder.get()
