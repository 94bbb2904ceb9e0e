"""Many threads over many databases: few open files, no wrong result, no hang."""

import os
import random
import shutil
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sqlgym.database.database import MOST_IDLE, POOL, open_database
from toolgym.errors import EnvironmentFault, ToolError

THREADS = 64
DESCRIPTORS = Path("/proc/self/fd")


def make_databases(folder, n):
    """Files that differ: `n` of them; the rows of number `i` say `i`."""
    paths = []
    for number in range(n):
        path = folder / f"db{number}.sqlite"
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INT, s TEXT)")
        rows = [(k, number * 1_000 + k, f"text {number}") for k in range(40)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.commit()
        connection.close()
        paths.append(path)
    return paths


def question(number, draw):
    """A query to database `number`, and its only right outcome: rows, or the code of an error."""
    k = draw.randrange(40)
    value = number * 1_000 + k
    return draw.choice(
        [
            (f"SELECT v FROM t WHERE k = {k}", ((value,),)),
            ("SELECT count(*), min(v) FROM t", ((40, number * 1_000),)),
            (
                f"SELECT v, s FROM t WHERE v >= {value} ORDER BY v LIMIT 1",
                ((value, f"text {number}"),),
            ),
            (f"SELECT v + {draw.randrange(10**6)} - v AS x FROM t LIMIT 0", ()),
            (f"SELECT date('2024-01-01', '+{k} days') > '2023' FROM t LIMIT 1", ((1,),)),
            (f"SELECT replace(s, 'text', '{k}') FROM t LIMIT 1", ((f"{k} {number}",),)),
            ("SELECT a.v FROM t a JOIN t b ON a.k = b.k WHERE b.k = 0", ((number * 1_000,),)),
            (f"SELECT nope{k % 3} FROM t", "unknown_column"),
            ("DELETE FROM t", "not_allowed"),
            ("SELECT * FROM", "sql_error"),
        ]
    )


class Crowd:
    """Threads that ask a shared list of databases and write down what is wrong."""

    def __init__(self, paths):
        self.paths = paths
        self.wrong = []
        self.faults = {}
        self.most_descriptors = 0
        self.asked = 0
        self._lock = threading.Lock()

    def ask(self, seed, n):
        """Ask `n` questions."""
        draw = random.Random(seed)
        for _ in range(n):
            number = draw.randrange(len(self.paths))
            sql, right = question(number, draw)
            try:
                outcome = open_database(self.paths[number]).query(sql).rows
            except ToolError as error:
                outcome = error.code
            except EnvironmentFault as fault:
                with self._lock:
                    self.faults.setdefault(number, []).append(str(fault))
                continue
            if outcome != right:
                self.wrong.append((number, sql, outcome, right))
            with self._lock:
                self.asked += 1

    def run(self, n, harm=None):
        """Ask `n` questions with all threads; `harm` is called after a third of them."""
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(done,))
        watcher.start()
        with ThreadPoolExecutor(THREADS) as pool:
            work = [pool.submit(self.ask, seed, n // THREADS) for seed in range(THREADS)]
            while harm is not None and self.asked < n // 3:
                time.sleep(0.001)
            if harm is not None:
                harm()
            for each in work:
                each.result(timeout=300)
        done.set()
        watcher.join()

    def _watch(self, done):
        while not done.is_set():
            if DESCRIPTORS.exists():
                self.most_descriptors = max(self.most_descriptors, len(os.listdir(DESCRIPTORS)))
            done.wait(0.002)


def test_64_threads_over_many_databases_open_few_files(tmp_path):
    before = len(os.listdir(DESCRIPTORS)) if DESCRIPTORS.exists() else 0
    crowd = Crowd(make_databases(tmp_path, MOST_IDLE + 26))
    crowd.run(640)
    assert (crowd.wrong, crowd.faults) == ([], {})
    assert crowd.asked == 640
    assert crowd.most_descriptors < before + MOST_IDLE + THREADS + 40
    assert POOL._n_idle <= MOST_IDLE


def harmed_run(folder, n_databases, n):
    """Run a crowd that loses one file and sees another overwritten; returns it."""
    paths = make_databases(folder, n_databases)
    crowd = Crowd(paths)

    def harm():
        paths[3].unlink()
        content = bytearray(paths[5].read_bytes())
        content[100:] = bytes(random.Random(0).randbytes(len(content) - 100))
        paths[5].write_bytes(content)

    crowd.run(n, harm)
    return crowd


def assert_only_two_are_faulty(crowd, n):
    assert crowd.wrong == []
    assert sorted(crowd.faults) == [3, 5]
    told = [fault for faults in crowd.faults.values() for fault in faults]
    words = ("cannot be read", "was changed or removed", "is not an SQLite database")
    assert all(any(word in fault for word in words) for fault in told)
    assert crowd.asked + len(told) == n // THREADS * THREADS


def test_a_deleted_and_a_corrupted_file_are_faults_of_those_two_only(tmp_path):
    assert_only_two_are_faulty(harmed_run(tmp_path, 12, 3840), 3840)


@pytest.mark.nightly
def test_20_000_mixed_queries_of_64_threads_and_two_broken_files(tmp_path):
    crowd = harmed_run(tmp_path, 200, 20_032)
    assert_only_two_are_faulty(crowd, 20_032)
    assert crowd.most_descriptors < 256


def test_one_database_answers_many_threads_alike(tmp_path):
    (path,) = make_databases(tmp_path, 1)
    database = open_database(path)
    with ThreadPoolExecutor(32) as pool:
        results = list(
            pool.map(lambda n: database.query(f"SELECT v FROM t LIMIT {n % 5}"), range(640))
        )
    assert all(len(result.rows) == n % 5 for n, result in enumerate(results))


def test_a_file_that_changes_while_it_is_read_gives_no_result(tmp_path):
    (path,) = make_databases(tmp_path, 1)
    database = open_database(path)
    kept = database.query("SELECT count(*) FROM t")
    os.utime(path, ns=(1, 1))
    assert not database.is_current()
    assert database.query("SELECT count(*) FROM t") is kept
    with pytest.raises(EnvironmentFault, match="was changed or removed while it was open"):
        database.query("SELECT max(v) FROM t")
    assert open_database(path).query("SELECT max(v) FROM t").rows == ((39,),)


def test_a_log_that_appears_under_way_is_never_read_past(tmp_path):
    (path,) = make_databases(tmp_path, 1)
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("UPDATE t SET v = -1")
    writer.commit()
    copied = tmp_path / "copy.sqlite"
    shutil.copy(path, copied)  # without its log, the copy is the state before
    shutil.copy(f"{path}-wal", f"{copied}-wal")
    for unmerged in (path, copied):
        with pytest.raises(EnvironmentFault, match="not merged"):
            open_database(unmerged)
    assert sorted(os.listdir(tmp_path)) == [
        "copy.sqlite", "copy.sqlite-wal", "db0.sqlite", "db0.sqlite-shm", "db0.sqlite-wal",
    ]  # fmt: skip
    writer.close()
    assert open_database(path).query("SELECT min(v), max(v) FROM t").rows == ((-1, -1),)
