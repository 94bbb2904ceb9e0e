"""`toolgym tasks synth`, `stats` and `show`: from a bare database to a folder one can look at."""

import json
import re
import sqlite3

import gymnasium as gym
import pytest

from sqlgym import load_tasks
from sqlgym.tasks.gold import gold_of
from tests.toolgym.commands.command_line import run_here
from toolgym import Task, TaskSet, ToolEnv, tool


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
    assert entry.keys() == {"id", "db_id", "question", "query", "hardness", "shape"}
    (schema,) = json.loads((out / "tables.json").read_bytes())
    assert schema["table_names_original"] == ["boat"]


def test_the_summary_has_levels_rejections_and_what_went_where(written):
    out, done = written
    counts = {s: len(load_tasks(out, s)) for s in ("train", "dev")}

    assert re.search(r"^harbour: 16 tasks \(\d+ easy, .*\) of \d+ candidates$", done.stdout, re.M)
    assert re.search(r"^  rejected: \d[\d,]* \w+, ", done.stdout, re.M)
    assert done.stdout.splitlines()[-1].startswith(
        f"{out}: {counts['train']} train, {counts['dev']} dev"
    )
    assert done.stderr == ""
    assert "Traceback" not in done.stderr


def test_json_is_one_object_and_the_splits_are_those_of_a_bare_database(harbour, tmp_path):
    done = tasks("synth", harbour, "--out", tmp_path / "out", "--n", 12, "--json")
    told = json.loads(done.stdout)
    source = told["sources"]["harbour"]

    for split in ("train", "dev", "test"):
        bare = load_tasks(harbour, split, synthesis={"n": 12})
        assert load_tasks(tmp_path / "out", split).ids == bare.ids
        assert told["splits"][split] == len(bare)
    assert source.keys() == {
        "candidates",
        "kept",
        "by_hardness",
        "rejected",
        "missing",
        "left_out",
    }
    assert sum(source["by_hardness"].values()) == source["kept"] == 12
    assert sum(source["rejected"].values()) + source["kept"] <= source["candidates"] + 12


@pytest.mark.integration
def test_the_same_seed_writes_the_same_bytes_and_another_seed_others(harbour, tmp_path):
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        done = tasks("synth", harbour, "--out", tmp_path / name, "--n", 10, "--seed", seed)
        assert done.returncode == 0, done.stderr
    first, again, other = ((tmp_path / name / "dev.json").read_bytes() for name in "abc")

    assert first == again
    assert first != other


def test_a_split_of_a_small_database_without_tasks_is_named_and_the_others_are_checked(harbour):
    done = tasks("check", harbour, "--set", 'synthesis={"n": 3}')

    assert done.returncode == 0, done.stderr
    assert "playable: 3" in done.stdout
    lines = done.stderr.splitlines()
    assert lines
    assert all(": of its 3 tasks none falls to '" in line for line in lines)


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


def test_options_choose_levels_and_tables_and_a_link_copies_nothing(harbour, tmp_path):
    levels = '{"easy": 0.5, "medium": 0.5}'
    more = (
        "--set",
        f"hardness={levels}",
        "--set",
        'tables=["boat"]',
        "--splits",
        "dev=1",
        "--link",
    )
    done = tasks("synth", harbour, "--out", tmp_path / "out", "--n", 20, *more)
    loaded = load_tasks(tmp_path / "out", "dev")

    assert done.returncode == 0, done.stderr
    assert {task.hardness for task in loaded} == {"easy", "medium"}
    assert (tmp_path / "out/database/harbour/harbour.sqlite").resolve() == harbour.resolve()


def test_several_files_and_folders_become_one_set(harbour, tmp_path):
    (tmp_path / "more").mkdir()
    make_database(tmp_path / "more" / "port.sqlite", shift=1)
    done = tasks("synth", harbour, tmp_path / "more", "--out", tmp_path / "out", "--n", 4)

    assert done.returncode == 0, done.stderr
    items = {task.item for task in load_tasks(tmp_path / "out", "dev")}
    assert items == {"harbour", "port"}


def test_a_folder_that_is_there_is_replaced_only_if_it_was_written_here(harbour, written, tmp_path):
    out = tmp_path / "out"
    assert tasks("synth", harbour, "--out", out, "--n", 5, "--splits", "dev=1").returncode == 0
    before = (out / "dev.json").read_bytes()

    done = tasks("synth", harbour, "--out", out, "--n", 9)
    assert done.returncode == 2
    assert "is there already: name another folder, or add --overwrite" in done.stderr
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


