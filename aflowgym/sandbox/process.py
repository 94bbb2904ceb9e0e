"""A worker as its parent sees it: started, asked, and ended.

Call and result travel in memory files (`memfd_create`) whose descriptors the worker passes on to a
child. The parent looks at the result when the child is dead, so nobody can change it any more, and
a program that floods it fills a file of limited size that nobody reads.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple

from aflowgym.sandbox import worker
from aflowgym.sandbox.base import Limits
from aflowgym.sandbox.values import MOST_BYTES
from toolgym.errors import EnvironmentFault

START_SECONDS: Final = 60.0
#: How much later than a child's own end a worker may answer.
GRACE_SECONDS: Final = 10.0
_PACKAGE: Final = Path(__file__).resolve().parent
#: Imports the worker without the packages that it lies in, which import much else.
_BOOT: Final = """
import sys, types
for name, folder in zip(("aflowgym", "aflowgym.sandbox"), sys.argv[2:]):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
sys.path += sys.argv[4:]
from aflowgym.sandbox.worker import main
main()
"""
#: All that a worker knows of its surroundings; the hash seed makes the order of sets the same.
ENVIRONMENT: Final = {
    "PYTHONHASHSEED": "0",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def environment() -> dict[str, str]:
    """`ENVIRONMENT`, and where the system's linker finds Python, if it has to be told."""
    libraries = os.environ.get("LD_LIBRARY_PATH")
    return {**ENVIRONMENT, "LD_LIBRARY_PATH": libraries} if libraries else dict(ENVIRONMENT)


class WorkerLost(Exception):
    """A worker did not answer, or not in time; the next one may."""


class Ended(NamedTuple):
    """The end of a child, and what it left."""

    ending: bytes
    status: int
    content: bytes
    reason: str


def command(settings: dict[str, Any], paths: Sequence[str] = ()) -> list[str]:
    """The command line of a worker."""
    words = [sys.executable, "-s", "-S", "-P", "-B", "-c", _BOOT, json.dumps(settings)]
    return [*words, str(_PACKAGE.parent), str(_PACKAGE), *paths]


def _folder() -> str:
    try:
        return tempfile.mkdtemp(prefix="toolgym-sandbox-")
    except OSError as problem:
        raise EnvironmentFault(
            f"There is no temporary folder for a sandbox: {problem}."
        ) from problem


class Process:
    """A running worker.

    Raises:
        EnvironmentFault: It did not start.
        LookupError: It says that this machine lacks what it needs.
    """

    def __init__(self, limits: Limits, preload: Sequence[str] = ()) -> None:
        try:
            parent = os.pidfd_open(os.getpid())
        except OSError as problem:
            raise LookupError(f"the kernel has no pidfd_open: {problem}") from problem
        self.root = _folder()
        self.errors = os.memfd_create("errors")
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        settings = {
            "control": theirs.fileno(),
            "parent": parent,
            "root": self.root,
            "preload": list(preload),
            **asdict(limits),
        }
        words = command(settings, [path for path in sys.path if path] if preload else ())
        try:
            self.process = self._start(words, settings)
        except OSError as problem:
            self._clean()
            raise EnvironmentFault(f"A sandbox worker did not start: {problem}.") from problem
        finally:
            theirs.close()
            os.close(parent)
        self.greeting = self._greeting()

    def _start(self, words: list[str], settings: dict[str, Any]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
            pass_fds=(settings["control"], settings["parent"]),
            env=environment(),
            cwd="/",
            start_new_session=True,
        )

    def _greeting(self) -> dict[str, Any]:
        """What it says of itself when it is ready."""
        try:
            greeting: dict[str, Any] = json.loads(self._receive(START_SECONDS))
        except (WorkerLost, ValueError) as problem:
            output = os.pread(self.errors, 10_000, 0).decode(errors="replace")[-500:].strip()
            self.close()
            raise EnvironmentFault(
                f"A sandbox worker did not start: {problem}.",
                f"It said: {output}" if output else f"Does {sys.executable} -s -S -c pass run?",
            ) from problem
        if "error" in greeting:
            self.close()
            raise LookupError(greeting["error"])
        return greeting

    def call(self, content: bytes, seconds: float) -> Ended:
        """Run one call.

        Raises:
            WorkerLost: The worker is of no use any more.
        """
        job, result = os.memfd_create("call"), os.memfd_create("result")
        try:
            # Landlock has no rule for a file that lies nowhere; its mode keeps a child, which has
            # no capabilities, from opening it once more by way of /dev/fd.
            os.fchmod(result, 0)
            with open(os.dup(job), "wb", buffering=0) as file:
                file.write(content)
            os.lseek(job, 0, os.SEEK_SET)
            try:
                request = worker.REQUEST.pack(seconds)
                socket.send_fds(self.control, [request], [job, result])
            except OSError as problem:
                raise WorkerLost("it is gone") from problem
            report = self._receive(seconds + GRACE_SECONDS)
            ending, status = worker.REPORT.unpack_from(report)
            reason = report[worker.REPORT.size :].decode(errors="replace")
            return Ended(ending, status, os.pread(result, MOST_BYTES + 1, 0), reason)
        finally:
            os.close(job)
            os.close(result)

    def _receive(self, seconds: float) -> bytes:
        """The next message of the worker."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        if not poll.poll(seconds * 1000):
            raise WorkerLost("it did not answer in time")
        try:
            message = self.control.recv(1 << 16)
        except OSError as problem:
            raise WorkerLost("it is gone") from problem
        if not message:
            raise WorkerLost("it is gone")
        return message

    def close(self) -> None:
        """End it, wait for its end, and remove its folder."""
        self.control.close()  # a worker that reads this ends its child, and itself
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2.0)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._clean()

    def _clean(self) -> None:
        self._drop()
        shutil.rmtree(self.root, ignore_errors=True)

    def forget(self) -> None:
        """In a process that was forked off: it is the parent's worker, and stays it."""
        self._drop()
        self.process.returncode = 0  # so that nobody waits for what is no child of this process

    def _drop(self) -> None:
        """Close what leads to it, once."""
        self.control.close()
        errors, self.errors = self.errors, -1
        if errors >= 0:
            os.close(errors)
