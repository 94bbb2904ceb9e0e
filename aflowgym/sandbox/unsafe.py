"""No sandbox: a plain process with limits, for programs that one would run oneself.

It stops what is clumsy (an endless loop, too much memory, a flood), and nothing that is hostile: a
program can read and write what the user can, and connect. `open_sandbox` takes it only where
`unsafe=True` is said. It runs on every system that has `resource`, and each call is a start of
Python, some ten times slower than a warm worker.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from aflowgym.answers.code import Outcome
from aflowgym.operators.context import Job
from aflowgym.sandbox import values
from aflowgym.sandbox.base import (
    MB,
    Level,
    Limits,
    SandboxBase,
    content_of,
    crash_of,
    result_of,
)
from aflowgym.sandbox.process import environment
from toolgym.errors import EnvironmentFault

_BOOT: Final = """
import marshal, os, sys, types
for name, folder in zip(("aflowgym", "aflowgym.sandbox"), sys.argv[1:]):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
from aflowgym.sandbox import child, walls
call = marshal.load(sys.stdin.buffer)
walls.limit_space(*map(int, sys.argv[4:7]))
walls.limit(walls.resource.RLIMIT_CPU, int(sys.argv[3]))
child.clean(os.getcwd())
with open("result", "wb") as result:
    result.write(child.performed(call))
    result.flush()
    os._exit(0)
"""


class UnsafeSandbox(SandboxBase):
    """Programs in plain processes.

    Args:
        limits: Of each call; the size of the folder is not watched.
    """

    def __init__(self, workers: int = 2, limits: Limits | None = None) -> None:
        super().__init__(workers, limits)
        gaps = ("a program can do whatever the user can",)
        self.level = Level("unsafe", ("limits",), (), gaps)

    def run(self, job: Job) -> Sequence[Outcome]:
        """One outcome for each call of a job, in order.

        Raises:
            EnvironmentFault: No process could be started.
        """
        deadline = time.monotonic() + self.limits.job_seconds
        return [self._call(content_of(job, call), deadline) for call in job.calls]

    def _call(self, content: bytes, deadline: float) -> Outcome:
        seconds = min(self.limits.seconds, deadline - time.monotonic())
        if seconds <= 0:
            return Outcome(error="timeout")
        with tempfile.TemporaryDirectory(prefix="toolgym-unsafe-") as folder:
            status = self._ran(content, folder, seconds)
            result = Path(folder) / "result"
            if status is None or -status in (signal.SIGXCPU, signal.SIGKILL):
                return Outcome(error="timeout")
            if status < 0:
                return crash_of(-status)
            try:
                with result.open("rb") as file:
                    written = file.read(values.MOST_BYTES + 1)
            except OSError:
                written = b""
        return result_of(written)

    def _ran(self, content: bytes, folder: str, seconds: float) -> int | None:
        """The exit status of a process; None if it took too long."""
        chosen = self.limits
        numbers = (chosen.cpu_seconds, 4 * chosen.memory_mb * MB, chosen.file_mb * MB, 64)
        package = Path(__file__).resolve().parent
        words = [sys.executable, "-s", "-S", "-P", "-B", "-c", _BOOT]
        words += [str(package.parent), str(package), *map(str, numbers)]
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env=environment(),
                start_new_session=True,
            )
        except OSError as problem:
            raise EnvironmentFault(f"No process could be started: {problem}.") from problem
        try:
            process.communicate(content, seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)
        return process.returncode


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and those of its group that are left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
