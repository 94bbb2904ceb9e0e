"""`toolgym tasks check`: one report, for people and for programs."""

import json
import sqlite3

import pytest

from tests.toolgym.commands.command_line import run_here


@pytest.fixture
def folder(tmp_path):
    connection = sqlite3.connect(tmp_path / "shop.sqlite")
    connection.executescript("CREATE TABLE fruit (name TEXT); INSERT INTO fruit VALUES ('fig')")
    connection.close()
    golds = [
        "SELECT name FROM fruit",
        "SELECT name FROM fruit WHERE 0",
        "SELECT count(*) FROM fruit",
    ]
    entries = [{"db_id": "shop", "question": f"{n % 2}?", "query": g} for n, g in enumerate(golds)]
    (tmp_path / "dev.json").write_text(json.dumps([*entries, {"db_id": "shop"}]))
    return tmp_path


def test_the_report_counts_and_lists_what_is_refused_and_asked_twice(folder):
    done = run_here("tasks", "check", str(folder))

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{folder}: 4 tasks (4 dev) on 1 items",
        "playable: 2",
        "refused: 2 (1 missing_key, 1 empty_gold)",
        f"  dev-00003 [missing_key] {folder}/dev.json, entry 3: 'query' is missing or is not a"
        " text.",
        "  dev-00001 [empty_gold] its gold SQL finds no rows.",
        "environment faults: 0",
        "duplicate questions: 1",
        "  dev-00000, dev-00002",
    ]


@pytest.mark.parametrize("words", ["check", "stats", "check --json", "stats --json"])
def test_a_set_of_which_nothing_can_be_played_is_a_failure_with_the_first_reasons(folder, words):
    entry = {"db_id": "shop", "question": "?", "query": "SELECT name FROM fruit WHERE 0"}
    (folder / "dev.json").write_text(json.dumps([entry, {"db_id": "shop"}]))

    done = run_here("tasks", *words.split(), str(folder))

    assert done.returncode == 2
    assert "playable" in done.stdout
    if "check" in words:
        assert done.stderr.startswith(f"toolgym: none of the 2 tasks of {folder} is playable")
        reasons = done.stdout
    else:
        first, reasons = done.stderr.split("\n", 1)
        assert first == f"toolgym: no task of {folder} is playable: 1 empty_gold, 1 missing_key."
    assert f"{folder}/dev.json, entry 1: 'query' is missing" in reasons
    assert "its gold SQL finds no rows." in reasons


def test_a_line_of_a_file_that_lacks_its_sql_can_be_shown(tmp_path):
    file = tmp_path / "questions.jsonl"
    file.write_text('{"question": "How many?", "db_id": "shop"}\n')

    done = run_here("tasks", "show", str(file), "train-00000")

    assert done.returncode == 0
    assert f"refused: [missing_key] {file}, line 1: 'query' is missing" in done.stdout


def test_a_file_without_a_table_gets_one_line(tmp_path):
    sqlite3.connect(tmp_path / "empty.db").execute("CREATE TABLE t (a)").connection.close()

    done = run_here("tasks", "check", str(tmp_path / "empty.db"))

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "it has no table with rows" in done.stderr
