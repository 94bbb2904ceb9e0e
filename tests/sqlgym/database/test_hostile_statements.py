"""Hostile statements, each in a process of its own: what it takes, and that it comes back."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sqlgym.database.hostile_statements import FULL_TEXT, SCRIPT, all_statements

ROOT = Path(__file__).parents[3]
MOST_MIB = 256
MOST_TIMES = 4
"""As much processor time as the plain statement that spends its budget of steps, so many times."""
TRIES = 3
"""What took longer is measured again: of several times the smallest is the statement's own."""
A_FEW = [
    "formats.blob_number",
    "formats.adding_up",
    "functions.trim_once",
    "memory.order_emoji",
    "memory.materialized_long",
    "rows.same_emoji_400",
    "rows.same_long_1999",
    "written_out.chain_joined_39",
    "written_out.doubled_30",
    "written_out.arms_20",
    "written_out.depth",
    "full_text.near",
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "hostile.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(SCRIPT)
    try:
        connection.executescript(FULL_TEXT)
    except sqlite3.OperationalError:  # this SQLite has no fts5: there is no such table then
        connection.rollback()
    connection.close()
    return path


def measured(path, *wanted):
    """What each statement took, by its name."""
    command = [sys.executable, "-m", "tests.sqlgym.database.hostile_driver", str(path), *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return [json.loads(line) for line in done.stdout.splitlines()]


def assert_all_come_back(took):
    assert [each for each in took if each["got"].startswith(("died", "fault"))] == []
    assert [each for each in took if each["mib"] > MOST_MIB] == []


def test_the_names_of_the_statements_are_their_own():
    statements = all_statements()
    assert len({(each.kind, each.name) for each in statements}) == len(statements) >= 300
    assert len({each.sql for each in statements}) == len(statements)


def test_a_few_hostile_statements_come_back_with_little_memory(path):
    took = measured(path, *A_FEW)
    assert len(took) == len(A_FEW)
    assert_all_come_back(took)
    assert {each["got"] for each in took} <= {"too_large", "too_much_memory", "rows 1"}


@pytest.mark.slow
def test_all_hostile_statements_come_back_within_their_bounds(path):
    took = measured(path)
    plain = max(each["seconds"] for each in took if each["name"] == "steps.plain")
    for key in ("mib", "seconds"):
        print(f"\nThe most {key}; a plain statement takes {plain:.2f} s:")
        for each in sorted(took, key=lambda each: -each[key])[:20]:
            print(f"{each['name']:36} {each['got'][:20]:20} {each['mib']:8} {each['seconds']:8}")
    assert_all_come_back(took)
    slow = {each["name"]: each["seconds"] for each in took if each["seconds"] > MOST_TIMES * plain}
    for _ in range(TRIES - 1):
        again = {each["name"]: each["seconds"] for each in measured(path, *slow)} if slow else {}
        slow = {name: seconds for name, seconds in again.items() if seconds > MOST_TIMES * plain}
    assert slow == {}
