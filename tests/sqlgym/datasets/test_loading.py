"""Data sets of every kind load, at once and one task at a time, and say what is wrong with them."""

import json
import shutil
import sqlite3
import subprocess
import sys

import pytest

import sqlgym
from sqlgym.datasets.load import RowTasks
from sqlgym.datasets.rows import STREAMED
from toolgym import ConfigurationError, EnvironmentFault, TaskRefused, registration
from toolgym.inspection import check_tasks

GOOD = {"db_id": "shop", "question": "How many?", "query": "SELECT count(*) FROM fruit"}
EMPTY = GOOD | {"question": "Which?", "query": "SELECT name FROM fruit WHERE price > 99"}


def make_database(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE fruit (name TEXT, price REAL);"
        "INSERT INTO fruit VALUES ('plum', 2), ('fig', 3)"
    )
    connection.close()
    return path


@pytest.fixture
def folder(tmp_path):
    make_database(tmp_path / "database" / "shop" / "shop.sqlite")
    return tmp_path


def write_lines(path, *entries):
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_jsonl_file_loads_beside_its_databases(folder):
    path = write_lines(
        folder / "dev.jsonl", GOOD | {"id": "mine", "evidence": "fruit is sweet"}, EMPTY
    )
    for dataset in (folder, path, str(path)):
        tasks = sqlgym.load_tasks(dataset, "dev")
        assert tasks.ids == ["dev-00000", "dev-00001"]
        assert (tasks[0].evidence, tasks[0].extra) == ("fruit is sweet", {"id": "mine"})
        assert tasks.get("dev-00001").gold_sql == EMPTY["query"]
        assert {tasks.draw(seed).id for seed in range(9)} == {"dev-00000"}
        assert tasks.refused["dev-00001"].code == "empty_gold"


@pytest.mark.parametrize("place", ["shop.sqlite", "shop/shop.db", "databases/shop.sqlite3"])
def test_databases_are_found_where_people_put_them(tmp_path, place):
    make_database(tmp_path / place)
    write_lines(tmp_path / "train.jsonl", GOOD)
    assert sqlgym.load_tasks(tmp_path, "train").draw(0).database == tmp_path / place


def test_databases_may_lie_elsewhere(folder, tmp_path_factory):
    questions = tmp_path_factory.mktemp("questions")
    write_lines(questions / "dev.jsonl", GOOD)
    (questions / "test.json").write_text(json.dumps([GOOD]))
    for split in ("dev", "test"):
        tasks = sqlgym.load_tasks(questions, split, databases=folder)
        assert tasks.draw(0).item == "shop"
    env = registration.make(
        "sqlgym/Explore-v0", dataset=questions, split="dev", databases=folder / "database"
    )
    assert "How many?" in env.reset(seed=0)[0]
    with pytest.raises(ConfigurationError, match="does not exist"):
        sqlgym.load_tasks(questions, "dev", databases=folder / "none")


def test_a_bad_line_is_refused_when_it_is_drawn_and_the_others_play(folder):
    lines = [
        GOOD,
        "{broken",
        "",
        '"text"',
        {"db_id": "shop"},
        GOOD | {"db_id": "zoo"},
        "[" * 99_999,
    ]
    write_lines(folder / "dev.jsonl", *lines, "", "  ")
    tasks = sqlgym.load_tasks(folder, "dev")
    assert len(tasks) == 7
    assert tasks.refused == {}
    codes = [refusal.code for refusal in tasks.check().values()]
    assert codes == [*["not_an_object"] * 3, "missing_key", "unknown_database", "not_an_object"]
    with pytest.raises(TaskRefused, match=r"dev\.jsonl, line 2: it is not JSON: .* column 2\."):
        tasks.require("dev-00001")
    assert {tasks.draw(seed).id for seed in range(20)} == {"dev-00000"}


def test_a_last_line_without_its_end_and_windows_line_ends_are_read(folder):
    (folder / "dev.jsonl").write_bytes(
        json.dumps(GOOD).encode() + b"\r\n" + json.dumps(EMPTY).encode()
    )
    tasks = sqlgym.load_tasks(folder, "dev")
    assert [task.question for task in tasks] == ["How many?", "Which?"]


class Untouched(list):
    """Rows that count how many of them were asked for."""

    asked = 0

    def __getitem__(self, index):
        type(self).asked += 1
        return super().__getitem__(index)


