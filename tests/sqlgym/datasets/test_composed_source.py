"""A data set of text whose databases lie in several folders."""

import json
import shutil
import sqlite3

import pytest

from sqlgym.datasets import bundled, text_source
from sqlgym.datasets.load import load_tasks
from toolgym.errors import ConfigurationError, EnvironmentFault

SCHEMA = {
    "description": "One table.",
    "tables": [
        {
            "name": "things",
            "description": "Things.",
            "primary_key": ["thing_id"],
            "columns": [{"name": "thing_id", "type": "INTEGER", "description": "Number."}],
        }
    ],
}


def write_database(folder, db_id, rows=(1, 2)):
    (folder / db_id).mkdir(parents=True)
    (folder / db_id / "schema.json").write_text(json.dumps(SCHEMA))
    (folder / db_id / "things.csv").write_text("\n".join(["thing_id", *map(str, rows), ""]))


def question(db_id, number=1):
    asked = {"id": f"{db_id}-{number:03d}", "db_id": db_id, "hardness": "easy"}
    return asked | {"question": f"{number}?", "query": "SELECT count(*) FROM things"}


@pytest.fixture
def source(tmp_path):
    """An older set of two databases, and a newer one that adds two and takes the older ones."""
    older, newer = tmp_path / "older", tmp_path / "newer"
    for folder, db_id in ((older, "farm"), (older, "zoo"), (newer, "port"), (newer, "mill")):
        write_database(folder, db_id)
    (older / "train.json").write_text(json.dumps([question("farm"), question("farm", 2)]))
    (older / "dev.json").write_text(json.dumps([question("zoo")]))
    (newer / "questions").mkdir()
    for db_id in ("port", "mill"):
        (newer / "questions" / f"{db_id}.json").write_text(json.dumps([question(db_id)]))
    splits = {"train": ["farm", "mill"], "dev": ["zoo"], "test": ["port"]}
    (newer / "dataset.json").write_text(json.dumps({"splits": splits, "sources": ["../older"]}))
    return newer


def test_a_third_set_adds_questions_to_databases_of_both_older_ones(source, tmp_path):
    third = tmp_path / "third"
    (third / "questions").mkdir(parents=True)
    for db_id in ("farm", "mill"):
        added = [question(db_id, 201)]
        (third / "questions" / f"{db_id}.json").write_text(json.dumps(added))
    splits = {"train": ["farm", "mill"], "dev": ["zoo"], "test": ["port"]}
    entry = {"splits": splits, "sources": ["../newer", "../older"]}
    (third / "dataset.json").write_text(json.dumps(entry))

    read = bundled.read(third)

    assert [one["id"] for one in read.train] == [
        *["farm-001", "farm-002", "farm-201"],
        *["mill-001", "mill-201"],
    ]
    assert [one["id"] for one in (*read.dev, *read.test)] == ["zoo-001", "port-001"]


def test_a_question_that_is_added_under_a_known_id_is_refused(source, tmp_path):
    third = tmp_path / "third"
    (third / "questions").mkdir(parents=True)
    (third / "questions" / "farm.json").write_text(json.dumps([question("farm", 2)]))
    splits = {"train": ["farm"], "dev": ["zoo"], "test": ["port"]}
    entry = {"splits": splits, "sources": ["../newer", "../older"]}
    (third / "dataset.json").write_text(json.dumps(entry))

    with pytest.raises(EnvironmentFault, match="id 'farm-002' occurs twice"):
        bundled.read(third)


def test_each_split_has_the_questions_of_its_databases_wherever_they_lie(source, tmp_path):
    built = bundled.build(source, tmp_path / "cache")
    ids = {
        name: [entry["id"] for entry in json.loads((built / f"{name}.json").read_bytes())]
        for name in ("train_spider", "dev", "test")
    }
    assert ids == {
        "train_spider": ["farm-001", "farm-002", "mill-001"],
        "dev": ["zoo-001"],
        "test": ["port-001"],
    }
    with sqlite3.connect(built / "database" / "port" / "port.sqlite") as database:
        assert database.execute("SELECT count(*) FROM things").fetchone() == (2,)


def test_a_change_in_the_older_folder_is_a_change_of_the_newer_set(source, tmp_path):
    first = bundled.build(source, tmp_path / "cache")
    (source.parent / "older" / "farm" / "things.csv").write_text("thing_id\n7\n")
    assert bundled.build(source, tmp_path / "cache") != first


def damage_entry(**changes):
    def damage(source):
        entry = json.loads((source / "dataset.json").read_bytes())
        entry["splits"] |= changes
        (source / "dataset.json").write_text(json.dumps(entry))

    return damage


def wrong_database(source):
    (source / "questions" / "mill.json").write_text(json.dumps([question("port", 9)]))


def same_id(source):
    asked = [question("mill"), question("mill")]
    (source / "questions" / "mill.json").write_text(json.dumps(asked))


DAMAGES = {
    "a database in two splits": (damage_entry(dev=["farm"]), r"dataset.json: 'farm' occurs twice"),
    "a database that is nowhere": (damage_entry(dev=["sea"]), r"no folder 'sea' with a schema"),
    "no test split": (
        lambda source: (source / "dataset.json").write_text('{"splits": {"train": [], "dev": []}}'),
        r"dataset.json, splits.test: Field required",
    ),
    "questions on another database": (wrong_database, r"mill.json, 0: it is on 'port', not on"),
    "an id twice": (same_id, r"mill.*, 1: id 'mill-001' occurs twice"),
    "no questions": (
        lambda source: (source / "questions" / "port.json").unlink(),
        r"port.json: it cannot be read",
    ),
    "no older folder": (
        lambda source: shutil.rmtree(source.parent / "older"),
        r"no folder 'farm' with a schema",
    ),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES.keys())
def test_damaged_text_is_refused_with_file_and_place(source, tmp_path, damage, message):
    damage(source)
    with pytest.raises(EnvironmentFault, match=message):
        bundled.build(source, tmp_path / "cache")


def test_a_folder_without_the_file_takes_from_no_other(source):
    assert text_source.others(source.parent / "older") == []


def test_a_folder_of_text_is_a_data_set_by_its_path(source):
    assert load_tasks(source, "test").ids == ["port-001"]
    assert load_tasks(source.parent / "older", "train").ids == ["farm-001", "farm-002"]


def test_what_is_wrong_in_a_folder_of_ones_own_is_told_with_its_place(source):
    (source / "port" / "things.csv").write_text("thing_id\nmany\n")

    with pytest.raises(ConfigurationError, match=r"things\.csv.*many"):
        load_tasks(source, "test")


def test_a_schema_beside_no_rows_makes_no_folder_of_text(tmp_path):
    (tmp_path / "database").mkdir()
    (tmp_path / "database" / "schema.json").write_text("{}")

    assert bundled.spider_layout(tmp_path) == tmp_path
