"""The sandbox with preloaded workers, where each call runs in a new, restricted child process.

Each call runs in a fork of a worker that has never run a program, so the call is not affected by
earlier calls of any job. The calls of a job run one after the other in one worker. Several jobs can
run at the same time, one per worker, from any thread.

If a worker ends unexpectedly or does not answer, it is replaced, and the call is repeated. If the
new worker fails as well, or a restriction cannot be applied, an `EnvironmentFault` is raised. Any
other termination of a child results in an `Outcome`, because a program must not be able to prevent
its episode from being scored.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from aflowgym.answers.code import Outcome
from aflowgym.sandbox import selftest
from aflowgym.sandbox.base import MB, Level, Limits, SandboxBase, encode
from aflowgym.sandbox.process import Process, WorkerLost
from toolgym.errors import ConfigurationError
from toolgym.forks import leave_to_parent

if TYPE_CHECKING:
    from aflowgym.operators.context import Job

_LONGEST_CALL: Final = 4 * MB
_GAP: Final = "stat() and readlink() tell of any path that it exists, its size, times and link"


class WalledSandbox(SandboxBase):
    """A sandbox of forked child processes that are restricted by seccomp and Landlock.

    Args:
        workers: Maximum number of parallel jobs.
        limits: Limits of each call.
        preload: Modules that programs can import in addition to the standard library, such as
            `sympy`.

    Raises:
        SandboxRefused: If a restriction does not work on this machine. The message names it.
        EnvironmentFault: If a worker could not be started.
    """

    level: Level

    def __init__(
        self,
        workers: int = 2,
        limits: Limits | None = None,
        preload: Sequence[str] = (),
    ) -> None:
        if workers < 1:
            raise ConfigurationError("workers must be at least 1.")
        self.preload = tuple(preload)
        self._idle = queue.LifoQueue[Process | None]()
        super().__init__(workers, limits)
        self._idle.get()
        self._idle.put(self._start())

    def renew(self) -> None:
        """Initialize the sandbox without workers; this method is also called in a forked child."""
        leave_to_parent(*self._idle.queue)
        self._idle = queue.LifoQueue()  # None for a worker that has not been started
        for _ in range(self.workers):
            self._idle.put(None)

    def run(self, job: Job) -> Sequence[Outcome]:
        """Run the calls of a job, and return one outcome for each, in order.

        Raises:
            EnvironmentFault: If the sandbox itself failed, as opposed to the program.
        """
        process, done = self._idle.get(), False
        try:
            if self.closed:
                raise ConfigurationError("the sandbox is closed; open another one.")
            process = process or self._start()
            outcomes = list[Outcome]()
            deadline = time.monotonic() + self.limits.job_seconds
            for call in job.calls:
                content = encode(job.program, job.function, *call, job.setup)
                try:
                    outcomes.append(self._call(process, content, deadline))
                except WorkerLost:
                    process.close()
                    process = None
                    process = self._start()
                    outcomes.append(self._call(process, content, deadline))
            done = True
            return outcomes
        finally:
            if process is not None and not done:  # the worker may still be busy
                process.close()
                process = None
            self._idle.put(process)
            if self.closed:
                self.close()

    def _call(self, process: Process, content: bytes, deadline: float) -> Outcome:
        if len(content) > _LONGEST_CALL:
            return Outcome(error="too_large: the program and its arguments are too long")
        seconds = min(self.limits.seconds, deadline - time.monotonic())
        return process.call(content, seconds) if seconds > 0 else Outcome(error="timeout")

    def _start(self) -> Process:
        """Start a worker, and test its restrictions."""
        process = Process(self.limits, self.preload)
        try:
            proved = selftest.prove(lambda content: process.call(content, 30.0))
        except BaseException:
            process.close()
            raise
        walls = (
            f"seccomp, a list of allowed calls ({process.greeting['machine']})",
            f"Landlock, version {process.greeting['landlock']}",
            "no capabilities",
            "limits",
        )
        self.level = Level("walled", walls, proved, (_GAP,))
        return process

    def close(self) -> None:
        """Stop idle workers immediately, and the other workers after their jobs."""
        super().close()
        ended = list[Process | None]()
        with contextlib.suppress(queue.Empty):
            while True:
                ended.append(self._idle.get_nowait())
        for process in ended:
            if process is not None:
                process.close()
            self._idle.put(None)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.workers, self.limits, self.preload)
