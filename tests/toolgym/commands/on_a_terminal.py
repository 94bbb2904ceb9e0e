"""Running `toolgym` with stderr, or both streams, on a real terminal."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
from pathlib import Path
from typing import NamedTuple

from tests.toolgym.commands.command_line import SCRIPT, environ


class Shown(NamedTuple):
    """What a process left: its status, its stdout, and what was written to its terminal."""

    returncode: int
    stdout: str
    terminal: str


def run_on_terminal(
    *arguments: str,
    path: Path | None = None,
    width: int = 100,
    both: bool = False,
    interrupt_at: str = "",
    **more: str,
) -> Shown:
    """Run `toolgym ARGUMENTS` with stderr on a terminal.

    Args:
        path: Becomes PYTHONPATH.
        width: Columns of the terminal.
        both: Stdout is on the terminal, too.
        interrupt_at: Press Ctrl-C once this was written to the terminal.
        more: Environment variables.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    env = environ(path, **{"TERM": "xterm-256color", **more})
    del env["COLUMNS"]
    with subprocess.Popen(
        [SCRIPT, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs if both else subprocess.PIPE,
        stderr=theirs,
        env=env,
        text=True,
    ) as process:
        os.close(theirs)
        seen = b""
        while piece := _read(ours):
            seen += piece
            if interrupt_at and interrupt_at.encode() in seen:
                process.send_signal(signal.SIGINT)
                interrupt_at = ""
        os.close(ours)
        out = process.stdout.read() if process.stdout else ""
        code = process.wait(timeout=600)
    return Shown(code, out, seen.decode().replace("\r\n", "\n"))


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says "input/output error" where others say "end of file"
        return b""