def test_stats_count_by_database_hardness_and_shape(written):
    out, _ = written
    told = json.loads(tasks("stats", out, "--json").stdout)
    rows = {(row["split"], row["database"]): row for row in told["rows"]}
    total = rows["all", "all"]

    assert told["playable"] == total["tasks"] == 16 - len(told["refused"])
    assert set(told["splits"]) == {"train", "dev"}
    for split in ("train", "dev"):
        loaded = load_tasks(out, split)
        assert rows[split, "harbour"]["tasks"] == len(loaded)
        for level in ("easy", "medium", "hard", "extra"):
            expected = sum(task.hardness == level for task in loaded)
            assert rows[split, "harbour"].get(level, 0) == expected
    shapes = {"one value", "one row", "one column", "a table"} & total.keys()
    assert sum(rows["train", "harbour"][shape] for shape in shapes) == told["splits"]["train"]


@pytest.mark.integration
def test_stats_of_a_bare_file_need_no_split_and_no_option(tmp_path):
    with sqlite3.connect(tmp_path / "hills.db") as connection:  # about which little can be asked
        connection.execute("CREATE TABLE hill (hill_id INTEGER PRIMARY KEY, height INTEGER)")
        rows = [(i, 100 + 13 * i % 71) for i in range(30)]
        connection.executemany("INSERT INTO hill VALUES (?, ?)", rows)
    connection.close()
    done = tasks("stats", tmp_path / "hills.db")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert re.search(r"^train +hills", done.stdout, re.M)


def test_what_is_refused_is_counted_apart(tmp_path):
    make_database(tmp_path / "harbour.sqlite")
    queries = ["SELECT name FROM boat WHERE 0", "SELECT max(length) FROM boat"]
    entries = [{"db_id": "harbour", "question": f"{q}?", "query": q} for q in queries]
    (tmp_path / "dev.json").write_text(json.dumps([*entries, {"db_id": "harbour"}]))
    told = json.loads(tasks("stats", tmp_path, "--json").stdout)

    assert (told["tasks"], told["playable"]) == (3, 1)
    assert told["codes"] == {"empty_gold": 1, "missing_key": 1}


def test_show_tells_question_gold_result_and_whether_it_is_refused(written):
    out, _ = written
    task = load_tasks(out, "dev")[0]
    told = json.loads(tasks("show", out, task.id, "--json").stdout)

    assert (told["id"], told["split"], told["refused"]) == (task.id, "dev", "no")
    assert (told["question"], told["gold SQL"]) == (task.question, task.gold_sql)
    assert told["hardness"] == task.hardness
    assert told["tables"] == "boat"
    first = gold_of(task).result.rows[0][0]
    assert str(first) in told["result"]
    lines = tasks("show", out, task.id).stdout.splitlines()
    assert lines[0] == f"id: {task.id}"
    assert lines[-1] == "refused: no"


def test_show_says_why_a_task_is_refused(tmp_path):
    make_database(tmp_path / "harbour.sqlite")
    entry = {"db_id": "harbour", "question": "?", "query": "SELECT name FROM boat WHERE 0"}
    (tmp_path / "dev.json").write_text(json.dumps([entry, entry | {"db_id": "zoo"}]))

    assert "[empty_gold] its gold SQL finds no rows" in tasks("show", tmp_path, "dev-00000").stdout
    assert "refused: [unknown_database]" in tasks("show", tmp_path, "dev-00001").stdout


def test_an_id_that_is_not_there_is_answered_with_the_nearest():
    done = tasks("show", "bundled", "observatory-0041")

    assert done.returncode == 2
    assert "there is no task 'observatory-0041' in bundled (train, dev, test)" in done.stderr
    assert "observatory-041" in done.stderr


ALL = [("all", "i"), ("all", "all")]


class Plain(ToolEnv):
    """Plain."""

    def __init__(self, dataset="x", split="dev", databases=None):
        super().__init__(TaskSet([Task("a", "What?", item="i", extra={"answer": 1})]))

    def begin(self, task):
        return "?"

    @tool(terminal=True)
    def say(self) -> str:
        """Say."""
        return self.submit(True)


@pytest.fixture
def plain():
    """Runs `toolgym tasks ARGUMENTS` with an environment whose family has no tasks to write."""
    gym.register(id="plain/Plain-v0", entry_point=Plain)
    yield lambda *arguments: tasks(*arguments, "--env", "plain/Plain-v0")
    del gym.registry["plain/Plain-v0"]


def test_a_family_that_writes_no_tasks_says_so(harbour, tmp_path, plain):
    done = plain("synth", harbour, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "the tasks of this environment cannot be written by a program" in done.stderr
    rows = json.loads(plain("stats", "x", "--json").stdout)["rows"]
    assert rows == [{"split": each, "item": item, "tasks": 1} for each, item in ALL]
    assert plain("show", "x", "a").stdout.splitlines()[2:4] == ["question: What?", "item: i"]
