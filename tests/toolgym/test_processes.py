"""Processes of this machine give what one gives, and none of them is left behind."""

import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.toolgym.commands.command_line import SCRIPT, environ, run_here
from toolgym import policies, rollout
from toolgym.errors import ConfigurationError
from toolgym.family import SynthesisOrder
from toolgym.policies import ByName
from toolgym.processes import processes
from toolgym.registration import family_of
from toolgym.runs.files import replace_file
from toolgym.spread import HERE, Part, PartLost, Tell

EXPLORE, COMPOSE = "sqlgym/Explore-v0", "aflowgym/Compose-v0"
ROOT = Path(__file__).parents[2]


def doubled(number: int, tell: Tell | None) -> tuple[int, int]:
    assert tell is None
    if number == 0:  # the first is ready last
        time.sleep(0.3)
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
    time.sleep(60)


def parts(count: int) -> list[Part[int]]:
    return [Part(f"part {number}", 2, number) for number in range(count)]


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def gone(pids: list[int], within: float = 20.0) -> bool:
    until = time.monotonic() + within
    while any(map(is_there, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(is_there, pids))


def test_results_come_in_order_from_other_processes_and_progress_counts_parts() -> None:
    told: list[tuple[int, int]] = []
    with processes(2) as spread:
        results = list(spread.map(doubled, parts(4), lambda *state: told.append(state)))
        again = list(spread.map(doubled, parts(1)))

    assert [value for value, _ in results] == [0, 2, 4, 6]
    pids = {pid for _, pid in results}
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert {pid for _, pid in again} <= pids
    assert told == sorted(told)
    assert told[-1] == (8, 8)
    assert gone([*pids])


def test_what_is_wrong_with_a_part_is_told_as_it_is_here() -> None:
    with processes(1) as spread:
        results = spread.map(refused, parts(3))
        assert next(results) == 0
        with pytest.raises(ConfigurationError, match=r"1 is refused\."):
            next(results)


def test_a_process_that_is_killed_is_told_with_its_part() -> None:
    with pytest.raises(PartLost, match=r"part [12]: a process ended"), processes(1) as spread:
        list(spread.map(killed, parts(3)))


def written(file: Path, number: int, tell: Tell | None) -> None:
    for _ in range(40):
        replace_file(file, [bytes([number]) * 1_000] * 200)


def test_processes_that_write_one_file_leave_it_whole(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with processes(2) as spread:
        list(spread.map(functools.partial(written, file), parts(4)))

    content = file.read_bytes()
    assert content == content[:1] * 200_000
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
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
        until = time.monotonic() + 60
        while len(pids := [int(file.name) for file in tmp_path.iterdir()]) < 2:
            assert time.monotonic() < until, "no two parts were begun"
            time.sleep(0.05)
        process.send_signal(how)
        _, err = process.communicate(timeout=60)

    assert gone(pids)
    assert err.count("Traceback") == (how == signal.SIGINT)  # of the one that was interrupted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env_id", "policy", "how"),
    [
        (EXPLORE, "expert", {"k": 1}),
        (EXPLORE, "random", {"k": 2, "start": 3, "shard": (2, 3)}),
        (COMPOSE, "random", {"k": 2}),
    ],
)
def test_records_are_those_of_one_process(env_id: str, policy: str, how: dict[str, Any]) -> None:
    options: dict[str, Any] = {"n": 7, "seed": 5, "batch": 3, "split": "dev", **how}
    one = rollout.evaluate(env_id, policies.load(policy, seed=5), **options)
    with processes(2) as spread:
        many = rollout.evaluate(env_id, ByName(policy, seed=5), spread=spread, **options)

    assert [json.dumps(record.to_json()) for record in many] == [
        json.dumps(record.to_json()) for record in one
    ]


@pytest.mark.slow
def test_written_tasks_are_those_of_one_process(tmp_path: Path) -> None:
    family = family_of(EXPLORE)
    family.invent(tmp_path / "invented", 4)
    made = []
    with processes(2) as many:
        for name, spread in (("many", many), ("one", HERE)):
            out = tmp_path / name
            sources, shares = (tmp_path / "invented",), {"train": 0.5, "dev": 0.5}
            order = SynthesisOrder(sources, out, shares, {"n": 12, "seed": 3}, spread=spread)
            family.synthesize(order)
            files = sorted(file for file in out.rglob("*") if file.is_file())
            made.append({str(file.relative_to(out)): file.read_bytes() for file in files})

    assert made[0] == made[1]
    assert {"dev.json", "train_spider.json"} <= made[0].keys()


@pytest.mark.slow
def test_the_command_plays_with_processes(tmp_path: Path) -> None:
    command = ["eval", EXPLORE, "--policy", "random", "--n", "6", "--batch", "2", "--json"]
    one = run_here(*command, "--out", str(tmp_path / "one.jsonl"))
    done = subprocess.run(
        [SCRIPT, *command, "--workers", "2", "--out", str(tmp_path / "many.jsonl")],
        env=environ(),
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert json.loads(done.stdout)["accuracy"] == json.loads(one.stdout)["accuracy"]
    assert (tmp_path / "many.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()
