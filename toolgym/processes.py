"""Processes of this machine as a `toolgym.spread.Spread`, for work that one core is too slow for.

Each process has one thread, unless `OMP_NUM_THREADS` says otherwise, and does one part at a time.
They end with the context, with an interrupt, and with the process that made them, however that
ended. Several machines are what `adapters.ray` is for.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for

from toolgym.spread import Part, PartLost, Progress, R, T, Work


class ProcessSpread:
    """The processes of a pool, made by `processes`."""

    sends = True

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def map(
        self, work: Work[T, R], parts: Sequence[Part[T]], progress: Progress | None = None
    ) -> Iterator[R]:
        """The result of each part, in order; progress counts parts that are done.

        Raises:
            PartLost: A process ended while it worked, killed for its memory, say.
        """
        futures = list[Future[R]]()
        total = sum(part.size for part in parts)
        try:
            futures += (self._pool.submit(work, part.about, None) for part in parts)
            waiting = dict(zip(futures, (part.size for part in parts), strict=True))
            for future, part in zip(futures, parts, strict=True):
                while future in waiting:
                    for each in wait(waiting, return_when=FIRST_COMPLETED).done:
                        del waiting[each]
                    if progress is not None:
                        progress(total - sum(waiting.values()), total)
                try:
                    yield future.result()
                except BrokenProcessPool as problem:
                    raise _lost(part.name) from problem
        except BrokenProcessPool as problem:
            raise _lost(parts[len(futures)].name) from problem
        finally:
            for future in futures:
                future.cancel()


def _lost(name: str) -> PartLost:
    return PartLost(
        f"{name}: a process ended that worked on it, or beside it.",
        "Look whether it needs more memory than there is, and use fewer processes or one. A program"
        " that starts processes must do so under `if __name__ == '__main__':`.",
    )


@contextmanager
def processes(count: int) -> Iterator[ProcessSpread]:
    """Processes that do parts of work until the end of the context; none is left after it.

    Args:
        count: How many at the most, at least 1; each is started when there is work for it.
    """
    context = get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    with ProcessPoolExecutor(count, context, _begin, (reader,)) as pool:
        try:
            yield ProcessSpread(pool)
        except BaseException:
            writer.close()  # they are in the middle of work that nobody waits for any more
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            writer.close()
            reader.close()


def usable_cores() -> int:
    """Cores that this process may use, which a container can make fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _begin(watched: Connection) -> None:
    """Let this process end when its parent ends, or closes its end of the pipe."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when PyTorch is loaded
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent decides
    parent = parent_process()
    sentinels: list[Connection | int] = [watched]
    if parent is not None:
        sentinels.append(parent.sentinel)

    def watch() -> None:
        wait_for(sentinels)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
