"""Lost workers, their errors, and clusters that are private, wrong or absent."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs the extra `ray`: make test-adapters NAME=ray")

import ray

from adapters.ray import workers as ray_workers
from tests.toolgym.commands.command_line import environ, run
from toolgym import ConfigurationError, policies, rollout
from toolgym.policies import ByName
from toolgym.records import EpisodeRecord
from toolgym.workers import WorkerLost

EXPLORE = "sqlgym/Explore-v0"
HOW: dict[str, Any] = {"n": 6, "batch": 2, "split": "dev"}


@pytest.mark.parametrize("deaths", [2, 99])
def test_a_lost_part_is_repeated_and_named_if_it_is_lost_each_time(
    workers: Any, marks: Path, deaths: int
) -> None:
    one = rollout.evaluate(EXPLORE, policies.ExpertPolicy(), **HOW)
    options = {"marks": str(marks), "at": one.records[3].task_id, "deaths": deaths}
    policy, kept = ByName("deadly", options=options), list[EpisodeRecord]()

    if deaths <= ray_workers.RETRIES:
        many = rollout.evaluate(EXPLORE, policy, map=workers, **HOW)
        assert many == one
    else:
        named = rf"a worker was lost 4 times .* worked on .*{one.records[2].task_id}"
        with pytest.raises(WorkerLost, match=named):
            rollout.evaluate(EXPLORE, policy, map=workers, on_episode=kept.append, **HOW)
        assert kept == list(one.records[:2])

    assert len(list(marks.iterdir())) == min(deaths, 1 + ray_workers.RETRIES)


def test_an_error_of_toolgym_arrives_as_itself(workers: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^this policy is out of order; take") as raised:
        rollout.evaluate(EXPLORE, ByName("refuse"), map=workers, **HOW)

    assert type(raised.value) is ConfigurationError


def test_the_command_writes_what_one_process_writes(workers: Any, tmp_path: Path) -> None:
    options = ("--policy", "random", "--k", "2", "--n", "5", "--batch", "3", "--json")
    there, here = tmp_path / "ray.jsonl", tmp_path / "one.jsonl"
    address = ray.get_runtime_context().gcs_address

    many = run("eval", EXPLORE, *options, "--ray", address, "--out", str(there))
    one = run("eval", EXPLORE, *options, "--out", str(here))

    assert (many.returncode, one.returncode) == (0, 0), many.stderr + one.stderr
    assert many.stdout == one.stdout
    assert there.read_bytes() == here.read_bytes()


def test_a_connection_that_is_there_stays(workers: Any) -> None:
    with (
        pytest.raises(ConfigurationError, match="this process is already connected to Ray"),
        ray_workers.ray_workers("local"),
    ):
        pass

    assert ray.is_initialized()


def test_another_version_on_a_node_is_refused(
    workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_workers, "version", lambda name: "0.0.1")

    with pytest.raises(
        ConfigurationError, match=r"this process has 0\.0\.1\. Install the same version"
    ):
        rollout.evaluate(EXPLORE, ByName("expert"), map=workers, **HOW)


def listening(folder: str) -> set[str]:
    """The local addresses, as the kernel writes them, at which processes with a folder listen."""
    inodes: set[str] = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if folder in (process / "cmdline").read_text("utf-8", "replace"):
                links = [os.readlink(each) for each in (process / "fd").iterdir()]
                inodes |= {link[8:-1] for link in links if link.startswith("socket:[")}
        except OSError:  # it has ended
            continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and inode in inodes:
                found.add(local.partition(":")[0])
    return found


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads /proc of Linux")
def test_a_cluster_of_our_own_is_private(workers: Any) -> None:
    session = ray._private.worker._global_node.get_session_dir_path()

    found = listening(session)

    assert found
    assert found <= {"0100007F", "0000000000000000FFFF00000100007F"}
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert Path(session).parents[1].stat().st_mode & 0o077 == 0
    assert ray._private.worker._global_node.address_info["webui_url"] in ("", None)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1:9", "--ray 127.0.0.1:9: there is no cluster to connect to: "),
        ("ray://127.0.0.1:10001", "--ray must be local, or HOST:PORT of a cluster of which this"),
    ],
)
def test_an_unknown_address_is_refused(address: str, reason: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "toolgym", "eval", EXPLORE, "--n", "1", "--ray", address],
        env=environ(),
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(f"toolgym: {reason}"), done.stderr
