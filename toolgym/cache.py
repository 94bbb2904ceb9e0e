"""The folder for built data of all families. It may be deleted at any time and is built again."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """The folder in `TOOLGYM_CACHE`, else the platform's folder for caches. It is not created.

    The platform's is `~/.cache/toolgym` on Linux (or under `XDG_CACHE_HOME`),
    `~/Library/Caches/toolgym` on macOS, and `%LOCALAPPDATA%\\toolgym\\Cache` on Windows.
    """
    chosen = os.environ.get("TOOLGYM_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return user_cache_path("toolgym", appauthor=False)
