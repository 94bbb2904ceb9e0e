"""bubblewrap around a worker, where it works: other namespaces, in which there is nothing else.

It takes from a program the little that Landlock leaves: that a path exists, how large a file is,
which processes there are. It cannot be required: containers and some distributions forbid the
namespaces that it needs, so a probe runs it once as it would be run, and what fails is told.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_SYSTEM: Final = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache")
_SECONDS: Final = 10.0


#: The worker's folder, in memory: there is nothing of it on the disk.
ROOT: Final = "/tmp/sandbox"


def command(program: str, also: Sequence[str] = ()) -> list[str]:
    """The words before a worker's own command line.

    Args:
        program: The path of `bwrap`.
        also: Further folders that have to be seen.
    """
    words = [program, "--unshare-all", "--new-session", "--cap-drop", "ALL"]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", ROOT]
    package = str(Path(__file__).resolve().parent.parent)
    for path in (*_SYSTEM, *_interpreter(), package, *also):
        words += ["--ro-bind-try", path, path]
    return [*words, "--chdir", "/", "--"]


def _interpreter() -> list[str]:
    """Where Python lies: its prefixes, and the links that lead to its program."""
    places = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    places.add(os.path.dirname(os.path.realpath(sys.executable)))
    return sorted(path for path in places if not path.startswith("/usr"))


@functools.lru_cache(maxsize=8)
def found(path: str | None = None) -> tuple[str | None, str]:
    """The `bwrap` that works here, or None with the reason.

    Args:
        path: Where to look, as in `PATH`; the environment's if not given.
    """
    program = shutil.which("bwrap", path=path)
    if program is None:
        return None, "bubblewrap is not installed"
    try:
        done = subprocess.run(
            [*command(program), sys.executable, "-S", "-c", "print('ready')"],
            capture_output=True,
            timeout=_SECONDS,
            env={},
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return None, f"bubblewrap does not start: {problem}"
    if done.stdout.strip() == b"ready":
        return program, ""
    message = done.stderr.decode(errors="replace").strip()[-200:]
    return None, f"bubblewrap does not work here: {message or f'exit status {done.returncode}'}"