def test_no_more_tasks_are_made_than_are_used(folder):
    rows = Untouched([GOOD] * 50_000)
    tasks = sqlgym.load_tasks(rows, "train", databases=folder)
    assert isinstance(tasks._tasks, RowTasks)
    tasks.draw(7)
    tasks.get("train-49999")
    view = tasks[10:40_010]
    view.require("train-00010")
    shuffled = view.shuffle(3)
    assert shuffled.get("train-00777").id == "train-00777"
    shuffled.draw(1)
    assert Untouched.asked < 20
    with pytest.raises(ConfigurationError, match="no task 'train-00009'"):
        view.get("train-00009")


@pytest.mark.parametrize("task_id", ["train-1", "train-00050", "dev-00001", "", "train-0000²", "x"])
def test_an_id_that_no_row_has_is_not_found(folder, task_id):
    tasks = sqlgym.load_tasks([GOOD] * 50, "train", databases=folder)
    with pytest.raises(ConfigurationError, match="there is no task"):
        tasks.get(task_id)


def test_a_stream_is_read_as_far_as_is_said(folder):
    read = []

    def stream():
        while True:
            read.append(1)
            yield GOOD

    assert len(sqlgym.load_tasks(stream(), "train", databases=folder)) == STREAMED
    assert len(read) == STREAMED


BIRD = {"db_id": "shop", "question": "?", "SQL": "SELECT count(*) FROM fruit", "question_id": 7}


def test_birds_folders_load_each_by_itself_and_side_by_side(tmp_path):
    entries = [BIRD | {"evidence": "fruit = food", "difficulty": "simple"}]
    for part, split in (("dev_20240627", "dev"), ("train", "train")):
        make_database(tmp_path / part / f"{split}_databases" / "shop" / "shop.sqlite")
        (tmp_path / part / f"{split}.json").write_text(json.dumps(entries))
        (tmp_path / part / f"{split}_tables.json").write_text("[]")
        for folder in (tmp_path, tmp_path / part):
            task = sqlgym.load_tasks(folder, split).draw(0)
            assert (task.evidence, task.hardness) == ("fruit = food", "simple")
            assert task.database.parent.parent.name == f"{split}_databases"
    (tmp_path / "dev_20240627" / "mini_dev_sqlite.json").write_text(json.dumps(entries))
    assert sqlgym.load_tasks(tmp_path / "dev_20240627", "mini_dev_sqlite").draw(0).item == "shop"
    env = registration.make("sqlgym/Explore-v0", dataset=tmp_path, split="dev")
    assert "\nEvidence: fruit = food\n" in env.reset(seed=0)[0]


def wrong_folder(folder):
    (folder / "tables.json").write_text("[]")
    return folder


def wrong_file(folder):
    (folder / "notes.db").write_text("no database")
    return folder / "notes.db"


def empty_lines(folder):
    (folder / "train.jsonl").write_text("\n\n")
    return folder


def other_split(folder):
    return write_lines(folder / "dev.jsonl", GOOD)


def only_dev(folder):
    write_lines(folder / "dev.jsonl", GOOD)
    return folder


def text_file(folder):
    (folder / "notes.txt").write_text("hello")
    return folder / "notes.txt"


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (wrong_folder, "has no questions: it needs a train.json or train.jsonl"),
        (wrong_file, "notes.db is not an SQLite database"),
        (empty_lines, "train.jsonl is empty"),
        (other_split, "is split 'dev', not 'train'"),
        (only_dev, "has no split 'train': it has 'dev'"),
        (text_file, "single files must be .jsonl or SQLite"),
        (lambda folder: "hf:no such thing", r"pip install 'toolgym\[train\]'|name the|cannot be"),
        (lambda folder: [GOOD], "list has questions only; give the folder of their databases"),
    ],
)
def test_what_is_no_data_set_is_told_with_the_cure(folder, made, words):
    with pytest.raises(ConfigurationError, match=words):
        sqlgym.load_tasks(made(folder), "train")


@pytest.mark.parametrize("dataset", [3, object(), [], b"bytes"])
def test_an_object_that_is_no_data_set_is_told(folder, dataset):
    with pytest.raises(ConfigurationError, match=r"is not a data set|has no rows"):
        sqlgym.load_tasks(dataset, "train", databases=folder)


