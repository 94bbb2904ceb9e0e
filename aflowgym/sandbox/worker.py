"""The worker: a small process that forks a restricted child for each call.

`process` starts the worker with an environment of a few harmless variables and two file
descriptors: the socket for requests, and a pidfd that reports when the parent process ends. (A
parent-death signal would be sent as soon as the thread that started the worker ends.) The worker
drops root's privileges, enforces the Landlock rules and reports that it is ready. Each request
contains two descriptors, one for the call and one for its result. The worker reads from neither
descriptor. For each request, the worker passes the two descriptors to a child, kills the child if
it takes too long, and reports how the child ended.

This module imports only modules that do not import other parts of the package.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import importlib.util
import json
import os
import platform
import resource
import select
import signal
import socket
import struct
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

from aflowgym.sandbox import child, filter, walls

#: How a child ended: by itself, at a time limit, or because the restrictions failed, so that the
#: program never started.
EXITED, TIMEOUT, NO_WALLS = b"x", b"t", b"n"
#: Ending and wait status, then the reason of NO_WALLS.
REPORT: Final = struct.Struct("=ci")
#: A request: the limit on elapsed time in seconds.
REQUEST: Final = struct.Struct("=d")


class Worker:
    """A worker process.

    Args:
        settings: The settings from `process`: the descriptors `control` and `parent`, the modules
            in `preload`, and the limits of a call by name.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        # Both have the numbers that they had in the parent, which may exceed any limit.
        self.control = socket.socket(fileno=lower_descriptor(settings["control"]))
        self.parent = lower_descriptor(settings["parent"])
        self.pid = os.getpid()

    def prepare(self) -> dict[str, Any]:
        """Load modules and restrict the worker. Return information for the `Level` of the sandbox.

        Raises:
            OSError, ImportError, LookupError: If this machine lacks a feature, which the message
                names.
        """
        machine = filter.architecture(platform.machine())
        if machine is None:
            raise LookupError(f"there is no system-call table for {platform.machine()!r}")
        version = walls.landlock_version()
        if version < 1:
            raise LookupError("the kernel has no Landlock, or it is disabled")
        import_modules(self.settings["preload"])
        self.rules = walls.Ruleset(version)
        for path in readable_paths(self.settings["preload"]):
            self.rules.grant(path, walls.READING)
        self.rules.grant("/dev/null", walls.READING | walls.WRITE_FILE)
        self.filter = walls.Filter(filter.assembled(machine))
        with open("/proc/self/statm") as statm:
            memory = int(statm.read().split()[0]) * resource.getpagesize()
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
            # If memory runs out, the system kills this process before the training process.
            score.write("900")
        child.clean()
        walls.forgo_privileges()
        walls.hide()
        self.rules.enforce()
        walls.limit_space(memory + (self.settings["memory_mb"] << 20))
        return {"landlock": version, "machine": machine.name}

    def serve(self) -> None:
        """Answer requests until the parent closes the socket or exits."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.parent, select.POLLIN)
        while self.parent not in dict(poll.poll()):
            message, descriptors, _, _ = socket.recv_fds(self.control, REQUEST.size, 2)
            if len(descriptors) != 2:  # the parent has ended, or its socket buffer is full
                return
            self.control.send(self._call(*REQUEST.unpack(message), *descriptors))

    def _call(self, seconds: float, job: int, result: int) -> bytes:
        """Run one call in a child, and return the report."""
        reading, begun = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        pid = os.fork()
        if pid == 0:
            child.run(job, result, begun, self._enclose)
        for fd in (job, result, begun):
            os.close(fd)
        ended = os.pidfd_open(pid)
        poll = select.poll()
        for fd in (ended, self.control.fileno(), self.parent):
            poll.register(fd, select.POLLIN)
        ending = EXITED if ended in dict(poll.poll(1000 * seconds)) else TIMEOUT
        os.close(ended)
        if ending == TIMEOUT:  # also if the parent has ended
            os.kill(pid, signal.SIGKILL)
        _, status, used = os.wait4(pid, 0)
        with open(reading, "rb", buffering=0) as pipe:
            began = pipe.read(200)
        if began != child.BEGUN_WELL:
            return REPORT.pack(NO_WALLS, status) + (began or b"the child did not get that far")
        if self._is_used_up(status, used.ru_utime + used.ru_stime):
            ending = TIMEOUT
        return REPORT.pack(ending, status)

    def _is_used_up(self, status: int, cpu: float) -> bool:
        """Return whether a child reached the CPU limit, which the kernel measures in ticks."""
        sent = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        late = cpu >= 0.5 * self.settings["cpu_seconds"]
        return sent == signal.SIGXCPU or (sent == signal.SIGKILL and late)

    def _enclose(self) -> None:
        """Restrict a child permanently."""
        walls.die_with(self.pid)
        walls.limit_program(self.settings["cpu_seconds"])
        self.rules.enforce()
        self.filter.enforce()


def lower_descriptor(fd: int) -> int:
    """Duplicate a file descriptor to the lowest free number, and return that number."""
    low = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return low


def main() -> NoReturn:
    """Run a worker as specified on the command line, and exit without the interpreter's cleanup."""
    worker = Worker(json.loads(sys.argv[1]))
    try:
        greeting = worker.prepare()
    except (OSError, ImportError, LookupError) as problem:
        greeting = {"error": str(problem) or type(problem).__name__}
    worker.control.send(json.dumps(greeting).encode())
    if "error" not in greeting:
        with contextlib.suppress(ConnectionError):
            worker.serve()
    os._exit(0)


