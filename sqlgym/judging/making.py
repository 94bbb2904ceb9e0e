"""Create and cache the instances of databases for `sqlgym.judging.suite`.

The instances of a database are files in one folder of the cache. The name of the folder is a hash
of the database's content, the gold queries, and the code that creates instances. If several
processes create the same folder, the folder of the first process to finish is used.

When run as a script, this module is the worker process of `make_instances`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from multiprocessing import parent_process
from pathlib import Path
from typing import Final

from sqlgym.judging.instances import gold_values, instance_rows
from sqlgym.judging.source_rows import NoInstance, Source, read_source, write_instance
from toolgym import long_work
from toolgym.cache import cache_folder
from toolgym.workers import usable_cores

INSTANCES: Final = 20
"""Number of instances of a database."""
GOLDS: Final = 400
"""Maximum number of gold queries whose values are used in the instances. If there are more, they
are selected by a hash.
"""


def instance_files(database: Path, golds: Iterable[str]) -> tuple[Path, ...]:
    """Return the files of a database's instances for some gold queries, creating missing files.

    The list is empty if the database has no tables, or none that can be recreated.

    Raises:
        EnvironmentFault: The disk is full.
        OSError: The database cannot be read.
    """
    folder, seed, chosen = _place(database, golds)
    if not folder.exists():
        _make(database, seed, chosen, folder)
    return tuple(sorted(folder.glob("*.sqlite")))


def make_instances(golds: Mapping[Path, Iterable[str]]) -> None:
    """Create the missing instances of many databases, using all CPU cores.

    `toolgym.long_work` reports the progress. A database that causes an error is skipped, and
    `instance_files` raises that error later. In a worker process of `multiprocessing`, no instances
    are created, because other workers use the CPU cores.

    Args:
        golds: The gold queries by database.
    """
    missing = []
    for path, queries in golds.items():
        with contextlib.suppress(OSError):
            folder, seed, chosen = _place(path, queries)
            if not folder.exists():
                missing.append((str(path.absolute()), seed, chosen, str(folder)))
    count = min(len(missing), usable_cores())
    if count < 2 or parent_process() is not None or not sys.executable:
        return
    what = "making instances of databases"
    long_work.report_progress(what, 0, len(missing))
    with contextlib.ExitStack() as stack:
        workers = []
        for number in range(count):  # not a pool, because its workers would import the main module
            worker = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-P", "-m", "sqlgym.judging.making"],
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            )
            stack.callback(worker.terminate)
            if worker.stdin is not None:
                with contextlib.suppress(BrokenPipeError), worker.stdin:
                    json.dump(missing[number::count], worker.stdin)
            workers.append(worker)
        lines = (line for worker in workers for line in worker.stdout or ())
        for done, _ in enumerate(lines, 1):
            long_work.report_progress(what, done, len(missing))
    long_work.report_progress(what, len(missing), len(missing))


def _place(database: Path, golds: Iterable[str]) -> tuple[Path, str, list[str]]:
    """Return the folder for the instances of a database, their seed, and the gold queries to
    use.
    """
    chosen = sorted(set(golds), key=lambda sql: hashlib.sha256(_bytes(sql)).digest())[:GOLDS]
    status = database.stat()
    content = _hash_of(database.absolute(), status.st_size, status.st_mtime_ns)
    key = json.dumps([content, sorted(chosen), source_state("synthesis")])
    name = hashlib.sha256(_bytes(key)).hexdigest()[:32]
    root = cache_folder() / "sql" / "instances"
    with contextlib.suppress(OSError):
        root.mkdir(parents=True, exist_ok=True)
    if not os.access(root, os.W_OK):
        root = Path(_temporary_folder().name)
    return root / name, content, sorted(chosen)


@functools.cache
def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that replaces an unwritable cache folder and is removed when the process
    ends.
    """
    return tempfile.TemporaryDirectory(prefix="toolgym-instances-")


@functools.lru_cache(maxsize=1_024)
def _hash_of(path: Path, size: int, changed: int) -> str:
    """Return the hash of a file, cached until its size or modification time changes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@functools.cache
def source_state(but: str = "") -> str:
    """Return a hash of the versions of SQLite and sqlglot and of this package's source files.

    Args:
        but: A folder of the package that is excluded.
    """
    digest = hashlib.sha256(f"{sqlite3.sqlite_version} {metadata.version('sqlglot')}".encode())
    package = Path(__file__).parents[1]
    for path in sorted(package.glob("**/*.py")):
        if path.relative_to(package).parts[0] != but:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _make(database: Path, seed: str, golds: Iterable[str], folder: Path) -> None:
    """Make the instances, and rename their folder to its final name."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as fresh:
        made = Path(fresh) / "made"
        made.mkdir()
        with contextlib.suppress(NoInstance):
            _write(read_source(database), golds, seed, made)
        with contextlib.suppress(OSError):  # another process has finished first
            made.rename(folder)


def _write(source: Source, golds: Iterable[str], seed: str, folder: Path) -> None:
    planted = gold_values(golds)
    for number in range(1, INSTANCES + 1):
        file = folder / f"{number:02}.sqlite"
        try:
            write_instance(source, instance_rows(source, planted, f"{seed}-{number}"), file)
        except NoInstance:
            file.unlink(missing_ok=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # remove the unfinished folder
    for each, its_seed, its_golds, place in json.load(sys.stdin):
        # `instance_files` raises it when the instances are needed
        with contextlib.suppress(Exception):
            _make(Path(each), its_seed, its_golds, Path(place))
        sys.stdout.write("\n")
        sys.stdout.flush()
