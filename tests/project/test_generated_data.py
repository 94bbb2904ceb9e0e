"""The generated databases: what is checked in is what the generator writes, byte for byte."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data" / "sql2"
GENERATOR = ROOT / "tools" / "generate_businesses.py"
WRITTEN_BY_HAND = {"airline": {"airports.csv"}, "clinic": set()}


@pytest.fixture(scope="module", params=["0", "1"])
def generated(request, tmp_path_factory) -> Path:
    """What the generator writes in a process of its own, under two seeds of Python's `hash`."""
    folder = tmp_path_factory.mktemp("generated")
    command = [sys.executable, str(GENERATOR), str(folder)]
    done = subprocess.run(
        command, env={"PYTHONHASHSEED": request.param}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("db_id", WRITTEN_BY_HAND)
def test_running_the_generator_again_gives_the_same_bytes(db_id, generated):
    written = {path.name: path.read_bytes() for path in (generated / db_id).iterdir()}

    assert written == {name: (DATA / db_id / name).read_bytes() for name in written}


@pytest.mark.parametrize("db_id", WRITTEN_BY_HAND)
def test_every_table_but_those_of_facts_is_generated(db_id, generated):
    written = {path.name for path in (generated / db_id).iterdir()}
    checked_in = {path.name for path in (DATA / db_id).glob("*.csv")}

    assert checked_in - written == WRITTEN_BY_HAND[db_id]
    assert written <= checked_in
