"""The warm worker: a small process that has Python ready, and forks a child for each call.

It is started by `process` as a program of its own, with an environment of a few harmless variables
and two descriptors: the socket on which it is asked, and one that tells when the parent process has
ended (a pidfd; a signal at the parent's death would come when the *thread* ends that started the
worker). It gives up root's privileges, goes behind the first layer of Landlock and says that it is
ready. Then each message brings two descriptors, the call to be read and the place for its result.
The worker opens neither; it passes them to a child, waits, kills what lasts too long or fills the
folder, removes the folder and reports how the child ended.

Only what is free of imports from the rest of the package is imported here.
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
import stat
import struct
import sys
import sysconfig
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

from aflowgym.sandbox import child, filter, walls
from aflowgym.sandbox.filter import architecture

#: How a child ended: by itself, by the clock or its CPU limit, by what it wrote, by the parent's
#: wish; or the walls did not stand, and the program never began.
EXITED, TIMEOUT, DISK, CANCELLED, NO_WALLS = b"x", b"t", b"d", b"c", b"n"
#: Ending and wait status; then the reason of NO_WALLS.
REPORT: Final = struct.Struct("=ci")
#: A request: seconds by the clock.
REQUEST: Final = struct.Struct("=d")
_LOOK_SECONDS: Final = 0.02
#: How many times as long as a look the pause after it is at least.
_PAUSE: Final = 4


class Worker:
    """The state of a worker.

    Args:
        settings: What `process` wrote: `control`, `parent` (descriptors), `root` (a folder),
            `preload`, and the limits of a call under their names.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        # Both have the numbers that they had in the parent, where they may be beyond any limit.
        self.control = socket.socket(fileno=lower_descriptor(settings["control"]))
        self.parent = lower_descriptor(settings["parent"])
        self.root: str = settings["root"]
        #: The folder of each call; without a number, which would tell of earlier calls.
        self.folder = os.path.join(self.root, "own")
        self.memory = 0
        mb = 1 << 20
        #: Bytes of all files of a child, their number, and bytes of one.
        self.allowed = (settings["folder_mb"] * mb, settings["files"], settings["file_mb"] * mb)
        self.pid = os.getpid()

    def prepare(self) -> dict[str, Any]:
        """Load modules, put up what the children inherit; tell what stands here.

        Raises:
            OSError, ImportError, LookupError: It cannot be done on this machine, with the reason.
        """
        machine = architecture(platform.machine())
        if machine is None:
            raise LookupError(f"there is no system-call table for {platform.machine()!r}")
        self.version = walls.landlock_version()
        if self.version < 1:
            raise LookupError("the kernel has no Landlock, or it is switched off")
        import_modules(self.settings["preload"])
        granted = readable_paths(self.settings["preload"])
        self.filter = walls.Filter(filter.assembled(machine))
        with open("/proc/self/statm") as statm:
            self.memory = int(statm.read().split()[0]) * resource.getpagesize()
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
            score.write("900")  # if memory runs out, this goes before whoever trains
        with contextlib.suppress(OSError), open("/proc/self/coredump_filter", "w") as parts:
            parts.write("0")  # a dump that no limit forbids has nothing in it
        child.clean(self.folder)
        walls.forgo_privileges()
        walls.hide()
        self._first_layer(granted)
        chosen, mb = self.settings, 1 << 20
        memory = self.memory + chosen["memory_mb"] * mb
        walls.limit_space(memory, chosen["file_mb"] * mb, chosen["open_files"])
        return {"landlock": self.version, "machine": machine.name}

    def _first_layer(self, granted: list[str]) -> None:
        """What the worker may reach, and the rules that each child adds: the same and less."""
        rules, self.inner = walls.Ruleset(self.version), walls.Ruleset(self.version)
        for each in (rules, self.inner):
            for path in granted:
                each.grant(path, walls.READING)
            each.grant("/dev/null", walls.READING | walls.WRITE_FILE)
            each.grant(self.root, walls.FOLDER | walls.MAKE_DIR | walls.REMOVE_DIR)
        # To see what a child keeps open of files that it has removed.
        rules.grant("/proc", walls.READING)
        # To remove its own empty folder at the end.
        rules.grant(os.path.dirname(self.root), walls.REMOVE_DIR)
        rules.enforce()
        rules.close()

    def serve(self) -> None:
        """Answer until the parent closes the socket or ends."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.parent, select.POLLIN)
        while self.parent not in dict(poll.poll()):
            message, descriptors, _, _ = socket.recv_fds(self.control, REQUEST.size, 2)
            if len(descriptors) != 2:  # the end, or no room for them
                return
            self.control.send(self._call(*REQUEST.unpack(message), *descriptors))

    def _call(self, seconds: float, job: int, result: int) -> bytes:
        """Run one call in a child, and report."""
        os.mkdir(self.folder, 0o700)
        rules = self._second_layer()
        reading, begun = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        pid = os.fork()
        if pid == 0:
            child.run(job, result, begun, self.folder, lambda: self._enclose(rules))
        rules.close()
        for fd in (job, result, begun):
            os.close(fd)
        ending = self._watch(pid, self.folder, seconds)
        if ending != EXITED:
            os.kill(pid, signal.SIGKILL)
        _, status, used = os.wait4(pid, 0)
        remove_folder(self.folder)
        with open(reading, "rb", buffering=0) as pipe:
            began = pipe.read(200)
        if began != child.BEGUN_WELL:
            return REPORT.pack(NO_WALLS, status) + (began or b"the child did not get that far")
        if ending == EXITED and self._is_used_up(status, used.ru_utime + used.ru_stime):
            ending = TIMEOUT
        return REPORT.pack(ending, status)

    def _is_used_up(self, status: int, cpu: float) -> bool:
        """Did the CPU limit end a child? The kernel counts it in ticks, and `cpu` otherwise."""
        sent = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        late = cpu >= 0.5 * self.settings["cpu_seconds"]
        return sent == signal.SIGXCPU or (sent == signal.SIGKILL and late)

    def _second_layer(self) -> walls.Ruleset:
        """What a child shares with no other child: writing in its own folder only."""
        rules = walls.Ruleset(self.version)
        rules.grant("/", walls.READING)  # both layers have to agree, and the first grants little
        rules.grant("/dev/null", walls.READING | walls.WRITE_FILE)
        rules.grant(self.folder, walls.FOLDER)
        return rules

    def _enclose(self, rules: walls.Ruleset) -> None:
        """In the child: all that cannot be undone."""
        walls.die_with(self.pid)
        walls.limit_program(self.settings["cpu_seconds"])
        walls.show()
        self.inner.enforce()
        rules.enforce()
        self.filter.enforce()

    def _watch(self, pid: int, folder: str, seconds: float) -> bytes:
        """Wait for a child's end, or for a reason to end it."""
        poll = select.poll()
        ended = os.pidfd_open(pid)
        try:
            for fd in (ended, self.control.fileno(), self.parent):
                poll.register(fd, select.POLLIN)
            deadline, pause = time.monotonic() + seconds, _LOOK_SECONDS
            while (left := deadline - time.monotonic()) > 0:
                ready = dict(poll.poll(1000 * min(pause, left)))
                if ended in ready:
                    return EXITED
                if ready:
                    return CANCELLED
                began = time.monotonic()
                if is_full(folder, pid, *self.allowed):
                    return DISK
                # What a child can make slow to look at is looked at less often.
                pause = max(_LOOK_SECONDS, _PAUSE * (time.monotonic() - began))
            return TIMEOUT
        finally:
            os.close(ended)


