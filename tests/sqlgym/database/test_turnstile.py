"""The turnstile: one thread at a time, nobody for ever, and a long statement outside."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sqlgym.database.database import open_database
from sqlgym.database.turnstile import TURNSTILE, Turnstile
from toolgym import registration

LONG_STATEMENT = """WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 200000)
SELECT max(x) FROM c, huts WHERE hut_id = 1"""


def test_threads_go_through_one_at_a_time():
    turnstile, inside, most, through = Turnstile(), [], [0], []

    def pass_often(name):
        for _ in range(200):
            entered = turnstile.enter()
            assert entered
            inside.append(name)
            most[0] = max(most[0], len(inside))
            inside.remove(name)
            turnstile.leave()
        through.append(name)

    with ThreadPoolExecutor(16) as pool:
        for work in [pool.submit(pass_often, name) for name in range(16)]:
            work.result(timeout=300)
    assert most == [1]
    assert sorted(through) == list(range(16))


def test_a_turn_within_a_turn_ends_with_the_outer_one():
    turnstile = Turnstile()
    assert turnstile.enter()
    assert not turnstile.enter()
    turnstile.leave()
    turnstile.leave()  # once more changes nothing
    assert turnstile.enter()


def test_who_has_no_turn_cannot_end_that_of_another():
    turnstile = Turnstile()
    assert turnstile.enter()
    other = threading.Thread(target=turnstile.leave)
    other.start()
    other.join()
    assert not turnstile.enter()  # still in it
    assert turnstile._turn.locked()


def test_a_turn_that_takes_too_long_does_not_stop_the_others():
    turnstile, found = Turnstile(), []
    turnstile.enter()

    def pass_twice():
        for _ in range(2):
            found.append(turnstile.enter())
            turnstile.leave()

    waiting = [threading.Thread(target=pass_twice) for _ in range(4)]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join(timeout=300)
    assert found == [True] * 8
    turnstile.leave()
    assert turnstile.enter()


def test_a_thread_that_died_in_its_turn_does_not_stop_the_others():
    turnstile = Turnstile()
    lost = threading.Thread(target=turnstile.enter)
    lost.start()
    lost.join()
    through = []
    other = threading.Thread(target=lambda: through.append(turnstile.enter()))
    other.start()
    other.join(timeout=300)
    assert through == [True]


def test_who_comes_often_does_not_keep_the_others_out():
    """One thread comes again at once, always; each of the others gets in all the same."""
    turnstile, done, through = Turnstile(), threading.Event(), []

    def come_again():
        while not done.is_set():
            turnstile.enter()
            turnstile.leave()

    def come_once(name):
        turnstile.enter()
        through.append(name)
        turnstile.leave()

    greedy = [threading.Thread(target=come_again) for _ in range(2)]
    others = [threading.Thread(target=come_once, args=(name,)) for name in range(8)]
    for thread in greedy + others:
        thread.start()
    for thread in others:
        thread.join(timeout=300)
    done.set()
    for thread in greedy:
        thread.join()
    assert sorted(through) == list(range(8))


def test_a_long_statement_leaves_the_turnstile_to_the_others():
    env = registration.make("sqlgym/Explore-v0")
    env.reset(options={"task_id": "mountain_huts-001"})
    database = open_database(env.task.database)
    done = threading.Event()

    def ask():
        env.step({"name": "query", "arguments": {"sql": LONG_STATEMENT}})
        done.set()

    asking = threading.Thread(target=ask)
    asking.start()
    entered_meanwhile = 0
    while not done.is_set():
        if TURNSTILE.enter():
            entered_meanwhile += not done.is_set()
            TURNSTILE.leave()
        time.sleep(0.001)
    asking.join()
    assert entered_meanwhile > 0
    assert database.query(LONG_STATEMENT).rows == ((200_000,),)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_the_child_of_a_fork_finds_the_turnstile_free():
    held, release = threading.Event(), threading.Event()

    def hold():
        TURNSTILE.enter()
        held.set()
        release.wait(300)
        TURNSTILE.leave()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(300)
    child = os.fork()
    if child == 0:
        os._exit(0 if TURNSTILE.enter() else 1)
    release.set()
    holder.join()
    assert os.waitpid(child, 0)[1] == 0
