"""The self-test of a sandbox: a program that tries to escape, which runs before any other program.

The test program reports which escape attempts succeeded. In addition, the parent checks whether a
file was written and whether a connection was made. If any attempt succeeds, the sandbox is
rejected.
"""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from aflowgym.answers.code import Outcome
from aflowgym.answers.literals import read_literal
from aflowgym.sandbox.base import SandboxRefused, encode

PROGRAM: Final = """
import os, socket


def attempts(secret, outside, port, parent):
    def read():
        open(secret).read()

    def write():
        open(outside, "w").write("x")

    def touch():
        os.utime(secret)

    def connect():
        socket.create_connection(("127.0.0.1", port), 1)

    def fork():
        if os.fork() == 0:
            os._exit(0)

    def start():
        os.execv("/bin/true", ["true"])

    def signal_parent():
        os.kill(parent, 0)

    def memory_of_parent():
        open(f"/proc/{parent}/mem", "rb")

    def environment():
        if not set(os.environ) <= {"HOME", "LANG", "TZ"}:
            return
        raise PermissionError

    def descriptors():
        for number in range(3, 256):
            try:
                os.fstat(number)
            except OSError:
                continue
            if number != 3:
                return
        raise PermissionError

    tried = {}
    for attempt in (
        read, write, touch, connect, fork, signal_parent, memory_of_parent, environment,
        descriptors, start,
    ):
        try:
            attempt()
        except (OSError, MemoryError):
            tried[attempt.__name__] = False
        else:
            tried[attempt.__name__] = True
    return tried
"""
#: Descriptions of the attempts of the program, for the report.
MEANINGS: Final = {
    "read": "reading a secret file",
    "write": "writing a file",
    "touch": "changing a file's times",
    "connect": "connecting",
    "fork": "forking",
    "start": "starting a program",
    "signal_parent": "signaling the parent",
    "memory_of_parent": "reading the parent's memory",
    "environment": "reading the environment",
    "descriptors": "using inherited descriptors",
}


def prove(run: Callable[[bytes], Outcome]) -> tuple[str, ...]:
    """Run the self-test, and return the attempts that were blocked.

    Args:
        run: A function that runs an encoded call.

    Raises:
        SandboxRefused: If an attempt was not blocked, or the test program does not run.
    """
    with _bait() as (folder, secret, listener):
        outside = folder / "outside"
        before = secret.stat().st_mtime_ns
        port = listener.getsockname()[1]
        arguments = repr((str(secret), str(outside), port, os.getpid()))
        outcome = run(encode(PROGRAM, "attempts", arguments))
        tried = _read(outcome)
        got_out = [MEANINGS[name] for name, done in tried.items() if done]
        if outside.exists() or secret.stat().st_mtime_ns != before or _is_visited(listener):
            got_out.append("something outside was changed or reached")
    if got_out or tried.keys() != MEANINGS.keys():
        raise SandboxRefused(
            "the sandbox does not confine programs on this machine; the self-test succeeded in:"
            f" {', '.join(got_out) or 'nothing, but it is incomplete'}."
        )
    return tuple(MEANINGS.values())


def _read(outcome: Outcome) -> dict[str, Any]:
    if outcome.error:
        raise SandboxRefused(f"the self-test of the sandbox does not run: {outcome.error}.")
    tried = read_literal(outcome.value)
    return tried if isinstance(tried, dict) else {}


@contextmanager
def _bait() -> Iterator[tuple[Path, Path, socket.socket]]:
    """Create a folder, a file with a secret in it, and a listening socket."""
    with (
        tempfile.TemporaryDirectory(prefix="toolgym-sandbox-") as name,
        socket.socket() as listener,
    ):
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        secret = Path(name) / "secret"
        secret.write_text(secrets.token_hex())
        yield Path(name), secret, listener


def _is_visited(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True
