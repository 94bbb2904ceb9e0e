"""The face of a sandbox that does not wait: the waiting one, in threads of its own.

There are as many threads as jobs that can run at the same time, so an event loop may ask for any
number of jobs at once, and they queue.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

from aflowgym.answers.code import Outcome
from toolgym.forks import leave_to_parent, renew_in_child

if TYPE_CHECKING:
    from aflowgym.execution.protocols import Job


class InThreads:
    """Gives a sandbox that has `run` the rest of its face: `arun`, `close` and `with`.

    Args:
        workers: How many jobs run at the same time.

    Attributes:
        closed: It has been closed.
    """

    closed = False

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._threads: ThreadPoolExecutor | None = None
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin without threads, also in a process that was forked off."""
        leave_to_parent(self._threads)
        self._threads = None
        self._threads_lock = threading.Lock()

    def run(self, job: Job) -> Sequence[Outcome]:
        """One outcome for each call of a job, in order."""
        raise NotImplementedError

    async def arun(self, job: Job) -> Sequence[Outcome]:
        """The same without blocking the event loop; if cancelled, the job ends in its thread."""
        with self._threads_lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self.workers, "toolgym-sandbox")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.run, job)

    def close(self) -> None:
        """Wait for the jobs that run, and end."""
        with self._threads_lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
