"""A lab that is ended leaves no process behind, whatever ended it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")
fcntl = pytest.importorskip("fcntl", reason="locks are looked at as POSIX has them")

pytestmark = [pytest.mark.torch, pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 600.0
ENDLESS = """
import fcntl, time
from pathlib import Path

def run(config, seed):
    \"\"\"Hold a lock for as long as this process lives.\"\"\"
    with (Path(config["folder"]) / f"{seed}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("held")
        lock.flush()
        time.sleep(600)
"""
PARENT = """
import sys
from pathlib import Path
from adapters.lab.runner import run_units
from adapters.lab.units import Unit

if __name__ == "__main__":
    folder = sys.argv[1]
    config = {"folder": folder}
    units = [Unit("e", "endless", "run", "c", seed, config, "k", 1.0) for seed in range(4)]
    run_units(units, Path(folder) / "out", jobs=2)
"""


def until(happens):
    """Look again and again, and give up some time."""
    end = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)


def says_held(lock):
    return lock.is_file() and lock.read_text() == "held"


def is_held(lock):
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGKILL"])
def test_a_signal_to_the_parent_ends_its_processes(tmp_path, name):
    (tmp_path / "endless.py").write_text(ENDLESS)
    (tmp_path / "parent.py").write_text(PARENT)
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    command = [sys.executable, str(tmp_path / "parent.py"), str(tmp_path)]
    parent = subprocess.Popen(
        command, env=environ, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        locks = [tmp_path / "0.lock", tmp_path / "1.lock"]
        until(lambda: parent.poll() is not None or all(map(says_held, locks)))
        assert parent.poll() is None, parent.stderr.read().decode()
        assert all(map(is_held, locks))

        parent.send_signal(getattr(signal, name))
        parent.communicate(timeout=PATIENCE)

        until(lambda: not any(map(is_held, locks)))
        assert parent.returncode != 0
        assert not (tmp_path / "2.lock").exists()
    finally:
        with contextlib.suppress(ProcessLookupError):  # as it should be
            os.killpg(parent.pid, signal.SIGKILL)
