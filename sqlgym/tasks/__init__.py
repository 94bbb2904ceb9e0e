"""Tasks: a question with its gold query, its hardness, and the verdict on its gold.

Read `task` first, then `gold`, which keeps its verdicts between processes; `hardness` is Spider's
scale, `splits` holds out tasks, databases and shapes.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """`load_tasks`, which pages of version 0.1.0 import from here."""
    if name == "load_tasks":
        return importlib.import_module("sqlgym").load_tasks
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