def lower_descriptor(fd: int) -> int:
    """The same open file under the lowest number that is free."""
    low = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return low


def main() -> NoReturn:
    """Work as the command line says, and end without the interpreter's farewell."""
    settings = json.loads(sys.argv[1])
    worker = Worker(settings)
    try:
        greeting = worker.prepare()
    except (OSError, ImportError, LookupError) as problem:
        greeting = {"error": str(problem) or type(problem).__name__}
    worker.control.send(json.dumps(greeting).encode())
    if "error" not in greeting:
        with contextlib.suppress(ConnectionError):
            worker.serve()
    with contextlib.suppress(OSError):
        os.rmdir(worker.root)
    os._exit(0)


# --- what a child keeps on the disk ---------------------------------------------------------------
#
# What lies in its folder is counted by name. What was removed while it is open or mapped takes as
# much room and has no name any more, so it is looked for in the child's process: descriptors tell
# the size of such a file, mappings only that there is one, which then counts as large as a file may
# be. (The other way to a file without a name, `O_TMPFILE`, is refused by `filter`.)

#: What ends the line of a mapping whose file has no name any more.
_REMOVED: Final = b" (deleted)\n"
_INODE: Final = 4


def is_full(folder: str, pid: int, most_bytes: int, most_files: int, file_bytes: int) -> bool:
    """Whether a child, which has not been waited for, has more in its folder than it may."""
    sizes = _named_sizes(folder)
    if sum(sizes) <= most_bytes and len(sizes) <= most_files:
        # A child that has ended meanwhile keeps nothing, and one that has not begun is not shown.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            sizes += _removed_sizes(folder, pid, file_bytes)
    return sum(sizes) > most_bytes or len(sizes) > most_files


