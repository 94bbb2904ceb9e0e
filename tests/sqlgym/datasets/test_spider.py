"""Folders in the Spider layout: what loads, and what is told about what does not."""

import json
import sqlite3

import pytest

from sqlgym.database.schema import ForeignKey
from sqlgym.datasets.spider import load_spider
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
    write(folder, "dev.json", [entry()])
    train = load_spider(folder, "train")
    assert [question.id for question in train.questions] == ["train-00000", "train-00001", "mine"]
    assert [question.hardness for question in train.questions] == [None, "easy", None]
    assert train.questions[0].database == folder / "database" / "music" / "music.sqlite"
    assert train.problems == ()
    assert [question.split for question in load_spider(folder).questions] == [*["train"] * 3, "dev"]


def test_birds_keys_and_folders_load_too(folder):
    (folder / "database").rename(folder / "dev_databases")
    bird = {"db_id": "music", "question": "?", "SQL": "SELECT 1", "evidence": "x is y"}
    write(folder, "dev.json", [bird | {"difficulty": "simple"}])
    (question,) = load_spider(folder, "dev").questions
    assert (question.query, question.evidence, question.hardness) == (
        "SELECT 1",
        "x is y",
        "simple",
    )


def test_a_bad_entry_is_a_problem_and_the_rest_loads(folder):
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
    loaded = load_spider(folder, "dev")
    assert [question.id for question in loaded.questions] == ["dev-00000", "twice"]
    assert [(problem.id, problem.code) for problem in loaded.problems] == [
        ("dev-00001", "not_an_object"),
        ("dev-00002", "missing_key"),
        ("dev-00003", "missing_key"),
        ("dev-00004", "unknown_database"),
        ("dev-00005", "unknown_database"),
        ("dev-00006", "unknown_database"),
        ("dev-00007", "not_a_database"),
        ("dev-00009", "duplicate_id"),
    ]
    for place, problem in zip([1, 2, 3, 4, 5, 6, 7, 9], loaded.problems, strict=True):
        assert f"dev.json, entry {place}: " in problem.reason
        assert problem.reason.endswith(".")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"dev\.json is not JSON: .* at line 1, column 2"),
        ("{}", r"dev\.json is not a list of entries, but a JSON object"),
        ("[]", r"no usable entry: .*dev\.json is an empty list"),
        ('["x"]', r"no usable entry: .*dev\.json, entry 0: it is a JSON string"),
        ("[" * 100_000, r"dev\.json is (not JSON|not a list)"),
    ],
)
def test_a_file_that_is_unusable_as_a_whole_is_told_in_one_sentence(folder, content, message):
    write(folder, "dev.json", content)
    with pytest.raises(ConfigurationError, match=message):
        load_spider(folder, "dev")


def test_a_file_that_is_not_utf8_is_told(folder):
    (folder / "dev.json").write_bytes(b'["\xff\xfe\xff"]')
    with pytest.raises(ConfigurationError, match=r"dev\.json is not UTF-8"):
        load_spider(folder, "dev")


def test_a_missing_folder_or_split_is_told_with_what_there_is(folder):
    with pytest.raises(ConfigurationError, match="there is no folder"):
        load_spider(folder / "none", "dev")
    with pytest.raises(ConfigurationError, match=r"has 1 database but no questions: it needs a"):
        load_spider(folder)
    write(folder, "dev.json", [entry()])
    with pytest.raises(ConfigurationError, match=r"no split 'train': it has 'dev'"):
        load_spider(folder, "train")


def test_foreign_keys_of_tables_json_are_read_and_nonsense_in_it_is_not(folder):
    write(folder, "dev.json", [entry()])
    tables = {
        "db_id": "music",
        "table_names_original": ["t", "u"],
        "column_names_original": [[-1, "*"], [0, "x"], [1, "y"]],
        "foreign_keys": [[1, 2], [1, 99], ["a"], 3],
    }
    write(folder, "tables.json", [tables, "x", {"db_id": "other"}])
    keys = load_spider(folder, "dev").foreign_keys
    assert keys == {"music": (ForeignKey("t", "x", "u", "y"),), "other": ()}


def test_real_spider_loads_whole(spider):
    loaded = load_spider(spider)
    assert (len(loaded.questions), loaded.problems) == (250, ())
    assert len(loaded.foreign_keys) == 12
