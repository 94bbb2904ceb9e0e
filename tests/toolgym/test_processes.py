"""Processes of this machine give what one gives, and none of them is left behind."""

import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.toolgym.commands.command_line import SCRIPT, environ, run_here
from toolgym.errors import ConfigurationError
from toolgym.processes import processes
from toolgym.runs.files import replace_file
from toolgym.spread import Part, PartLost, Tell

EXPLORE, COMPOSE = "sqlgym/Explore-v0", "aflowgym/Compose-v0"
ROOT = Path(__file__).parents[2]


def doubled(folder: Path, number: int, tell: Tell | None) -> tuple[int, int]:
    assert tell is None
    (folder / str(os.getpid())).touch()
    until = time.monotonic() + 600
    while number == 0 and len(list(folder.iterdir())) < 2 and time.monotonic() < until:
        time.sleep(0.01)  # the first part is ready only when the other process is at work
    return 2 * number, os.getpid()


def refused(number: int, tell: Tell | None) -> int:
    if number == 1:
        raise ConfigurationError(f"{number} is refused.")
    return number


def killed(number: int, tell: Tell | None) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def waiting(folder: Path, number: int, tell: Tell | None) -> None:
    (folder / str(os.getpid())).touch()
    time.sleep(600)


def parts(count: int) -> list[Part[int]]:
    return [Part(f"part {number}", 2, number) for number in range(count)]


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def gone(pids: list[int], within: float = 120.0) -> bool:
    until = time.monotonic() + within
    while any(map(is_there, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(is_there, pids))


def written(file: Path, number: int, tell: Tell | None) -> None:
    for _ in range(10):
        replace_file(file, [bytes([number]) * 1_000] * 200)


@pytest.mark.integration
def test_processes_give_what_one_gives_and_are_gone_afterwards(tmp_path: Path) -> None:
    """Results in order, progress in parts, a part's own error, and files that are whole."""
    told: list[tuple[int, int]] = []
    (tmp_path / "pids").mkdir()
    (tmp_path / "written").mkdir()
    work = functools.partial(doubled, tmp_path / "pids")
    with processes(2) as spread:
        results = list(spread.map(work, parts(4), lambda *state: told.append(state)))
        again = list(spread.map(work, parts(4)[1:]))
        refusing = spread.map(refused, parts(3))
        assert next(refusing) == 0
        with pytest.raises(ConfigurationError, match=r"1 is refused\."):
            next(refusing)
        file = tmp_path / "written" / "file"
        list(spread.map(functools.partial(written, file), parts(4)))

    assert [value for value, _ in results] == [0, 2, 4, 6]
    pids = {pid for _, pid in results}
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert {pid for _, pid in again} <= pids
    assert told == sorted(told)
    assert told[-1] == (8, 8)
    assert file.read_bytes() == file.read_bytes()[:1] * 200_000
    assert list(file.parent.iterdir()) == [file]
    assert gone([*pids])


@pytest.mark.integration
def test_a_process_that_is_killed_is_told_with_its_part() -> None:
    with pytest.raises(PartLost, match=r"part [12]: a process ended"), processes(1) as spread:
        list(spread.map(killed, parts(3)))


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.nightly),
        pytest.param(signal.SIGTERM, marks=pytest.mark.nightly),
        pytest.param(signal.SIGKILL, marks=pytest.mark.integration),
    ],
)
def test_processes_end_with_the_one_that_made_them(tmp_path: Path, how: signal.Signals) -> None:
    program = f"""
import functools, pathlib
from toolgym.processes import processes
from tests.toolgym.test_processes import parts, waiting
with processes(2) as spread:
    list(spread.map(functools.partial(waiting, pathlib.Path({str(tmp_path)!r})), parts(3)))
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 600
        while len(pids := [int(file.name) for file in tmp_path.iterdir()]) < 2:
            assert time.monotonic() < until, "no two parts were begun"
            time.sleep(0.05)
        process.send_signal(how)
        _, err = process.communicate(timeout=600)

    assert gone(pids)
    assert err.count("Traceback") == (how == signal.SIGINT)  # of the one that was interrupted


@pytest.mark.integration
def test_the_command_plays_with_processes(tmp_path: Path) -> None:
    command = ["eval", EXPLORE, "--policy", "random", "--n", "6", "--batch", "2", "--json"]
    one = run_here(*command, "--out", str(tmp_path / "one.jsonl"))
    done = subprocess.run(
        [SCRIPT, *command, "--workers", "2", "--out", str(tmp_path / "many.jsonl")],
        env=environ(),
        capture_output=True,
        text=True,
        timeout=600,
    )

    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert json.loads(done.stdout)["accuracy"] == json.loads(one.stdout)["accuracy"]
    assert (tmp_path / "many.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()
