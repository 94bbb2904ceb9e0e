"""Plain processes with limits but no sandbox, for trusted programs.

The limits stop accidents (an infinite loop, excessive memory use) but not hostile programs. Plain
processes work on every system with the module `resource`, for example inside a container without
Landlock. `open_sandbox` uses plain processes only with `unsafe=True`.
"""

from __future__ import annotations

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
from aflowgym.sandbox.base import MB, Level, SandboxBase, crash_of, encode, result_of
from aflowgym.sandbox.process import BOOT, OPTIONS, environment
from aflowgym.sandbox.values import MOST_BYTES
from toolgym.errors import EnvironmentFault

_RUN: Final = """
import marshal, os
from aflowgym.sandbox import child, walls
call = marshal.load(sys.stdin.buffer)
walls.limit_space(int(sys.argv[2]))
walls.limit(walls.resource.RLIMIT_CPU, int(sys.argv[1]))
child.clean()
with open("result", "wb") as result:
    result.write(child.performed(call))
    result.flush()
    os._exit(0)
"""


class UnsafeSandbox(SandboxBase):
    """Plain processes for programs, with all permissions of the user."""

    level = Level("unsafe", ("limits",), (), ("a program can do whatever the user can",))

    def run(self, job: Job) -> Sequence[Outcome]:
        """Run the calls of a job, and return one outcome for each, in order.

        Raises:
            EnvironmentFault: If a process could not be started.
        """
        deadline = time.monotonic() + self.limits.job_seconds
        return [
            self._call(encode(job.program, job.function, *call, job.setup), deadline)
            for call in job.calls
        ]

    def _call(self, content: bytes, deadline: float) -> Outcome:
        seconds = min(self.limits.seconds, deadline - time.monotonic())
        numbers = (self.limits.cpu_seconds, 4 * self.limits.memory_mb * MB)
        with tempfile.TemporaryDirectory(prefix="toolgym-unsafe-") as folder:
            try:
                ended = subprocess.run(
                    [sys.executable, *OPTIONS, BOOT + _RUN, *map(str, numbers)],
                    input=content,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd=folder,
                    env=environment(),
                    timeout=max(0.0, seconds),
                )
            except subprocess.TimeoutExpired:
                return Outcome(error="timeout")
            except OSError as problem:
                raise EnvironmentFault(f"No process could be started: {problem}.") from problem
            if -ended.returncode in (signal.SIGXCPU, signal.SIGKILL):
                return Outcome(error="timeout")
            if ended.returncode < 0:
                return crash_of(-ended.returncode)
            result = Path(folder) / "result"
            if not result.exists():
                return result_of(b"")
            with result.open("rb") as file:
                return result_of(file.read(MOST_BYTES + 1))
