"""Folders in the Spider layout: what is loaded, and what is refused with which reason."""

import json
import sqlite3

import pytest

from sqlgym import load_tasks
from sqlgym.database.schema import ForeignKey
from toolgym.errors import ConfigurationError


def entry(db_id="music", **more):
    return {"db_id": db_id, "question": "How many?", "query": "SELECT count(*) FROM t"} | more


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "database" / "music").mkdir(parents=True)
    connection = sqlite3.connect(tmp_path / "database" / "music" / "music.sqlite")
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    return tmp_path


def write(folder, name, content):
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


def test_a_split_loads_with_stable_ids(folder):
    write(folder, "train_spider.json", [entry(), entry(hardness="easy")])
    write(folder, "train_others.json", [entry(id="mine")])
    write(folder, "train.json", [entry(id="not read")])
    write(folder, "dev.json", [entry()])
    train = load_tasks(folder, "train")
    assert train.ids == ["train-00000", "train-00001", "mine"]
    assert [task.hardness for task in train] == [None, "easy", None]
    assert train[0].database == folder / "database" / "music" / "music.sqlite"
    assert train.refused == {}
    assert load_tasks(folder, "dev").ids == ["dev-00000"]


def test_a_bad_entry_is_refused_and_the_rest_loads(folder):
    (folder / "database" / "broken.sqlite").write_bytes(b"nonsense")
    bad = [
        "text",
        {"db_id": "music"},
        entry(query=""),
        entry("nowhere"),
        entry("../music"),
        entry("a\0b"),
        entry("broken"),
        entry(id="twice"),
        entry(id="twice"),
    ]
    write(folder, "dev.json", [entry(), *bad])
    tasks = load_tasks(folder, "dev")
    assert tasks.ids == ["dev-00000", "twice"]
    assert {name: refusal.code for name, refusal in tasks.refused.items()} == {
        "dev-00001": "not_an_object",
        "dev-00002": "missing_key",
        "dev-00003": "missing_key",
        "dev-00004": "unknown_database",
        "dev-00005": "unknown_database",
        "dev-00006": "unknown_database",
        "dev-00007": "not_a_database",
        "dev-00009": "duplicate_id",
    }
    for name, refusal in tasks.refused.items():
        assert f"dev.json, entry {int(name[-1])}: " in refusal.reason
        assert refusal.reason.endswith(".")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", r"dev\.json is not JSON: .* at line 1, column 2"),
        (b"{}", r"dev\.json is not a list of entries"),
        (b"[]", r"no usable entry: .*dev\.json is an empty list"),
        (b'["x"]', r"no usable entry: .*dev\.json, entry 0: it is not a JSON object"),
        (b"[" * 100_000, r"dev\.json is nested too deeply"),
        (b'["\xff\xfe\xff"]', r"dev\.json is not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_used_at_all_is_refused_in_one_sentence(folder, content, message):
    (folder / "dev.json").write_bytes(content)
    with pytest.raises(ConfigurationError, match=message):
        load_tasks(folder, "dev")


def test_foreign_keys_of_tables_json_are_read_and_malformed_ones_are_not(folder):
    write(folder, "dev.json", [entry()])
    tables = {
        "db_id": "music",
        "table_names_original": ["t", "u"],
        "column_names_original": [[-1, "*"], [0, "x"], [1, "y"]],
        "foreign_keys": [[1, 2], [1, 99], ["a"], 3],
    }
    write(folder, "tables.json", [tables, "x", {"db_id": "other"}])
    assert load_tasks(folder, "dev")[0].foreign_keys == (ForeignKey("t", "x", "u", "y"),)


def test_real_spider_loads_whole(spider):
    sets = [load_tasks(spider, split) for split in ("train", "dev")]
    assert sum(map(len, sets)) == 250
    assert len({task.item for tasks in sets for task in tasks if task.foreign_keys}) >= 10
