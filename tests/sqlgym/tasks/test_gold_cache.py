"""Verdicts on golds are kept, believed only while they hold, and never harm when damaged."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sqlgym.database import database as databases
from sqlgym.datasets import load as sql_tasks
from sqlgym.datasets.load import load_tasks
from sqlgym.tasks import gold
from sqlgym.tasks.gold import GoldVerdict
from toolgym.errors import EnvironmentFault, TaskRefused, ToolError

GOLDS = ["SELECT count(*) FROM t", "SELECT x FROM t WHERE x > 9", "SELECT y FROM t"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data set of three tasks, of which two are refused, and an empty cache."""
    monkeypatch.setenv("TOOLGYM_CACHE", str(tmp_path / "cache"))
    data = tmp_path / "data"
    (data / "database").mkdir(parents=True)
    write(data / "database" / "d.sqlite", "INSERT INTO t VALUES (1), (2)")
    entries = [{"db_id": "d", "question": f"{gold}?", "query": gold} for gold in GOLDS]
    (data / "dev.json").write_text(json.dumps(entries))
    return data


def write(path, script):
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript(f"CREATE TABLE t (x INT); {script}")
    connection.close()


@pytest.fixture
def run_golds(monkeypatch):
    """The golds that were run, in order."""
    ran = []
    real = gold.gold_of

    def counted(task, *options):
        ran.append(task.gold_sql)
        return real(task, *options)

    monkeypatch.setattr(gold, "gold_of", counted)
    return ran


def fresh(folder):
    """The tasks as another process would load them."""
    sql_tasks._load.cache_clear()
    gold._known.cache_clear()
    return load_tasks(folder, "dev")


def cache_files(folder):
    return sorted((folder.parent / "cache" / "sql" / "verdicts").iterdir())


def test_a_gold_is_run_once_and_its_verdict_is_believed_ever_after(folder, run_golds):
    first = {k: str(v) for k, v in fresh(folder).check().items()}
    assert run_golds == GOLDS
    again = {k: str(v) for k, v in fresh(folder).check().items()}
    assert run_golds == GOLDS
    assert again == first
    assert [v.code for v in fresh(folder).check().values()] == ["empty_gold", "gold_unknown_column"]


def test_a_task_of_a_cached_verdict_still_says_its_own_id(folder):
    fresh(folder).check()
    with pytest.raises(TaskRefused, match=r"task 'dev-00001' is refused \[empty_gold\]"):
        fresh(folder).require("dev-00001")


def test_a_changed_database_is_judged_anew(folder, run_golds):
    fresh(folder).check()
    write(folder / "database" / "d.sqlite", "INSERT INTO t VALUES (10), (11)")
    os.utime(folder / "database" / "d.sqlite", (1, 1))
    assert list(fresh(folder).check()) == ["dev-00002"]
    assert run_golds == GOLDS * 2


def test_other_rules_judge_anew(folder, run_golds, monkeypatch):
    fresh(folder).check()
    monkeypatch.setattr(gold, "source_state", lambda pattern: "another version")
    fresh(folder).check()
    assert run_golds == GOLDS * 2
    assert len(cache_files(folder)) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"\x00\xff nonsense",
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b"empty_gold", b"empty_goat"),
        lambda data: b"",
        lambda data: data.replace(b"\n", b""),
    ],
    ids=["garbage", "half", "altered", "emptied", "run together"],
)
def test_a_damaged_cache_is_ignored_and_mended(folder, damage):
    expected = {k: str(v) for k, v in fresh(folder).check().items()}
    (file,) = cache_files(folder)
    file.write_bytes(damage(file.read_bytes()))
    assert {k: str(v) for k, v in fresh(folder).check().items()} == expected
    gold._known.cache_clear()
    assert len(gold._known(file)) == 3


def test_a_cut_off_line_does_not_spoil_the_next_one(folder):
    fresh(folder).check()
    (file,) = cache_files(folder)
    with file.open("ab") as stream:
        stream.write(b'0badc0de ["half a li')
    database = folder / "database" / "d.sqlite"
    gold.keep_verdict(database, "SELECT 'é'", GoldVerdict("code", "naïve ☃"))
    gold._known.cache_clear()
    assert gold.recall_verdict(database, "SELECT 'é'") == GoldVerdict("code", "naïve ☃")
    assert len(gold._known(file)) == 4


def test_a_cache_that_cannot_be_written_is_no_error(folder, monkeypatch):
    (folder / "a_file").write_text("")
    monkeypatch.setenv("TOOLGYM_CACHE", str(folder / "a_file" / "below"))
    assert len(fresh(folder).check()) == 2


def test_what_the_machine_stopped_is_not_kept(folder, monkeypatch):
    def slow(*_):
        raise ToolError("too_much_memory", "It needs too much memory.")

    gold.gold_of.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(databases.Database, "query", slow)
        with pytest.raises(EnvironmentFault, match="memory"):
            fresh(folder).check()
    assert len(fresh(folder).check()) == 2


WRITER = """
import sys
from pathlib import Path
from sqlgym.tasks import gold
gold.source_state = lambda pattern: "these"  # in all, even while somebody edits the source
for n in range(400):
    sql = f"SELECT {sys.argv[2]}, {n}"
    gold.keep_verdict(Path(sys.argv[1]), sql, gold.GoldVerdict("code", "x" * 300))
"""


@pytest.mark.integration
def test_processes_that_write_at_once_lose_nothing(folder, monkeypatch):
    monkeypatch.setattr(gold, "source_state", lambda pattern: "these")
    database = folder / "database" / "d.sqlite"
    root = str(Path(gold.__file__).parents[2])
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(database), str(n)], cwd=root)
        for n in range(2)
    ]
    assert [writer.wait(timeout=600) for writer in writers] == [0, 0]
    gold._known.cache_clear()
    for writer in range(2):
        for n in range(400):
            assert gold.recall_verdict(database, f"SELECT {writer}, {n}") is not None
