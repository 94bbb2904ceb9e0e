"""Children forked beside busy threads: none waits for ever, and each plays as one alone does."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest

from aflowgym import sandbox
from aflowgym.backends.sharing import Shared
from aflowgym.sandbox.unsafe import UnsafeSandbox
from sqlgym.database import database as database_module
from sqlgym.database.database import ConnectionPool, Database, open_database
from sqlgym.database.query_result import ResultCache
from sqlgym.database.turnstile import Turnstile
from toolgym import registration, sqlite_forks
from toolgym.chat.cache import ReplyCache
from toolgym.policies import ExpertPolicy
from toolgym.rollout import play

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

SECONDS = 60
"""After which a child is taken to wait for ever."""
FAMILIES = ("sqlgym/Explore-v0", "aflowgym/Compose-v0", "aflowgym/Operate-v0")
LONG = """WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 20000)
SELECT group_concat(x || 'y') FROM c GROUP BY substr('abcdefgh' || x, 1, 11)"""
"""Asks SQLite for memory all the time."""


def played(seed):
    """What an episode of each family comes to, and what a file gives that is opened anew."""
    records = [play(env_id, ExpertPolicy(), seed=seed) for env_id in FAMILIES]
    database = Database(file_of(seed))
    opened = database.schema.names, database.query("SELECT 1").rows
    return [(each.task_id, each.score, each.turns) for each in records], opened


def file_of(seed):
    """The database of the task that a seed chooses."""
    env = registration.make("sqlgym/Explore-v0")
    env.reset(seed=seed)
    return env.task.database


class Busy:
    """Threads that do what an episode does, each something else, until they are told to stop."""

    def __init__(self, n):
        self.problems = []
        self._done = threading.Event()
        kinds = (self._episodes, self._explore, self._read, self._parse)
        self._threads = [
            threading.Thread(target=self._work, args=(kinds[number % len(kinds)], number))
            for number in range(n)
        ]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *problem):
        self._done.set()
        for thread in self._threads:
            thread.join()

    def _work(self, kind, number):
        turn = 0
        while not self._done.is_set():
            turn += 1
            try:
                kind(number * 1_000_003 + turn)
            except BaseException as problem:
                self.problems.append(problem)
                raise

    def _episodes(self, seed):
        played(seed)

    def _explore(self, seed):
        env = registration.make("sqlgym/Explore-v0")
        env.reset(seed=seed)
        table = open_database(env.task.database).schema.names[0]
        for name, arguments in (
            ("describe", {"table_name": table}),
            ("sample", {"table_name": table}),
            ("query", {"sql": f"{LONG} LIMIT {seed % 1000}"}),
            ("query", {"sql": f"SELECT nope{seed}"}),
            ("answer", {"value": seed}),
        ):
            env.step({"name": name, "arguments": arguments})

    def _read(self, seed):
        database = Database(file_of(seed))
        assert database.backwards.schema.names == database.schema.names

    def _parse(self, seed):
        for env_id in FAMILIES:
            env = registration.make(env_id)
            env.reset(seed=seed)
            env.step(f'I say: {{"name": "quary", "arguments": {{"sql": "SELECT {seed}", }} ')


def ended(child):
    """The exit status of a child; one that hangs is ended by a signal."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"


def forked(seed, expected):
    """What became of a child that plays an episode of each family, and compares."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        child = os.fork()
    if child == 0:
        status = 3
        try:
            status = 0 if played(seed) == expected else 1
        finally:
            os._exit(status)  # whatever happened: the child is a copy of pytest
    return ended(child)


def fork_often(n):
    """The children of `n` forks beside eight busy threads that did not end well."""
    expected = [played(seed) for seed in range(5)]
    bad = []
    with Busy(8) as busy:
        for number in range(n):
            outcome = forked(number % 5, expected[number % 5])
            if outcome != 0:
                bad.append((number, outcome))
    assert busy.problems == []
    return bad


OWNERS = {
    "a cache of results": lambda folder: ResultCache(),
    "a pool of connections": lambda folder: ConnectionPool(),
    "a turnstile": lambda folder: Turnstile(),
    "the opening of databases": lambda folder: database_module._opening,
    "a cache of replies": lambda folder: ReplyCache(folder / "replies.sqlite"),
    "backends that are shared": lambda folder: Shared(),
    "the default sandbox": lambda folder: sandbox._default,
    "a sandbox in plain processes": lambda folder: UnsafeSandbox(),
}


def locks_of(owner):
    """The locks among the attributes of an object, those of conditions too."""
    found = {getattr(value, "_lock", value) for value in vars(owner).values() if is_lock(value)}
    return list(found)


def is_lock(value):
    return isinstance(value, type(threading.Lock()) | threading.Condition)


@pytest.mark.parametrize("owner", OWNERS)
def test_a_child_finds_free_what_another_thread_of_its_parent_holds(owner, tmp_path):
    owned, held = OWNERS[owner](tmp_path), []
    holder = threading.Thread(target=lambda: held.extend(x.acquire() for x in locks_of(owned)))
    holder.start()
    holder.join()
    assert held
    child = os.fork()
    if child == 0:
        os._exit(any(lock.locked() for lock in locks_of(owned)))
    for lock in locks_of(owned):
        lock.release()
    assert ended(child) == 0


HOLDING_SQLITE = """
import os, signal, sqlite3
from toolgym import sqlite_forks

for address in sqlite_forks.LOCKS.addresses:
    sqlite_forks.LOCKS._try(address)
child = os.fork()
if child == 0:
    signal.alarm(20)
    sqlite3.connect(":memory:").execute("SELECT group_concat('x')").fetchall()
    os._exit(0)
_, status = os.waitpid(child, 0)
os._exit(os.waitstatus_to_exitcode(status) != 0)
"""


@pytest.mark.skipif(sqlite_forks.LOCKS is None, reason="this SQLite hides its functions")
def test_a_child_uses_sqlite_whichever_of_its_locks_were_held():
    ran = subprocess.run([sys.executable, "-c", HOLDING_SQLITE], timeout=SECONDS, check=False)
    assert ran.returncode == 0


@pytest.mark.nightly
def test_60_forks_beside_eight_busy_threads_all_play_as_alone():
    assert fork_often(60) == []
