"""Where built data goes, for every family: one folder that may be deleted at any time.

Whatever lies in it can be made again from what is installed, so nothing there needs a backup.
"""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """`TOOLGYM_CACHE`, or the platform's place for a user's caches.

    That is `~/.cache/toolgym` on Linux (`XDG_CACHE_HOME` counts), `~/Library/Caches/toolgym` on
    macOS, `%LOCALAPPDATA%\\toolgym\\Cache` on Windows. Nothing is created here.
    """
    chosen = os.environ.get("TOOLGYM_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return user_cache_path("toolgym", appauthor=False)
