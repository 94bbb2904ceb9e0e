"""The judge on questions that are written for the bundled databases, and on faults in their SQL."""

import itertools
import random
import sqlite3

import pytest

from benchmarks.blind import caught, judged
from benchmarks.blind_faults import KINDS
from sqlgym.blind import judge
from sqlgym.database import open_database
from sqlgym.datasets.bundled import dataset_folder

FEW = ("ferry_line", "observatory", "hospital_wards", "countries")


def bundled():
    folder = dataset_folder("bundled")
    return {path.stem: path for path in sorted(folder.glob("database/*/*.sqlite"))}


def mismatches(path, n, seed):
    """Questions that say something else than their query; what cannot be read is none."""
    return [
        (task.question, task.sql, verdict.findings)
        for task, verdict in judged(path, n, seed)
        if not verdict.agrees and verdict.findings[0].kind != "unreadable"
    ]


@pytest.mark.nightly
def test_every_question_that_is_written_says_what_its_query_does_and_most_can_be_read():
    for name in FEW:
        assert mismatches(bundled()[name], 40, 3) == []
        found = [verdict.agrees for _, verdict in judged(bundled()[name], 40, 4)]
        assert found.count(True) >= 0.6 * len(found)


@pytest.mark.nightly
def test_every_kind_of_fault_is_caught_in_at_least_95_of_100():
    tasks = []
    for path in bundled().values():
        tasks += [(t, open_database(path)) for t, v in judged(path, 60, 2) if v.agrees]
    random.Random(2).shuffle(tasks)
    counts = caught(tasks, 500, 2)
    assert set(counts) == set(KINDS)
    assert {kind for kind, count in counts.items() if count.caught < 0.95 * count.made} == set()


def test_what_cannot_be_read_is_said_to_be_unreadable(tmp_path):
    with sqlite3.connect(tmp_path / "t.db") as made:
        made.execute("CREATE TABLE t (a)")
    made.close()
    database = open_database(tmp_path / "t.db")
    texts = (
        "",
        "?",
        "\ud800",
        "' \" '",
        "1" * 400,
        "older than the oldest older",
        "a, b or c" * 50,
    )
    queries = ("", "\ud800", "SELECT", "SELECT (" * 500, "SELECT 1; SELECT 2")
    for question, sql in itertools.product(texts, queries):
        found = judge(question, sql, database).findings
        assert [finding.kind for finding in found] == ["unreadable"], (question, sql)
