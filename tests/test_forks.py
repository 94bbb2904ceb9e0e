"""Forked children find every lock free, open connections of their own, and play as their parent."""

import os
import signal
import threading
import time

import gymnasium as gym
import pytest

from aflowgym import sandbox
from aflowgym.backends import sharing
from sqlgym.database.database import ConnectionPool, Database, ResultCache
from sqlgym.database.memory import HeavyLock
from toolgym import registration
from toolgym.chat import ChatClient, ChatSettings
from toolgym.policies import ExpertPolicy
from toolgym.rollout import play

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

SECONDS = 60
"""After which a child is taken to wait for ever."""
FAMILIES = ("sqlgym/Explore-v0", "aflowgym/Compose-v0", "aflowgym/Operate-v0")


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


OWNERS = {
    "a cache of results": lambda folder: ResultCache(),
    "a pool of connections": lambda folder: ConnectionPool(),
    "the lock of statements that take much memory": lambda folder: HeavyLock(),
    "a chat client": lambda folder: ChatClient(ChatSettings(model="m")),
    "backends that are shared": lambda folder: sharing._made,
    "the default sandbox": lambda folder: sandbox._default,
}


def locks_of(owner):
    """The locks among the attributes of an object, those of conditions too."""
    found = {getattr(value, "_lock", value) for value in vars(owner).values() if is_lock(value)}
    return list(found)


def is_lock(value):
    return isinstance(value, type(threading.Lock()) | threading.Condition)


@pytest.mark.parametrize("owner", OWNERS)
def test_a_child_finds_free_what_another_thread_of_its_parent_holds(owner, tmp_path):
    if owner == "a chat client":
        pytest.importorskip("openai", reason="needs the extra openai")
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


def test_a_forked_child_plays_as_its_parent_does():
    expected = played(0)
    child = os.fork()
    if child == 0:
        status = 3
        try:
            status = 0 if played(0) == expected else 1
        finally:
            os._exit(status)  # whatever happened: the child is a copy of pytest
    assert ended(child) == 0


@pytest.mark.nightly
def test_20_vectors_of_processes_start():
    for start in range(20):
        vector = gym.make_vec(
            "sqlgym/Explore-v0",
            num_envs=2,
            vectorization_mode="async",
            vector_kwargs={"shared_memory": False},
        )
        try:
            vector.reset_async(seed=start)
            observations, _ = vector.reset_wait(timeout=SECONDS)
            assert len(observations) == 2
        finally:
            vector.close(timeout=SECONDS)