# Python's standard library, without other packages. The library's folder is granted entry by entry,
# because it may contain `site-packages`, and therein the bundled tasks with hidden tests.
# Requested modules (`preload`) are imported before the restrictions apply, and their folders are
# granted, so that they find their later imports.

#: Modules that are imported in every worker, so that they are already loaded in a child.
COMMON: Final = (
    *("bisect", "cmath", "collections.abc", "copy", "dataclasses", "datetime", "decimal", "enum"),
    *("fractions", "functools", "hashlib", "heapq", "itertools", "json", "math", "numbers"),
    *("operator", "random", "re", "statistics", "string", "time", "typing"),
)
#: These need a library of the system, which cannot be read later. Some Python builds lack some of
#: them.
_WITH_LIBRARIES: Final = ("bz2", "lzma", "uuid", "zlib", "_decimal", "_sqlite3")
_OTHERS_PACKAGES: Final = frozenset({"site-packages", "dist-packages"})
_ALSO: Final = ("/usr/share/zoneinfo", "/dev/urandom", "/dev/zero")


def import_modules(preload: Sequence[str]) -> None:
    """Import the standard modules and the requested ones.

    Raises:
        ImportError: If a requested module is not installed.
    """
    for name in (*COMMON, *preload):
        importlib.import_module(name)
    for name in _WITH_LIBRARIES:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)


def readable_paths(preload: Sequence[str]) -> list[str]:
    """Return the paths that programs can read. Call this after `import_modules`."""
    library = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    places = [
        os.path.join(folder, name)
        for folder in sorted(library)
        for name in sorted(os.listdir(folder))
        if name not in _OTHERS_PACKAGES
    ]
    places += [path for path in sys.path if path.endswith(".zip")]
    roots = {name.partition(".")[0] for name in preload}
    if roots:
        places += _packages(library)
    return [path for path in (*places, *_ALSO) if os.path.exists(path)]


def _packages(library: Iterable[str]) -> list[str]:
    """Return the folders of the loaded packages that are outside the library."""
    library_names = set(sys.stdlib_module_names) | {"aflowgym", "__main__"}
    places: set[str] = set()
    for name, module in list(sys.modules.items()):
        if "." not in name and name not in library_names:
            places.update(getattr(module, "__path__", ()))
            if not hasattr(module, "__path__") and getattr(module, "__file__", None):
                places.add(str(module.__file__))
    return sorted(path for path in places if path not in library)
