"""The sandbox of warm workers: a pool of them, each call in a fresh child behind walls.

A call is a fork: it starts from a worker that has run nothing, so nothing of an earlier call is
left, of the same job or of another. That costs about three milliseconds a call, and the program is
compiled anew each time. A job's calls run one after the other in one worker; several jobs run at
the same time, as many as there are workers, from any thread.

A worker that is lost is replaced, and the call is made once more; if that one is lost too, it is
the machine's failure (`EnvironmentFault`), and so is a wall that cannot be put up. Whatever else
becomes of a child is the program's doing, and an `Outcome`: a program must not be able to leave its
episode unscored.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from aflowgym.answers.code import Outcome
from aflowgym.operators.context import Job
from aflowgym.sandbox import selftest, worker
from aflowgym.sandbox.base import (
    MB,
    Level,
    Limits,
    SandboxBase,
    SandboxRefused,
    content_of,
    crash_of,
    encode,
    result_of,
)
from aflowgym.sandbox.process import Ended, Process, WorkerLost
from toolgym.errors import ConfigurationError, EnvironmentFault

_OPEN: weakref.WeakSet[WalledSandbox] = weakref.WeakSet()


class WalledSandbox(SandboxBase):
    """Programs in forked children behind seccomp and Landlock.

    Args:
        preload: Modules that programs may import besides the standard library, such as `sympy`.

    Raises:
        SandboxRefused: The walls do not stand on this machine; says which.
        EnvironmentFault: No worker could be started.
    """

    def __init__(
        self,
        workers: int = 2,
        limits: Limits | None = None,
        preload: Sequence[str] = (),
    ) -> None:
        if workers < 1:
            raise ConfigurationError("workers must be at least 1.")
        self.preload = tuple(preload)
        self.level = Level("walled", ())
        self._all: set[Process] = set()
        super().__init__(workers, limits)
        _OPEN.add(self)
        self._release(self._acquire())

    def renew(self) -> None:
        """Begin without workers: at first, and in a process that was forked off."""
        for process in self._all:
            process.forget()
        self._change = threading.Condition()
        self._all = set()
        self._idle: list[Process] = []
        self._starting = 0
        self.closed = False

    def run(self, job: Job) -> Sequence[Outcome]:
        """One outcome for each call of a job, in order.

        Raises:
            EnvironmentFault: The machine failed, not the program.
        """
        with self._worker() as lease:
            deadline = time.monotonic() + self.limits.job_seconds
            return [self._call(lease, content_of(job, call), deadline) for call in job.calls]

    def _call(self, lease: Lease, content: bytes, deadline: float) -> Outcome:
        if len(content) > self.limits.program_mb * MB:
            return Outcome(error="too_large: the program and its arguments are too long")
        for _ in range(2):
            seconds = min(self.limits.seconds, deadline - time.monotonic())
            if seconds <= 0:
                return Outcome(error="timeout")
            try:
                return outcome_of(lease.process.call(content, seconds))
            except OSError as problem:
                raise EnvironmentFault(f"A sandbox cannot be reached: {problem}.") from problem
            except WorkerLost:
                self._close(lease.process)
                lease.process = self._start()
        raise EnvironmentFault(
            "Two sandbox workers were lost over the same call.",
            "Is the machine out of memory? Fewer workers or a lower Limits.memory_mb may help.",
        )

    @contextlib.contextmanager
    def _worker(self) -> Iterator[Lease]:
        """A worker for one job; it is kept only if nothing interrupted its work."""
        lease = Lease(self._acquire())
        try:
            yield lease
        except BaseException:
            self._close(lease.process)
            raise
        self._release(lease.process)

    def _acquire(self) -> Process:
        with self._change:
            while not self._idle and len(self._all) + self._starting >= self.workers:
                self._change.wait()
            if self.closed:
                raise ConfigurationError("the sandbox is closed; open another one.")
            if self._idle:
                return self._idle.pop()
        return self._start()

    def _release(self, process: Process) -> None:
        with self._change:
            if not self.closed:
                self._idle.append(process)
                self._change.notify()
                return
        self._close(process)

    def _close(self, process: Process) -> None:
        process.close()
        with self._change:
            self._all.discard(process)
            self._change.notify()

    def _start(self) -> Process:
        """A new worker that has proved its walls."""
        with self._change:
            self._starting += 1
        process = None
        try:
            process = self._start_tested()
        finally:
            with self._change:
                self._starting -= 1
                if process is not None:
                    self._all.add(process)
                self._change.notify()
        return process

    def _start_tested(self) -> Process:
        try:
            process = Process(self.limits, self.preload)
        except LookupError as problem:
            raise SandboxRefused(f"the walls do not stand here: {problem}.") from problem

        def run(program: str, function: str, arguments: str) -> Outcome:
            call = encode(program, function, arguments, "{}")
            return outcome_of(process.call(call, 30.0))

        try:
            proved = selftest.prove(run)
        except BaseException as problem:
            process.close()
            if isinstance(problem, selftest.Open):
                raise SandboxRefused(f"the walls do not hold here: {problem}.") from problem
            if isinstance(problem, WorkerLost):
                raise EnvironmentFault(f"A sandbox worker was lost: {problem}.") from problem
            raise
        self.level = level_of(process.greeting, proved)
        return process

    def close(self) -> None:
        """End the workers that are idle now, and the others after their jobs."""
        with self._change:
            self.closed = True
            idle, self._idle = self._idle, []
            self._change.notify_all()
        for process in idle:
            self._close(process)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.workers, self.limits, self.preload)


@dataclass
class Lease:
    """The worker of a job, which may be replaced."""

    process: Process


def outcome_of(ended: Ended) -> Outcome:
    """The outcome of a call, from how its child ended and what it left.

    Raises:
        EnvironmentFault: The walls could not be put up, and the program did not run.
    """
    if ended.ending == worker.NO_WALLS:
        raise EnvironmentFault(f"The walls of a sandbox did not stand: {ended.reason}.")
    if ended.ending == worker.TIMEOUT:
        return Outcome(error="timeout")
    if ended.ending == worker.DISK:
        return Outcome(error="disk: it wrote too much")
    if os.WIFSIGNALED(ended.status):
        return crash_of(os.WTERMSIG(ended.status))
    return result_of(ended.content)


def level_of(facts: dict[str, Any], proved: tuple[str, ...]) -> Level:
    """The report of a worker that stands."""
    walls = (
        f"seccomp, a list of allowed calls ({facts['machine']})",
        f"Landlock, version {facts['landlock']}",
        "no capabilities",
        "limits",
    )
    seen = "stat() and readlink() tell of any path that it exists, its size, times and link"
    return Level("walled", walls, proved, (seen,))


@atexit.register
def _close_all() -> None:
    for sandbox in list(_OPEN):
        sandbox.close()