def _named_sizes(folder: str) -> list[int]:
    sizes = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                sizes.append(entry.stat(follow_symlinks=False).st_size)
    return sizes


def _removed_sizes(folder: str, pid: int, file_bytes: int) -> list[int]:
    """The sizes of files that have no name and are still there."""
    device, opened = os.stat(folder).st_dev, {}
    for number in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(f"/proc/{pid}/fd/{number}")
            if status.st_dev == device and not status.st_nlink and stat.S_ISREG(status.st_mode):
                opened[status.st_ino] = status.st_size
    with open(f"/proc/{pid}/maps", "rb") as lines:
        ends = [line.split(None, 5) for line in lines if line.endswith(_REMOVED)]
    own = os.fsencode(folder) + b"/"
    mapped = {int(words[_INODE]) for words in ends if words[-1].startswith(own)}
    return [*opened.values(), *(file_bytes for _ in mapped - opened.keys())]


def remove_folder(folder: str) -> None:
    """Remove a folder of files. A child can make no folders in it, so there are none."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    for name in names:
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)


# --- what a program may read ----------------------------------------------------------------------
#
# Python's standard library, and no package beside it.
# The library's folder is granted entry by entry, since `site-packages` may lie in it, and there the
# bundled tasks with their hidden tests. Modules that are asked for by name (`preload`) are imported
# before the walls stand, and their folders granted, so that what they import later is found.

#: Imported in every worker, so that a child has them at once.
COMMON: Final = (
    *("bisect", "cmath", "collections.abc", "copy", "dataclasses", "datetime", "decimal", "enum"),
    *("fractions", "functools", "hashlib", "heapq", "itertools", "json", "math", "numbers"),
    *("operator", "random", "re", "statistics", "string", "time", "typing"),
)
#: These need a library of the system, which cannot be read later; some Pythons lack some.
_WITH_LIBRARIES: Final = ("bz2", "lzma", "uuid", "zlib", "_decimal", "_sqlite3")
_OTHERS_PACKAGES: Final = frozenset({"site-packages", "dist-packages"})
_ALSO: Final = ("/usr/share/zoneinfo", "/dev/urandom", "/dev/zero")


def import_modules(preload: Sequence[str]) -> None:
    """Import the common modules, and those that were asked for.

    Raises:
        ImportError: One of those is not there.
    """
    for name in (*COMMON, *preload):
        importlib.import_module(name)
    for name in _WITH_LIBRARIES:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)


def readable_paths(preload: Sequence[str]) -> list[str]:
    """The paths that may be read, after `import_modules`."""
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
    """The folders of the packages that are loaded and lie outside the library."""
    library_names = set(sys.stdlib_module_names) | {"aflowgym", "__main__"}
    places: set[str] = set()
    for name, module in list(sys.modules.items()):
        if "." not in name and name not in library_names:
            places.update(getattr(module, "__path__", ()))
            if not hasattr(module, "__path__") and getattr(module, "__file__", None):
                places.add(str(module.__file__))
    return sorted(path for path in places if path not in library)
