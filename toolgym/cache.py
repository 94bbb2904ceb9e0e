"""The cache folder of all packages. It may be deleted at any time; its contents are built again."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """Return the folder in `TOOLGYM_CACHE`, else the platform's cache folder, without creating it.

    The platform's cache folder is `~/.cache/toolgym` on Linux (or under `XDG_CACHE_HOME`),
    `~/Library/Caches/toolgym` on macOS, and `%LOCALAPPDATA%\\toolgym\\Cache` on Windows.
    """
    chosen = os.environ.get("TOOLGYM_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return user_cache_path("toolgym", appauthor=False)
