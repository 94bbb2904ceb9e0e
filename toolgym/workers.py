"""Worker processes for work that consists of independent parts, such as batches of episodes.

A function that performs such work has a parameter `map`. It calls `map` in the same way as Python's
`map`, with a function and a sequence of items. The results are in the order of the items, so they
do not depend on where the parts are processed. Python's `map` processes the items in the current
process. `worker_processes` provides a `map` that uses processes on this machine, and installed
packages add others (`adapters.ray`).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, cast

from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.plugins import WORKERS, find_plugins

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.connection import Connection

Map = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Applies a function to each item and returns the results in order, as the built-in `map` does.

If other processes are used, the function, items and results are pickled, and an item may be
processed twice.
"""
Progress = Callable[[int, int], None]
"""Called with the number of finished units and the total."""


MOST_CHARS = 200
"""Maximum number of characters of an item that an error message shows."""


class WorkerLost(EnvironmentFault):
    """Raised if a worker process ends before it has finished an item."""


@contextmanager
def worker_processes(count: int) -> Iterator[Map]:
    """Context manager for a `map` that uses processes on this machine.

    Each process handles one item at a time and has one thread, unless `OMP_NUM_THREADS` is set. The
    processes end with the context, on an interrupt, and when the parent process ends for any
    reason. The `map` raises `WorkerLost` if a process ends during its work, for example because
    memory runs out.

    Args:
        count: Maximum number of processes, at least 1. A process is started only when there is work
            for it.
    """
    from concurrent.futures import ProcessPoolExecutor  # imported only if processes are used
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    context = get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    with ProcessPoolExecutor(count, context, _begin, (reader,)) as pool:

        def map_in_processes(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
            futures: list[Future[Any]] = []
            done = 0
            try:
                futures += (pool.submit(function, item) for item in items)
                for future in futures:
                    yield future.result()
                    done += 1
            except BrokenProcessPool as problem:
                raise WorkerLost(
                    "a worker process ended, or raised an error that cannot be pickled, while it"
                    f" worked on {items[done]!r:.{MOST_CHARS}} or a part after it.",
                    "If it ran out of memory, use fewer processes. A"
                    " program that starts processes must do so under `if __name__ =="
                    " '__main__':`.",
                ) from problem
            finally:
                for future in futures:
                    future.cancel()

        try:
            yield map_in_processes
        except BaseException:
            writer.close()  # end the processes, whose work is no longer needed
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            writer.close()
            reader.close()


def _begin(watched: Connection) -> None:
    """Set up a worker process to end when its parent ends or closes the pipe."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    os.environ.setdefault("OMP_NUM_THREADS", "1")  # PyTorch reads it when it is loaded
    # Ctrl-C reaches all processes, and the parent handles it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    sentinels: list[Connection | int] = [watched]
    if parent is not None:
        sentinels.append(parent.sentinel)

    def watch() -> None:
        wait(sentinels)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def open_workers(name: str, address: str) -> AbstractContextManager[Map]:
    """Return a context manager that provides a `map` defined by an installed package.

    Args:
        name: Name of the entry point in the group `toolgym.workers`, such as `ray`.
        address: Address of the workers, in the form that the package documents.

    Raises:
        ConfigurationError: No installed package registers that name.
    """
    plugin = find_plugins(WORKERS).get(name)
    if plugin is None:
        raise ConfigurationError(
            f"no installed package provides {name!r}; run: pip install 'toolgym[{name}]'"
        )
    return cast("AbstractContextManager[Map]", plugin.load()(address))


def usable_cores() -> int:
    """Return the number of CPU cores available to this process, which a container may limit."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
