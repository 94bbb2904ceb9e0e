"""The judge on questions that are written for the bundled databases, and on faults in their SQL."""

import os
import random
import sqlite3
from pathlib import Path

import pytest

from benchmarks.blind import caught, judged
from benchmarks.blind_faults import KINDS
from sqlgym.blind import judge
from sqlgym.database import open_database
from sqlgym.datasets.bundled import dataset_folder

FEW = ("ferry_line", "observatory", "hospital_wards", "countries")


def bundled():
    found = {}
    for name in ("bundled", "bundled-2"):
        for path in sorted(dataset_folder(name).glob("database/*/*.sqlite")):
            found.setdefault(path.stem, path)
    return found


def mismatches(path, n, seed):
    """Questions that say something else than their query; what cannot be read is none."""
    return [
        (task.question, task.sql, verdict.findings)
        for task, verdict in judged(path, n, seed)
        if not verdict.agrees and verdict.findings[0].kind != "unreadable"
    ]


def spider():
    folder = os.environ.get("TOOLGYM_SPIDER")
    return sorted(Path(folder).glob("database/*/*.sqlite")) if folder else []


@pytest.mark.parametrize("name", FEW)
def test_every_question_that_is_written_says_what_its_query_does(name):
    assert mismatches(bundled()[name], 40, 3) == []


@pytest.mark.parametrize("name", FEW)
def test_most_questions_can_be_read(name):
    found = [verdict.agrees for _, verdict in judged(bundled()[name], 40, 4)]
    assert found.count(True) >= 0.6 * len(found)


def test_at_least_95_of_100_faults_are_caught():
    tasks = []
    for name in FEW[:2]:
        path = bundled()[name]
        tasks += [(t, open_database(path)) for t, v in judged(path, 30, 5) if v.agrees]
    random.Random(1).shuffle(tasks)
    counts = caught(tasks, 120, 1)
    assert sum(count.caught for count in counts.values()) >= 0.95 * 120
    assert len(counts) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("path", [*bundled().values(), *spider()], ids=lambda path: path.stem)
def test_no_question_of_a_long_run_disagrees(path):
    assert mismatches(path, 120, 1) == []


@pytest.mark.slow
def test_every_kind_of_fault_is_caught_in_at_least_95_of_100():
    tasks = []
    for path in bundled().values():
        tasks += [(t, open_database(path)) for t, v in judged(path, 60, 2) if v.agrees]
    random.Random(2).shuffle(tasks)
    counts = caught(tasks, 500, 2)
    assert set(counts) == set(KINDS)
    assert {kind for kind, count in counts.items() if count.caught < 0.95 * count.made} == set()


@pytest.mark.parametrize(
    "question",
    ["", "?", "\ud800", "' \" '", "1" * 400, "older than the oldest older", "a, b or c" * 50],
)
@pytest.mark.parametrize("sql", ["", "\ud800", "SELECT", "SELECT (" * 500, "SELECT 1; SELECT 2"])
def test_what_cannot_be_read_is_said_to_be_unreadable(question, sql):
    database = open_database(bundled()["ferry_line"])
    assert [finding.kind for finding in judge(question, sql, database).findings] == ["unreadable"]


def test_a_database_without_tables_is_judged(tmp_path):
    with sqlite3.connect(tmp_path / "empty.db") as made:
        made.execute("PRAGMA user_version = 1")
    database = open_database(tmp_path / "empty.db")
    assert not judge("How many rows?", "SELECT count(*) FROM t", database).agrees
