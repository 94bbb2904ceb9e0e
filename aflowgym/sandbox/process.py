"""The parent's interface to a worker process.

Calls and results are stored in memory files (`memfd_create`), and the worker passes their
descriptors to a child. The parent reads the result after the child has ended, when the program can
no longer change the result. If the output of a program is too large, it reaches the limit on the
file size, and the file is not read.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from aflowgym.answers.code import Outcome
from aflowgym.sandbox import worker
from aflowgym.sandbox.base import Limits, SandboxRefused, crash_of, result_of
from aflowgym.sandbox.values import MOST_BYTES
from toolgym.errors import EnvironmentFault

START_SECONDS: Final = 60.0
#: Seconds after the end of a child within which a worker must answer.
GRACE_SECONDS: Final = 10.0
_ROOT: Final = str(Path(__file__).resolve().parents[2])
#: Options of Python, and the beginning of a script that imports modules of this folder without its
#: packages, which import many others.
OPTIONS: Final = ("-s", "-S", "-P", "-B", "-c")
BOOT: Final = f"""
import sys, types
for name, folder in (("aflowgym", "aflowgym"), ("aflowgym.sandbox", "aflowgym/sandbox")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [{_ROOT!r} + "/" + folder]
"""
_WORK: Final = """
sys.path += sys.argv[2:]
from aflowgym.sandbox.worker import main
main()
"""


def environment() -> dict[str, str]:
    """Return the environment for worker processes, with a fixed iteration order of sets."""
    found = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "TZ": "UTC"}
    for library in ("OMP", "OPENBLAS", "MKL"):
        found[f"{library}_NUM_THREADS"] = "1"
    if libraries := os.environ.get("LD_LIBRARY_PATH"):  # the linker may need it to find Python
        found["LD_LIBRARY_PATH"] = libraries
    return found


class WorkerLost(EnvironmentFault):
    """Raised if a worker has ended or did not answer in time. Another worker may succeed."""

    def __init__(self, problem: object = "it has ended") -> None:
        super().__init__(
            f"A sandbox worker was lost: {problem}.",
            "If the machine is out of memory, use fewer workers or lower Limits.memory_mb.",
        )


class Process:
    """A running worker.

    Raises:
        EnvironmentFault: If the worker did not start.
        SandboxRefused: If this machine lacks a feature that the worker requires.
    """

    def __init__(self, limits: Limits, preload: Sequence[str] = ()) -> None:
        try:
            parent = os.pidfd_open(os.getpid())
        except OSError as problem:
            raise SandboxRefused(f"the kernel has no pidfd_open: {problem}.") from problem
        self.errors = os.memfd_create("errors")
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        descriptors = {"control": theirs.fileno(), "parent": parent}
        settings = {**descriptors, "preload": list(preload), **asdict(limits)}
        paths = [path for path in sys.path if path] if preload else []
        try:
            self.process = subprocess.Popen(
                [sys.executable, *OPTIONS, BOOT + _WORK, json.dumps(settings), *paths],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self.errors,
                pass_fds=tuple(descriptors.values()),
                env=environment(),
                cwd="/",
                start_new_session=True,
            )
        except OSError as problem:
            self.control.close()
            os.close(self.errors)
            raise EnvironmentFault(f"A sandbox worker did not start: {problem}.") from problem
        finally:
            theirs.close()
            os.close(parent)
        self.greeting = self._greeting()

    def _greeting(self) -> dict[str, Any]:
        """Return the report that the worker sends when it is ready."""
        try:
            greeting: dict[str, Any] = json.loads(self._receive(START_SECONDS))
        except (WorkerLost, ValueError) as problem:
            output = os.pread(self.errors, 10_000, 0).decode(errors="replace")[-500:].strip()
            self.close()
            raise EnvironmentFault(
                "A sandbox worker did not start.",
                f"Its output: {output}"
                if output
                else f"Check whether {sys.executable} -s -S -c pass runs.",
            ) from problem
        if "error" in greeting:
            self.close()
            raise SandboxRefused(
                f"a restriction does not work on this machine: {greeting['error']}."
            )
        return greeting

    def call(self, content: bytes, seconds: float) -> Outcome:
        """Run one call.

        Raises:
            WorkerLost: If the worker has ended or does not answer, and must be closed.
            EnvironmentFault: If the restrictions could not be applied, or no memory file could be
                created.
        """
        try:
            job, result = os.memfd_create("call"), os.memfd_create("result")
        except OSError as problem:
            raise EnvironmentFault(f"A sandbox has no file for a call: {problem}.") from problem
        try:
            # Landlock has no rule for a file without a path. Its mode prevents a child, which has
            # no capabilities, from opening it again through /dev/fd.
            os.fchmod(result, 0)
            with open(os.dup(job), "wb", buffering=0) as file:
                file.write(content)
            os.lseek(job, 0, os.SEEK_SET)
            try:
                request = worker.REQUEST.pack(seconds)
                socket.send_fds(self.control, [request], [job, result])
            except OSError as problem:
                raise WorkerLost(problem) from problem
            report = self._receive(seconds + GRACE_SECONDS)
            return outcome_of(report, os.pread(result, MOST_BYTES + 1, 0))
        finally:
            os.close(job)
            os.close(result)

    def _receive(self, seconds: float) -> bytes:
        """Return the next message of the worker."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        if not poll.poll(seconds * 1000):
            raise WorkerLost("it did not answer in time")
        with contextlib.suppress(OSError):
            if message := self.control.recv(1 << 16):
                return message
        raise WorkerLost

    def close(self) -> None:
        """Stop the worker and wait until it has ended."""
        with contextlib.suppress(OSError):  # needed for copies of the socket in forked children
            self.control.shutdown(socket.SHUT_RDWR)
        self.control.close()  # a worker that reads this ends its child and itself
        os.close(self.errors)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2.0)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def outcome_of(report: bytes, content: bytes) -> Outcome:
    """Return the outcome of a call, from the worker's report and the output of the child.

    Raises:
        EnvironmentFault: If the restrictions could not be applied, so that the program was not run.
    """
    ending, status = worker.REPORT.unpack_from(report)
    if ending == worker.NO_WALLS:
        reason = report[worker.REPORT.size :].decode(errors="replace")
        raise EnvironmentFault(f"The restrictions of a sandbox could not be applied: {reason}.")
    if ending == worker.TIMEOUT:
        return Outcome(error="timeout")
    if os.WIFSIGNALED(status):
        return crash_of(os.WTERMSIG(status))
    return result_of(content)
