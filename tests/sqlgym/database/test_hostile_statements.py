"""Hostile statements, each in a process of its own: what it takes, and that it comes back."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sqlgym.database.limits import Limits
from tests.sqlgym.database.hostile_driver import measure
from tests.sqlgym.database.hostile_statements import FULL_TEXT, SCRIPT, all_statements

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
ROOT = Path(__file__).parents[3]
MOST_MIB = 256
MOST_SECONDS = 1.5 * Limits().deadline
"""Processor time: a single thousand of steps may end after the deadline."""
TIMEOUT = 7_200
A_FEW = [
    "formats.blob_number",
    "formats.adding_up",
    "functions.trim_once",
    "memory.order_emoji",
    "memory.materialized_long",
    "rows.same_emoji_400",
    "written_out.chain_joined_39",
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
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT, timeout=TIMEOUT
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_few_hostile_statements_come_back_with_little_memory(path):
    statements = {f"{kind}.{name}": sql for kind, name, sql in all_statements()}
    for name in A_FEW:
        got, mib, _ = measure(str(path), statements[name])
        assert got in {"too_large", "too_much_memory", "rows 1", "unknown_table"}, name
        assert mib < MOST_MIB, name


@pytest.mark.nightly
def test_all_hostile_statements_come_back_within_their_bounds(path):
    took = measured(path)
    for key in ("mib", "seconds"):
        print(f"\nThe most {key}:")
        for each in sorted(took, key=lambda each: -each[key])[:20]:
            print(f"{each['name']:36} {each['got'][:20]:20} {each['mib']:8} {each['seconds']:8}")
    assert [each for each in took if each["got"].startswith(("died", "fault"))] == []
    assert [each for each in took if each["mib"] > MOST_MIB] == []
    assert [each for each in took if each["seconds"] > MOST_SECONDS] == []
