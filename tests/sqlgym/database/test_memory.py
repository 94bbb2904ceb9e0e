"""The memory of one statement: whose it is, that it ends, and that the neighbours go on."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sqlgym.database import guard, memory
from sqlgym.database.database import Database, Limits
from sqlgym.database.memory import HEAVY, memory_used
from toolgym.errors import ToolError

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
SORT = ENDLESS + "SELECT printf('%.50000c', 'a') || x FROM c ORDER BY 1"
MEASURED = pytest.mark.skipif(
    memory_used is memory._unknown, reason="SQLite's memory cannot be measured here"
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "t.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE t (k INT); INSERT INTO t VALUES (1), (2), (3)")
    connection.close()
    return path


def wide_file(path, columns):
    """A file with one table of so many columns."""
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE wide ({', '.join(f'c{i}' for i in range(columns))})")
    connection.execute(f"INSERT INTO wide VALUES ({', '.join('?' * columns)})", ["text"] * columns)
    connection.commit()
    connection.close()
    return path


@MEASURED
def test_a_sort_without_end_is_ended_and_not_kept_and_releases_the_lock(path):
    database = Database(path, Limits(memory_bytes=48 << 20))
    for _ in range(2):
        with pytest.raises(ToolError, match="needs more memory") as caught:
            database.query(SORT)
        assert caught.value.code == "too_much_memory"
        assert database._cache.get(SORT) is None
        assert HEAVY.owner is None
    assert database.query("SELECT count(*) FROM t").rows == ((3,),)


@MEASURED
def test_a_sort_that_stays_below_its_bound_is_not_ended(path):
    rows = ENDLESS.replace("FROM c)", "FROM c LIMIT 800)")
    sql = (
        rows + "SELECT length(v) FROM (SELECT printf('%.50000c', 'a') || x AS v FROM c) ORDER BY v"
    )
    assert len(Database(path).query(sql).rows) == 800
    assert HEAVY.owner is None


@pytest.mark.skipif(not memory._STATM.exists(), reason="this system has no /proc")
def test_where_sqlite_tells_nothing_the_memory_of_the_process_ends_a_sort(path, monkeypatch):
    monkeypatch.setattr(guard, "memory_used", memory._resident)
    with pytest.raises(ToolError, match="needs more memory"):
        Database(path, Limits(memory_bytes=64 << 20)).query(SORT)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_the_child_of_a_fork_finds_the_lock_free():
    HEAVY.acquire("other")
    try:
        child = os.fork()
        if child == 0:
            HEAVY.wait()
            os._exit(0 if HEAVY.owner is None else 1)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        HEAVY.release()


BESIDE = """
import json, sys, threading
from sqlgym.database.database import Database
from toolgym.errors import ToolError
path, hostile = sys.argv[1:]
questions = [f"SELECT k + {n} FROM t ORDER BY k" for n in range(320)]
questions += [f"WITH RECURSIVE c(x) AS (SELECT {n} UNION ALL SELECT x + 1 FROM c LIMIT 5000) "
              "SELECT count(*), min(x) FROM c, t" for n in range(64)]
alone = [Database(path).query(sql).rows for sql in questions]
database, wrong, codes = Database(path), [], set()
done = threading.Event()
def attack():
    while not done.is_set():
        try: database.query(hostile)
        except ToolError as error: codes.add(error.code)
def ask(part):
    for number in range(part, len(questions), 32):
        try: rows = database.query(questions[number]).rows
        except Exception as error: rows = repr(error)
        if rows != alone[number]: wrong.append((questions[number], repr(rows)))
attackers = [threading.Thread(target=attack) for _ in range(3)]
threads = [threading.Thread(target=ask, args=(n,)) for n in range(32)]
for thread in attackers + threads: thread.start()
for thread in threads: thread.join()
done.set()
for thread in attackers: thread.join()
print(json.dumps([wrong, sorted(codes)]))
"""


@MEASURED
@pytest.mark.integration
def test_32_threads_beside_hostile_statements_get_the_rows_that_they_get_alone(path):
    done = subprocess.run(
        [sys.executable, "-c", BESIDE, str(path), SORT],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
        timeout=3000,
    )
    assert json.loads(done.stdout) == [[], ["too_much_memory"]]


USED_UP = """
import sqlite3, sys
from sqlgym.database.database import Database, Limits
from toolgym.errors import EnvironmentFault, ToolError
database = Database(sys.argv[1], Limits(heap_bytes=40 << 20))
hog = sqlite3.connect(":memory:", isolation_level=None)  # else all is rolled back
hog.execute("CREATE TABLE t (x BLOB)")
try:
    while True: hog.execute("INSERT INTO t VALUES (zeroblob(1000000))")
except MemoryError: pass
ask = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 60000) "
       "SELECT count(DISTINCT printf('%.100c', 'a') || x) FROM c")
try: database.query(ask)
except EnvironmentFault as fault: print(fault)
hog.close()
print(len(database.query(ask).rows))
try: database.query(sys.argv[2])
except ToolError as error: print(error.code)
print(len(database.query("SELECT k FROM t").rows))
"""


@MEASURED
def test_memory_that_somebody_else_has_used_up_is_no_mistake_of_the_agent(path):
    """The belt is the whole process's: what it ends is neither kept nor scored.

    What a statement alone has used up is its own, and the next one goes on.
    """
    done = subprocess.run(
        [sys.executable, "-c", USED_UP, str(path), SORT],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
        timeout=300,
    )
    told, rows, code, later = done.stdout.splitlines()
    assert told.startswith("SQLite is out of memory in this process")
    assert (rows, code, later) == ("1", "too_much_memory", "3")


@pytest.mark.parametrize("columns", [150, 1_500])
def test_all_columns_of_a_wide_table_can_be_selected(tmp_path, columns):
    database = Database(wide_file(tmp_path / "wide.sqlite", columns))
    assert database.query("SELECT * FROM wide").rows == (("text",) * columns,)
    assert len(database.query("SELECT * FROM wide ORDER BY c1").columns) == columns


def test_more_columns_than_any_table_has_are_refused(tmp_path):
    database = Database(wide_file(tmp_path / "wide.sqlite", 5))
    with pytest.raises(ToolError, match="too many columns") as caught:
        database.query("SELECT " + ", ".join(["c1"] * 300) + " FROM wide")
    assert caught.value.code == "too_large"


def test_a_row_of_long_emoji_texts_is_refused(path):
    emoji = "SELECT printf('%.99000c', 'a') || char(128512) AS b FROM t LIMIT 3"
    with pytest.raises(ToolError, match="One row of the result is larger") as caught:
        Database(path).query(f"SELECT {', '.join(['b'] * 200)} FROM ({emoji})")
    assert caught.value.code == "too_large"
    short = Database(path).query(f"SELECT {', '.join(['b'] * 100)} FROM (SELECT 'é' AS b FROM t)")
    assert short.rows == (("é",) * 100,) * 3


def test_a_wide_row_with_bytes_that_are_no_text_is_shown_with_marks(path):
    broken = "SELECT CAST(x'ff41' AS TEXT) AS b, printf('%.99000c', 'a') AS a FROM t LIMIT 1"
    rows = Database(path).query(f"SELECT {', '.join(['b', 'a'] * 41)} FROM ({broken})").rows
    assert rows[0][0] == "\ufffdA"
