"""The exported folder: OpenEnv validates it, its server plays, its client needs OpenEnv only."""

import json
import os
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("openenv", reason="needs the extra `openenv`: make test-adapters NAME=openenv")

import yaml

from adapters.export.openenv_folder import PACKAGE, PORT, write_folder
from tests.adapters.local_server import ROOT, LocalServer
from tests.adapters.openenv.openenv_play import play_with, session
from tests.adapters.scripted_contract import check_episode
from tests.adapters.scripted_episodes import EXPLORE, SCRIPTS
from toolgym import registration

CLEAN = next(script for script in SCRIPTS if script.name == "clean")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("exported") / PACKAGE
    write_folder(place, EXPLORE, {"step_limit": 15})
    return place


def test_openenv_validates_the_folder(folder: Path) -> None:
    program = Path(sys.executable).with_name("openenv")

    done = subprocess.run(
        [program, "validate", folder, "--json"], capture_output=True, text=True, cwd=folder.parent
    )

    assert done.returncode == 0, done.stdout + done.stderr
    statuses = {each["check_id"]: each["status"] for each in json.loads(done.stdout)["results"]}
    assert statuses["static.manifest"] == "pass"
    assert set(statuses.values()) == {"pass", "skip"}  # the others need Docker


def test_the_manifest_describes_the_environment(folder: Path) -> None:
    env = registration.make(EXPLORE)
    manifest = yaml.safe_load((folder / "openenv.yaml").read_text())

    assert (manifest["name"], manifest["port"]) == (PACKAGE, PORT)
    assert manifest["validation"]["reward"]["range"] == list(env.reward_config.bounds)
    assert manifest["validation"]["capabilities"]["declared_tools"] == list(env.tools)


def test_the_server_of_the_folder_plays_as_every_server(folder: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environ = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{folder.parent}"}
    environ |= {"SPACE_HOST": "user-toolgym.hf.space", "TOOLGYM_HOSTS": "box, other"}
    script = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["scripts"]["server"]
    words = [sys.executable, "-m", script.partition(":")[0], "--port", str(port)]
    log = tmp_path / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(words, env=environ, stderr=errors, cwd=tmp_path, text=True)
    try:
        server = LocalServer(process, port, log)
        wait_for(server)
        with session(server) as client:
            assert check_episode(lambda script: play_with(client, script), CLEAN, {}) == "same"
        for host in ("localhost:1", "user-toolgym.hf.space", "box", "other:8000"):
            assert server.ask("GET", "/health", None, {"Host": host}).status == 200, host
        assert server.ask("GET", "/health", None, {"Host": "rebound.example"}).status == 400
    finally:
        process.terminate()
        process.wait(20)


def wait_for(server: LocalServer) -> None:
    """Wait until a server answers, or has ended."""
    while server.process.poll() is None:
        try:
            if server.ask("GET", "/health").status == 200:
                return
        except ConnectionRefusedError:
            continue
    raise AssertionError(server.log.read_text())


def test_the_client_of_the_folder_needs_openenv_only(folder: Path) -> None:
    ours = "{'toolgym', 'adapters'} & set(sys.modules)"
    code = f"import sys, {PACKAGE}; print({PACKAGE}.ToolgymEnv, {ours})"
    environ = os.environ | {"PYTHONPATH": str(folder.parent)}

    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, cwd=folder.parent
    )

    assert done.stdout.strip() == f"<class '{PACKAGE}.client.ToolgymEnv'> set()", done.stderr
