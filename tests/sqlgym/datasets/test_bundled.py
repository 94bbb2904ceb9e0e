"""Building the bundled data: the same bytes for all, whole or not at all, only from sound text."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlgym.datasets import bundled, layout
from sqlgym.datasets.layout import FolderSource
from sqlgym.datasets.load import load_tasks
from tests.sweeps import sweep
from toolgym.cache import cache_folder
from toolgym.errors import ConfigurationError, EnvironmentFault

ROOT = Path(bundled.__file__).resolve().parents[2]
SPIDER_KEYS = {"column_names", "column_names_original", "column_types", "db_id", "foreign_keys"}
SPIDER_KEYS |= {"primary_keys", "table_names", "table_names_original"}

SCHEMA = {
    "description": "A farm.",
    "tables": [
        {
            "name": "farmers",
            "description": "Who farms.",
            "primary_key": ["farmer_id"],
            "columns": [
                {"name": "farmer_id", "type": "INTEGER", "description": "Number."},
                {"name": "name", "type": "TEXT", "description": "Name."},
                {"name": "born", "type": "DATE", "description": "Birth.", "nullable": True},
                {"name": "rises_at", "type": "TIME", "description": "Start of the day."},
            ],
        },
        {
            "name": "fields",
            "description": "Who owns what.",
            "primary_key": ["farmer_id", "plot"],
            "columns": [
                {
                    "name": "farmer_id",
                    "type": "INTEGER",
                    "description": "Owner.",
                    "references": "farmers.farmer_id",
                },
                {"name": "plot", "type": "TEXT", "description": "Plot."},
                {"name": "hectares", "type": "REAL", "description": "Size.", "nullable": True},
            ],
        },
    ],
}
FARMERS = "farmer_id,name,born,rises_at\n1,Zoë O'Neil,1970-02-28,05:30\n2,Ann,\\N,06:00\n"
FIELDS = 'farmer_id,plot,hectares\n1,"a, b",1.5\n1,c,-2\n2,c,\\N\n'
QUESTION = {"id": "farm-001", "db_id": "farm", "question": "How many farmers are there?"}
QUESTION |= {"query": "SELECT count(*) FROM farmers", "hardness": "easy"}


@pytest.fixture
def source(tmp_path) -> Path:
    """A small source folder: one database of two tables, one question."""
    folder = tmp_path / "source"
    (folder / "farm").mkdir(parents=True)
    (folder / "farm" / "schema.json").write_text(json.dumps(SCHEMA), "utf-8")
    (folder / "farm" / "farmers.csv").write_text(FARMERS, "utf-8")
    (folder / "farm" / "fields.csv").write_text(FIELDS, "utf-8")
    (folder / "train.json").write_text(json.dumps([QUESTION]), "utf-8")
    (folder / "dev.json").write_text("[]", "utf-8")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def rows(folder: Path, sql: str) -> list[tuple[object, ...]]:
    database = sqlite3.connect(folder / "database" / "farm" / "farm.sqlite")
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


def test_a_build_has_the_files_of_a_spider_folder(source, tmp_path):
    built = bundled.build(source, tmp_path / "cache")
    names = {"tables.json", "train_spider.json", "dev.json", "database/farm/farm.sqlite"}
    assert set(contents(built)) == names | {layout.MANIFEST}
    assert json.loads((built / "train_spider.json").read_bytes()) == [QUESTION]


def test_values_keep_type_and_order_and_only_backslash_n_is_null(source, tmp_path):
    built = bundled.build(source, tmp_path / "cache")
    farmers = [(1, "Zoë O'Neil", "1970-02-28", "05:30"), (2, "Ann", None, "06:00")]
    assert rows(built, "SELECT * FROM farmers") == farmers
    assert rows(built, "SELECT * FROM fields") == [(1, "a, b", 1.5), (1, "c", -2.0), (2, "c", None)]


def test_the_schema_lists_columns_keys_and_types_as_spider_does(source, tmp_path):
    built = bundled.build(source, tmp_path / "cache")
    (tables,) = json.loads((built / "tables.json").read_bytes())
    assert set(tables) == SPIDER_KEYS
    assert tables["table_names"] == ["farmers", "fields"]
    assert tables["column_names_original"][0] == [-1, "*"]
    assert tables["column_names_original"][4] == [0, "rises_at"]
    assert tables["column_names"][4] == [0, "rises at"]
    types = ["text", "number", "text", "time", "time", "number", "text", "number"]
    assert tables["column_types"] == types
    assert tables["foreign_keys"] == [[5, 1]]
    assert tables["primary_keys"] == [1, 5, 6]


@pytest.mark.parametrize("name", sweep(bundled.DATASETS, ["tiny"]))
def test_two_builds_have_the_same_bytes(name, tmp_path):
    first = bundled.dataset_folder(name, tmp_path / "one")
    second = bundled.dataset_folder(name, tmp_path / "two")
    assert first.name == second.name
    assert contents(first) == contents(second)


def test_what_is_cached_is_not_built_again(source, tmp_path):
    built = bundled.build(source, tmp_path / "cache")

    def explode() -> FolderSource:
        raise AssertionError("it was read again")

    assert layout.install(built, explode) == built


def test_a_changed_byte_or_name_changes_the_place_and_a_new_date_does_not(source, tmp_path):
    first = bundled.build(source, tmp_path / "cache")
    csv = source / "farm" / "farmers.csv"
    os.utime(csv, (1, 1))
    assert bundled.build(source, tmp_path / "cache") == first
    csv.write_text(FARMERS.replace("Ann", "Eve"), "utf-8")
    changed = bundled.build(source, tmp_path / "cache")
    (source / "farm").rename(source / "ranch")
    (source / "train.json").write_text("[]", "utf-8")
    assert len({first, changed, bundled.build(source, tmp_path / "cache")}) == 3
    assert rows(changed, "SELECT name FROM farmers WHERE farmer_id = 2") == [("Eve",)]


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_a_folder_of_text_may_have_questions_of_one_split_only(split, source):
    (source / "train.json").rename(source / f"{split}.json")

    assert load_tasks(str(source), split).ids == ["farm-001"]


def test_a_folder_of_text_without_questions_is_told_what_it_lacks(source):
    for name in ("train.json", "dev.json"):
        (source / name).unlink()

    with pytest.raises(ConfigurationError, match=r"no questions: there is none of train, dev, tes"):
        load_tasks(str(source), "train")


@pytest.mark.integration
def test_processes_that_start_at_once_all_get_the_whole_folder(source, tmp_path):
    code = (
        "import sys, pathlib; from sqlgym.datasets import bundled; "
        "source, cache = map(pathlib.Path, sys.argv[1:]); print(flush=True); sys.stdin.readline(); "
        "print(bundled.build(source, cache))"
    )
    command = [sys.executable, "-c", code, str(source), str(tmp_path / "cache")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    processes = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for process in processes:
        process.stdout.readline()  # imported, and waiting for the start
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    places = {process.communicate(timeout=600)[0].strip() for process in processes}

    assert [process.returncode for process in processes] == [0] * 2
    (place,) = places
    assert contents(Path(place)) == contents(bundled.build(source, tmp_path / "alone"))
    assert [path.name for path in Path(place).parent.iterdir()] == [Path(place).name]


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("tables.json", "removed"),
        ("database/farm/farm.sqlite", "cut"),
        (layout.MANIFEST, "cut"),
    ],
)
def test_a_cache_that_lost_a_file_is_mended(source, tmp_path, name, harm):
    built = bundled.build(source, tmp_path / "cache")
    whole = contents(built)
    (built / name).unlink()
    if harm == "cut":
        (built / name).write_bytes(whole[name][:20])
    assert contents(bundled.build(source, tmp_path / "cache")) == whole


def edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    def damage(source: Path) -> None:
        path = source / name
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), "utf-8")

    return damage


FARMERS_CSV, FIELDS_CSV, SCHEMA_JSON = "farm/farmers.csv", "farm/fields.csv", "farm/schema.json"
DAMAGES = {
    "a letter in a number": (edit(FARMERS_CSV, "\n2,", "\ntwo,"), r"farmers.csv, line 3: 'two' in"),
    "an empty number": (edit(FIELDS_CSV, "1.5", ""), r"fields.csv, line 2: '' in hectares is no"),
    "a number that is not finite": (edit(FIELDS_CSV, "1.5", "inf"), r"fields.csv, line 2: 'inf'"),
    "a day that does not exist": (edit(FARMERS_CSV, "02-28", "02-30"), r"line 2: '1970-02-30' in"),
    "a date without dashes": (edit(FARMERS_CSV, "1970-02-28", "19700228"), r"line 2: '19700228'"),
    "an hour that does not exist": (edit(FARMERS_CSV, "05:30", "25:30"), r"line 2: '25:30' in"),
    "a NULL that is not allowed": (edit(FARMERS_CSV, "Ann", r"\N"), r"line 3: name may not be"),
    "a missing cell": (edit(FARMERS_CSV, ",06:00", ""), r"line 3: it has 3 cells, not 4"),
    "another header": (edit(FIELDS_CSV, "plot", "lot"), r"fields.csv, line 1: the header must be"),
    "an open quote": (edit(FIELDS_CSV, 'b"', "b"), r"fields.csv, line \d: it is not CSV"),
    "a key twice": (edit(FARMERS_CSV, "\n2,", "\n1,"), r"farmers.csv, row 2: the key \(1,\)"),
    "a composite key twice": (edit(FIELDS_CSV, "2,c", "1,c"), r"row 3: the key \(1, 'c'\)"),
    "a reference to nowhere": (edit(FIELDS_CSV, "2,c", "9,c"), r"row 3: farmer_id 9 points to no"),
    "a reference to no table": (edit(SCHEMA_JSON, "farmers.f", "barns.f"), r"points to barns.far"),
    "a type that is none": (edit(SCHEMA_JSON, '"REAL"', '"MONEY"'), r"schema.json, tables.1.colu"),
    "an unknown key": (edit(SCHEMA_JSON, '"nullable"', '"nulable"'), r"schema.json, tables.0.colu"),
    "a schema cut off": (edit(SCHEMA_JSON, "}]}]}", ""), r"schema.json: Invalid JSON"),
    "a question of no database": (
        edit("train.json", '"farm"', '"moon"'),
        r"train.json, 0: no data",
    ),
    "a question without text": (edit("train.json", '"question"', '"text"'), r"train.json, 0.quest"),
    "a list that is none": (edit("dev.json", "[]", "{}"), r"dev.json: Input should be a valid"),
    "a key that is no column": (
        edit(SCHEMA_JSON, '["farmer_id"]', '["id"]'),
        r"table farmers: its",
    ),
    "a missing table": (lambda source: (source / FIELDS_CSV).unlink(), r"fields.csv: it cannot be"),
    "other letters": (
        lambda source: (source / FARMERS_CSV).write_bytes(FARMERS.encode("latin-1")),
        r"farmers.csv: it is not UTF-8",
    ),
    "the same id twice": (
        lambda source: (source / "dev.json").write_text(json.dumps([QUESTION])),
        r"dev.json, 0: id 'farm-001' occurs twice",
    ),
    "no database": (lambda source: shutil.rmtree(source / "farm"), r"source: it has no database"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES.keys())
def test_damaged_text_is_refused_with_file_and_place_and_nothing_is_left(
    source, tmp_path, damage, message
):
    damage(source)
    with pytest.raises(EnvironmentFault, match=message):
        bundled.build(source, tmp_path / "cache")
    assert list((tmp_path / "cache").rglob("*.sqlite")) == []


def test_a_cache_that_cannot_be_written_is_a_fault_with_the_cure(source, tmp_path):
    (tmp_path / "cache").write_text("a file stands where the folder should be")
    with pytest.raises(EnvironmentFault, match=r"cannot be built in .* point TOOLGYM_CACHE at one"):
        bundled.build(source, tmp_path / "cache")


def test_the_cache_is_where_the_environment_variable_says(monkeypatch, tmp_path):
    monkeypatch.setenv("TOOLGYM_CACHE", str(tmp_path / "mine"))
    assert bundled.dataset_folder("tiny").is_relative_to(tmp_path / "mine")


@pytest.mark.skipif(sys.platform != "linux", reason="XDG_CACHE_HOME is a rule of Linux")
def test_without_it_the_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv("TOOLGYM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "toolgym"


def test_an_installed_package_reads_its_own_data_before_a_checkouts(monkeypatch, tmp_path):
    monkeypatch.setattr(bundled, "__file__", str(tmp_path / "sqlgym" / "datasets" / "bundled.py"))
    with pytest.raises(EnvironmentFault, match=r"data set is missing: neither .*_data.*data"):
        bundled.bundled_dir()
    (tmp_path / "data" / "sql").mkdir(parents=True)
    assert bundled.bundled_dir() == tmp_path / "data" / "sql"
    (tmp_path / "sqlgym" / "_data" / "sql").mkdir(parents=True)
    assert bundled.bundled_dir() == tmp_path / "sqlgym" / "_data" / "sql"


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(
        ConfigurationError, match=r"no bundled data set 'huge'; .*'bundled'.*'tiny'"
    ):
        bundled.dataset_folder("huge")


def test_a_schema_beside_no_rows_makes_no_folder_of_text(tmp_path):
    (tmp_path / "database").mkdir()
    (tmp_path / "database" / "schema.json").write_text("{}")

    assert bundled.spider_layout(tmp_path) == tmp_path
