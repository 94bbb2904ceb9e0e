"""Workers give what one process gives, in whatever order they work, and none is left behind."""

import functools
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.toolgym.commands.command_line import run, run_here
from toolgym import ConfigurationError, policies, registration, rollout
from toolgym.family import SynthesisOrder
from toolgym.policies import ByName
from toolgym.registration import family_of
from toolgym.runs.files import replace_file
from toolgym.workers import WorkerLost, worker_processes

EXPLORE, COMPOSE = "sqlgym/Explore-v0", "aflowgym/Compose-v0"
ROOT = Path(__file__).parents[2]


def doubled(folder: Path, number: int) -> tuple[int, int]:
    (folder / str(os.getpid())).touch()
    until = time.monotonic() + 600
    while number == 0 and len(list(folder.iterdir())) < 2 and time.monotonic() < until:
        time.sleep(0.01)  # the first part is ready only when the other process is at work
    return 2 * number, os.getpid()


def refused(number: int) -> int:
    if number == 1:
        raise ConfigurationError(f"{number} is refused.")
    return number


def killed(part: tuple[str, int]) -> None:
    if part[1] == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def waiting(folder: Path, number: int) -> None:
    (folder / str(os.getpid())).touch()
    time.sleep(600)


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


def written(file: Path, number: int) -> None:
    for _ in range(10):
        replace_file(file, [bytes([number]) * 1_000] * 200)


@pytest.mark.integration
def test_processes_give_what_one_gives_and_are_gone_afterwards(tmp_path: Path) -> None:
    """Results in order, a part's own error, and files that are whole."""
    (tmp_path / "pids").mkdir()
    (tmp_path / "written").mkdir()
    work = functools.partial(doubled, tmp_path / "pids")
    with worker_processes(2) as map_parts:
        results = list(map_parts(work, range(4)))
        again = list(map_parts(work, [1, 2, 3]))
        refusing = iter(map_parts(refused, range(3)))
        assert next(refusing) == 0
        with pytest.raises(ConfigurationError, match=r"1 is refused\."):
            next(refusing)
        file = tmp_path / "written" / "file"
        list(map_parts(functools.partial(written, file), range(4)))

    assert [value for value, _ in results] == [0, 2, 4, 6]
    pids = {pid for _, pid in results}
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert {pid for _, pid in again} <= pids
    assert file.read_bytes() == file.read_bytes()[:1] * 200_000
    assert list(file.parent.iterdir()) == [file]
    assert gone([*pids])


@pytest.mark.integration
def test_a_process_that_is_killed_is_told_with_its_part() -> None:
    lost = r"process ended, .* worked on \('part', [012]\) or a part after it\. If it ran"
    with pytest.raises(WorkerLost, match=lost), worker_processes(2) as map_parts:
        list(map_parts(killed, [("part", number) for number in range(3)]))


@pytest.mark.integration
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_processes_end_with_the_one_that_made_them(tmp_path: Path) -> None:
    program = (
        "import functools, pathlib\n"
        "from toolgym.workers import worker_processes\n"
        "from tests.toolgym.test_workers import waiting\n"
        "with worker_processes(2) as map_parts:\n"
        f"    work = functools.partial(waiting, pathlib.Path({str(tmp_path)!r}))\n"
        "    list(map_parts(work, range(3)))"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT) as process:
        until = time.monotonic() + 600
        while len(pids := [int(file.name) for file in tmp_path.iterdir()]) < 2:
            assert process.poll() is None
            assert time.monotonic() < until, "no two parts were begun"
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)

    assert gone(pids)


def backwards(function, items):
    """Does the last part first, and each as a process would that was sent a pickle of it."""
    results = []
    for item in reversed(items):
        sent, about = pickle.loads(pickle.dumps((function, item)))
        results.append(pickle.dumps(sent(about)))
    return (pickle.loads(result) for result in reversed(results))


@pytest.mark.parametrize("how", [{}, {"shard": (2, 3)}], ids=str)
def test_records_are_the_same_wherever_they_are_played(how):
    options = {"n": 6, "k": 3, "seed": 5, "batch": 4, **how}
    here = rollout.evaluate(EXPLORE, policies.RandomPolicy(seed=5), **options)

    told, states = [], []
    elsewhere = rollout.evaluate(
        EXPLORE,
        ByName("random", seed=5),
        map=backwards,
        on_episode=told.append,
        progress=lambda *state: states.append(state),
        **options,
    )

    assert elsewhere.records == here.records == tuple(told)
    assert states == sorted(states)
    assert states[-1] == (len(told), len(told))


def test_written_tasks_are_the_same_wherever_they_are_written(tmp_path, monkeypatch):
    family, written = family_of(EXPLORE), {}
    family.invent(tmp_path / "invented", 2)
    for name, map_parts in (("here", map), ("elsewhere", backwards)):
        monkeypatch.setenv("TOOLGYM_CACHE", str(tmp_path / f"cache-{name}"))
        sources, out = (tmp_path / "invented",), tmp_path / name
        order = SynthesisOrder(
            sources, out, {"train": 0.7, "dev": 0.3}, {"n": 4}, True, map=map_parts
        )
        family.synthesize(order)
        files = (file for file in out.rglob("*.*") if file.is_file())
        written[name] = {str(file.relative_to(out)): file.read_bytes() for file in files}

    assert written["elsewhere"] == written["here"]


class Metered(policies.ExpertPolicy):
    """The expert, which counts its turns and does not know what they cost."""

    turns = 0

    def act(self, situations):
        self.turns += len(situations)
        return super().act(situations)

    def usage(self):
        return {"turns": self.turns, "dollars": None}


def test_what_policies_use_is_added_up_wherever_they_play(monkeypatch):
    monkeypatch.setattr("toolgym.policies.ExpertPolicy", Metered)

    elsewhere = rollout.evaluate(EXPLORE, "expert", n=5, batch=2, map=backwards)
    here = rollout.evaluate(EXPLORE, Metered(), n=5, batch=2)

    turns = sum(len(record.turns) for record in elsewhere.records)
    assert elsewhere.usage == here.usage == {"turns": turns, "dollars": None}


@pytest.mark.parametrize(
    ("env", "policy", "told"),
    [
        (EXPLORE, lambda text: text, "the policy or one of its options cannot be sent"),
        (registration.make(EXPLORE), "expert", "the environment or one of its options"),
    ],
)
def test_what_cannot_be_sent_is_told(env, policy, told):
    with pytest.raises(ConfigurationError, match=told):
        rollout.evaluate(env, policy, n=1, map=backwards)


def test_without_ray_the_command_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed

    done = run_here("eval", EXPLORE, "--n", 1, "--ray", "local")

    assert done.returncode == 2
    assert done.stderr.strip().endswith("Run: pip install 'toolgym[ray]'")


@pytest.mark.integration
def test_the_command_plays_with_processes(tmp_path: Path) -> None:
    command = ["eval", EXPLORE, "--policy", "random", "--n", "6", "--batch", "2", "--json"]
    one = run_here(*command, "--out", str(tmp_path / "one.jsonl"))
    done = run(*command, "--workers", "2", "--out", str(tmp_path / "many.jsonl"))

    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert json.loads(done.stdout)["accuracy"] == json.loads(one.stdout)["accuracy"]
    assert (tmp_path / "many.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()
