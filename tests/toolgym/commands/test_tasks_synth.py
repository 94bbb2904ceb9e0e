"""`toolgym tasks synth`, `stats` and `show`: from a bare database to a folder one can look at."""

import json
import sqlite3
from collections import Counter

import gymnasium as gym
import pytest

from sqlgym import load_tasks
from sqlgym.tasks.gold import gold_of
from tests.toolgym.commands.command_line import run_here
from toolgym import make


def tasks(*arguments):
    """What `toolgym tasks ...` says and how it ends."""
    return run_here("tasks", *arguments)


def make_database(path, shift=0):
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE boat (boat_id INTEGER PRIMARY KEY, name TEXT, kind TEXT, length INTEGER)"
    )
    kinds = ("ketch", "sloop", "yawl")
    rows = [
        (n, f"Boat {chr(65 + n)}", kinds[n * n % 3], 7 + (n * 37 + shift) % 90) for n in range(26)
    ]
    connection.executemany("INSERT INTO boat VALUES (?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return path


@pytest.fixture(scope="module")
def harbour(tmp_path_factory):
    """A database file."""
    return make_database(tmp_path_factory.mktemp("files") / "harbour.db")


@pytest.fixture(scope="module")
def written(harbour, tmp_path_factory):
    """What `synth` made of it, and what it said."""
    out = tmp_path_factory.mktemp("written") / "tasks"
    options = ("--out", str(out), "--n", "16", "--splits", "train=0.7,dev=0.3")
    done = tasks("synth", harbour, *options)
    assert done.returncode == 0, done.stderr
    return out, done


def test_the_folder_is_in_the_spider_layout_and_loads_and_plays(written, harbour):
    out, _ = written
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}

    assert files == {
        "SYNTHESIS.md",
        "tables.json",
        "train_spider.json",
        "dev.json",
        "database/harbour/harbour.sqlite",
    }
    assert (out / "database/harbour/harbour.sqlite").read_bytes() == harbour.read_bytes()
    for split in ("train", "dev"):
        loaded = load_tasks(out, split)
        assert loaded.check() == {}
        assert all(task.hardness and gold_of(task).result.rows for task in loaded)
    entry = json.loads((out / "dev.json").read_bytes())[0]
    assert entry.keys() == {"id", "db_id", "question", "query", "hardness", "template"}
    (schema,) = json.loads((out / "tables.json").read_bytes())
    assert schema["table_names_original"] == ["boat"]


@pytest.mark.integration
def test_what_synth_writes_is_what_check_show_eval_and_train_read(harbour, tmp_path):
    out = tmp_path / "tasks"
    assert tasks("synth", harbour, "--out", out, "--n", 40).returncode == 0
    report = json.loads(tasks("check", out, "--json").stdout)

    assert report["playable"] == report["tasks"] == 40
    assert list(report["splits"]) == ["train", "dev", "test"]
    for split in report["splits"]:
        task_id = load_tasks(out, split).ids[0]
        assert f"split: {split}\n" in tasks("show", out, task_id).stdout
    made = {"dataset": str(out)}
    assert len(gym.make("sqlgym/Explore-v0", **made).unwrapped.tasks) == report["splits"]["train"]
    done = run_here("eval", "sqlgym/Explore-v0", "--dataset", out, "--n", 1, "--json")
    assert json.loads(done.stdout)["split"] == "dev"


def test_a_folder_that_is_there_is_replaced_only_if_it_was_written_here(harbour, written, tmp_path):
    out = tmp_path / "out"
    assert tasks("synth", harbour, "--out", out, "--n", 5, "--splits", "dev=1").returncode == 0
    before = (out / "dev.json").read_bytes()

    done = tasks("synth", harbour, "--out", out, "--n", 9)
    assert done.returncode == 2
    assert "already exists: choose another folder, or add --overwrite" in done.stderr
    assert (out / "dev.json").read_bytes() == before

    again = ("--n", 9, "--splits", "dev=1", "--overwrite")
    assert tasks("synth", harbour, "--out", out, *again).returncode == 0
    assert len(load_tasks(out, "dev")) == 9
    assert [path.name for path in tmp_path.iterdir()] == ["out"]

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    done = tasks("synth", harbour, "--out", tmp_path / "mine", "--overwrite")
    assert done.returncode == 2
    assert "--overwrite does not remove it" in done.stderr
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_stats_count_by_database_and_hardness(written):
    out, _ = written
    told = json.loads(tasks("stats", out, "--json").stdout)
    rows = {(row["split"], row["database"]): row for row in told["rows"]}

    assert told["playable"] == rows["all", "all"]["tasks"] == 16 - len(told["refused"])
    for split in ("train", "dev"):
        levels = Counter(task.hardness for task in load_tasks(out, split))
        row = rows[split, "harbour"]
        assert row["tasks"] == levels.total()
        assert {level: row[level] for level in levels} == levels


def test_a_family_that_writes_no_tasks_says_so_and_has_its_tasks_counted_and_shown(harbour):
    env = ("--env", "aflowgym/Compose-v0")
    done = tasks("synth", harbour, "--out", "out", *env)
    assert done.returncode == 2
    assert "this environment does not support the synthesis of tasks" in done.stderr
    counted = json.loads(tasks("stats", "bundled", *env, "--json").stdout)
    assert counted["rows"][-1]["tasks"] == counted["playable"] > 0
    task_id = make("aflowgym/Compose-v0").tasks.ids[0]
    assert "question: " in tasks("show", "bundled", task_id, *env).stdout
