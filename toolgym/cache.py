"""The cache folder that `toolgym`, `sqlgym`, `aflowgym` and `adapters` share.

The folder can be deleted at any time and is recreated when needed.
"""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """Return the cache folder, without creating it.

    The environment variable `TOOLGYM_CACHE` sets the folder. The default is the cache folder of the
    platform: `~/.cache/toolgym` on Linux (or under `XDG_CACHE_HOME`), `~/Library/Caches/toolgym` on
    macOS, and `%LOCALAPPDATA%\\toolgym\\Cache` on Windows.
    """
    chosen = os.environ.get("TOOLGYM_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return user_cache_path("toolgym", appauthor=False)
