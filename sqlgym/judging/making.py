"""Creates and caches the instances of databases that `sqlgym.judging.suite` judges on.

The instances of a database are files in one folder of the cache. The folder's name is a hash of the
database's content, of the golds that the instances are made for, and of the code that makes them.
If several processes make the same folder at once, the first to finish puts it in its place.

Run as a module, it is the worker process of `make_instances`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from multiprocessing import parent_process
from pathlib import Path
from typing import Final

from sqlgym.judging.gold_values import gold_values
from sqlgym.judging.instances import instance_rows
from sqlgym.judging.source_rows import NoInstance, read_source, write_instance
from toolgym import long_work
from toolgym.cache import cache_folder
from toolgym.errors import EnvironmentFault
from toolgym.workers import usable_cores

_COUNT: Final = "count"
"""Name of the file in the folder of the instances that holds their number."""
INSTANCES: Final = 16
"""Number of instances that are made of a database."""
GOLDS: Final = 400
"""Number of golds whose values are planted into the instances; of more, the first by their hash."""


def instance_files(database: Path, golds: Iterable[str]) -> tuple[Path, ...]:
    """The files of a database's instances for some golds, made now unless the cache has them.

    There are none if the database holds no table, or none that can be recreated.

    Raises:
        EnvironmentFault: The instances cannot be written.
        OSError: The file cannot be read.
    """
    folder, chosen = _place(database, golds)
    if not _is_whole(folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder = _make(database, chosen, folder)
    return tuple(sorted(folder.glob("*.sqlite")))


def make_instances(golds: Mapping[Path, Iterable[str]]) -> None:
    """Make the instances of many databases in advance, on all cores.

    Progress is reported by `toolgym.long_work`. A database that fails is skipped; `instance_files`
    raises its error later. In a worker process of `multiprocessing` nothing is made in advance,
    since the cores are busy with its siblings.

    Args:
        golds: The gold queries by database.
    """
    if parent_process() is not None or not sys.executable or getattr(sys, "frozen", False):
        return
    missing = []
    for path, queries in golds.items():
        with contextlib.suppress(OSError):
            folder, chosen = _place(path, queries)
            folder.parent.mkdir(parents=True, exist_ok=True)
            if not _is_whole(folder) and os.access(folder.parent, os.W_OK):
                missing.append((str(path.absolute()), chosen))
    count = min(len(missing), usable_cores())
    if count < 2:
        return
    what = "making instances of databases"
    long_work.report_progress(what, 0, len(missing))
    try:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for done in _made_by(stack, count, missing):
                long_work.report_progress(what, min(done, len(missing) - 1), len(missing))
    finally:
        long_work.report_progress(what, len(missing), len(missing))


def _made_by(
    stack: contextlib.ExitStack, count: int, missing: Sequence[tuple[str, list[str]]]
) -> Iterator[int]:
    """The number of databases that worker processes have done, each time that one is done.

    Unlike those of a pool, the workers do not import the main module, so a script needs no guard.
    """
    descriptor, writer = os.pipe()
    lines = stack.enter_context(os.fdopen(descriptor))
    own_end = stack.enter_context(os.fdopen(writer, "wb"))
    path = os.pathsep.join(filter(None, sys.path))
    workers = []
    for _ in range(count):
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", "sqlgym.judging.making"],
            stdin=subprocess.PIPE,
            stdout=own_end,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
        stack.callback(worker.wait)
        stack.callback(worker.terminate)
        workers.append(worker)
    own_end.close()
    for number, worker in enumerate(workers):
        if worker.stdin is not None:
            with contextlib.suppress(BrokenPipeError), worker.stdin:
                worker.stdin.write(json.dumps(missing[number::count]).encode())
    for done, _ in enumerate(lines, 1):
        yield done


def _is_whole(folder: Path) -> bool:
    """Whether a folder holds all instances that were made."""
    try:
        count = int((folder / _COUNT).read_text())
    except (OSError, ValueError):
        return False
    return len(list(folder.glob("*.sqlite"))) == count


def _place(database: Path, golds: Iterable[str]) -> tuple[Path, list[str]]:
    """The folder for the instances of a database, and the golds that they are made for."""
    chosen = sorted(set(golds), key=lambda sql: hashlib.sha256(_bytes(sql)).digest())[:GOLDS]
    key = json.dumps([_content(database), sorted(chosen), _state()])
    name = hashlib.sha256(_bytes(key)).hexdigest()[:32]
    return cache_folder() / "sql" / "instances" / name, sorted(chosen)


def _content(database: Path) -> str:
    """The hash of a file."""
    status = database.stat()
    return _hash_of(database.absolute(), status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=1_024)
def _hash_of(path: Path, size: int, changed: int) -> str:
    """The hash of a file, computed once in a process while it keeps its size and time of change."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@functools.cache
def _state() -> str:
    """A hash of all that determines instances: versions of libraries, and the code of judging."""
    digest = hashlib.sha256(f"{sqlite3.sqlite_version} {metadata.version('sqlglot')}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _make(database: Path, golds: Sequence[str], folder: Path) -> Path:
    """Make the instances, and put their folder in its place by one rename.

    If the cache folder cannot be written, they stay in a temporary folder until the process ends.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError:
        fresh = Path(tempfile.mkdtemp(prefix="toolgym-instances-"))
        weakref.finalize(_make, _remove, fresh, os.getpid())
        _write(database, golds, fresh)
        return fresh
    try:
        _write(database, golds, fresh)
        with contextlib.suppress(OSError):  # another process was faster
            fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    if not _is_whole(folder):
        raise EnvironmentFault(
            f"The instances of {database} cannot be put into the cache folder {folder.parent}.",
            "Make the folder writable, or set TOOLGYM_CACHE to another one.",
        )
    return folder


def _remove(folder: Path, process: int) -> None:
    """Remove a temporary folder, but in a child of the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _write(database: Path, golds: Sequence[str], folder: Path) -> None:
    try:
        source = read_source(database)
    except NoInstance:
        (folder / _COUNT).write_text("0")
        return
    planted = gold_values(golds, source)
    for number in range(1, INSTANCES + 1):
        file = folder / f"{number:02}.sqlite"
        try:
            write_instance(
                source, instance_rows(source, planted, f"{_content(database)}-{number}"), file
            )
        except NoInstance:
            file.unlink(missing_ok=True)
    (folder / _COUNT).write_text(str(len(list(folder.glob("*.sqlite")))))


def _work() -> None:
    """Make the instances requested on stdin, and print a line for each database that is done."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no half-made folder is left
    jobs = json.load(sys.stdin)
    random.Random(os.getpid()).shuffle(jobs)  # so that several programs share the work
    for database, golds in jobs:
        with contextlib.suppress(Exception):  # `instance_files` raises it where it is needed
            instance_files(Path(database), golds)
        sys.stdout.write("\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _work()