def seen_by(places):
    return lambda done, total: places.append((done, total))


def test_one_report_has_what_is_refused_and_asked_twice_and_broken(folder):
    damaged = folder / "database" / "bad" / "bad.sqlite"
    damaged.parent.mkdir()
    shutil.copy(folder / "database" / "shop" / "shop.sqlite", damaged)
    damaged.write_bytes(damaged.read_bytes()[:1_000])
    twice = GOOD | {"question": "how  MANY?"}
    entries = [GOOD, EMPTY, twice, {"db_id": "shop"}, GOOD | {"db_id": "bad"}]
    (folder / "dev.json").write_text(json.dumps(entries))
    write_lines(folder / "test.jsonl", *entries)
    for split in ("dev", "test"):
        seen = []
        sets = {split: sqlgym.load_tasks(folder, split)}
        report = check_tasks("shop", sets, seen_by(seen))
        assert (report.tasks, report.playable, report.items) == (5, 2, 2)
        assert report.codes == {"missing_key": 1, "empty_gold": 1}
        assert report.duplicates == [[f"{split}-00000", f"{split}-00002"]]
        assert [fault["task_id"] for fault in report.faults] == [f"{split}-00004"]
        assert seen[-1][0] == seen[-1][1] == len(seen)
        assert json.loads(json.dumps(report.to_json()))["playable"] == 2


def test_a_damaged_database_is_a_fault_for_who_draws_it(folder):
    make_database(folder / "database" / "bad.sqlite").write_bytes(b"SQLite format 3\0" + b"?" * 500)
    write_lines(folder / "dev.jsonl", GOOD | {"db_id": "bad"})
    with pytest.raises(EnvironmentFault, match=r"bad\.sqlite"):
        sqlgym.load_tasks(folder, "dev").draw(0)


def test_importing_the_package_loads_no_library_of_data_sets_and_no_parser():
    code = "import sys, sqlgym; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"datasets", "torch", "sqlglot", "sqlgym.datasets.load"} & set(done.stdout.split())
    assert callable(sqlgym.load_tasks)
    with pytest.raises(AttributeError, match="no attribute 'load_task'"):
        sqlgym.load_task  # noqa: B018


@pytest.mark.integration
@pytest.mark.torch
def test_a_data_set_of_hugging_face_plays_in_memory_as_a_stream_and_saved(folder, tmp_path):
    datasets = pytest.importorskip("datasets", reason="needs the extra train")
    rows = datasets.Dataset.from_list([GOOD, EMPTY])
    rows.save_to_disk(str(tmp_path / "saved"))
    datasets.DatasetDict(dev=rows).save_to_disk(str(tmp_path / "parts"))
    for dataset in (
        rows,
        datasets.DatasetDict(dev=rows),
        rows.to_iterable_dataset(),
        f"hf:{tmp_path / 'saved'}",
        f"hf:{tmp_path / 'parts'}",
    ):
        tasks = sqlgym.load_tasks(dataset, "dev", databases=folder)
        assert tasks.ids == ["dev-00000", "dev-00001"]
        assert [refusal.code for refusal in tasks.check().values()] == ["empty_gold"]
        env = registration.make("sqlgym/Explore-v0", dataset=tasks)
        assert "How many?" in env.reset(seed=0)[0]
    with pytest.raises(ConfigurationError, match=r"has no split 'exam': it has 'dev'"):
        sqlgym.load_tasks(datasets.DatasetDict(dev=rows), "exam", databases=folder)
    with pytest.raises(ConfigurationError, match=r"hf:nobody/nothing cannot be loaded"):
        sqlgym.load_tasks("hf:nobody/nothing", "dev", databases=folder)


def test_a_database_whose_name_no_file_can_have_refuses_only_its_own_task(tmp_path):
    rows = [{"db_id": name, "question": "?", "query": "SELECT 1"} for name in ("\ud800", "a\0b")]
    tasks = sqlgym.load_tasks(rows, "train", databases=tmp_path)
    assert [tasks[i].problem[0] for i in range(2)] == ["unknown_database"] * 2


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 5_000])
def test_a_data_set_whose_name_no_file_can_have_does_not_exist(name):
    with pytest.raises(ConfigurationError, match="there is no data set"):
        sqlgym.load_tasks(name, "train")
