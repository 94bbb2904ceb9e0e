"""The exported folder: OpenEnv validates it, it is one package, and its server is the same."""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("openenv", reason="needs the extra `openenv`: make test-adapters NAME=openenv")

import yaml
from openenv.cli._validation import validate_multi_mode_deployment

from adapters.export.openenv_folder import PACKAGE, PORT, Packed, write_folder
from tests.adapters.openenv.openenv_play import ROOT, Server, play_with
from tests.adapters.scripted_contract import check_episode
from tests.adapters.scripted_episodes import COMPOSE, EXPLORE, SCRIPTS
from toolgym import registration

CLEAN = next(script for script in SCRIPTS if script.name == "clean")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("exported") / PACKAGE
    write_folder(Packed(EXPLORE, {"step_limit": 15}), place)
    return place


def test_openenv_validates_the_folder(folder: Path) -> None:
    program = Path(sys.executable).with_name("openenv")

    done = subprocess.run(
        [program, "validate", folder, "--json"], capture_output=True, text=True, cwd=folder.parent
    )

    assert done.returncode == 0, done.stdout + done.stderr
    statuses = {each["check_id"]: each["status"] for each in json.loads(done.stdout)["results"]}
    assert statuses["static.manifest"] == "pass"
    assert set(statuses.values()) == {"pass", "skip"}  # the others want Docker, or are to come


def test_only_a_lock_of_uv_is_missing_to_run_in_every_mode(folder: Path) -> None:
    _, issues = validate_multi_mode_deployment(folder)

    assert issues == ["Missing uv.lock - run 'uv lock' to generate it"]


def test_the_manifest_says_what_the_environment_is(folder: Path) -> None:
    env = registration.make(EXPLORE)
    manifest = yaml.safe_load((folder / "openenv.yaml").read_text())

    assert (manifest["name"], manifest["port"]) == (PACKAGE, PORT)
    assert manifest["validation"]["reward"]["range"] == list(env.reward_config.bounds)
    assert manifest["validation"]["capabilities"]["declared_tools"] == list(env.tools)


def test_the_server_of_the_folder_plays_as_every_server(folder: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environ = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{folder.parent}"}
    script = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["scripts"]["server"]
    words = [sys.executable, "-m", script.partition(":")[0], "--port", str(port)]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(words, env=environ, stderr=log, cwd=tmp_path)
    try:
        server = Server(process, port, tmp_path / "log")
        wait_for(server)
        with server.client() as client:
            assert check_episode(lambda script: play_with(client, script), CLEAN, {}) == "same"
        assert server.ask("GET", "/health", None, {"Host": "localhost:1"}).status == 200
        assert server.ask("GET", "/health", None, {"Host": "rebound.example"}).status == 421
    finally:
        process.terminate()
        process.wait(20)


def wait_for(server: Server) -> None:
    """Wait until a server answers, or has ended."""
    while server.process.poll() is None:
        try:
            if server.ask("GET", "/health").status == 200:
                return
        except ConnectionRefusedError:
            continue
    raise AssertionError(server.log.read_text())


def test_the_client_of_the_folder_needs_nothing_of_ours(folder: Path) -> None:
    ours = "{'toolgym', 'adapters'} & set(sys.modules)"
    code = f"import sys, {PACKAGE}; print({PACKAGE}.ToolgymEnv, {ours})"
    environ = os.environ | {"PYTHONPATH": str(folder.parent)}

    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, cwd=folder.parent
    )

    assert done.stdout.strip() == f"<class '{PACKAGE}.client.ToolgymEnv'> set()", done.stderr


def test_the_dockerfile_fits_the_folder(folder: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "toolgym-0.2.0-py3-none-any.whl"
    wheel.write_bytes(b"")
    place = tmp_path / PACKAGE
    write_folder(Packed(COMPOSE, wheels=(wheel,)), place)
    text = (place / "server" / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and line[0] != "#"]
    known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "EXPOSE", "HEALTHCHECK", "CMD"}
    said = dict(lines)

    assert {name for name, _ in lines} <= known
    assert re.fullmatch(r"python:3\.1[1-3]-slim", said["FROM"])
    assert said["EXPOSE"] == str(PORT)
    assert json.loads(said["CMD"]) == ["server", "--host", "0.0.0.0", "--port", str(PORT)]
    install = [text for name, text in lines if name == "RUN"][-1]
    assert shlex.split(install)[-3:] == ["--find-links", "/app/env/wheels", "/app/env"]
    assert (place / "wheels" / wheel.name).is_file()
    for line in lines:
        if line[0] == "RUN":
            assert subprocess.run(["sh", "-n", "-c", line[1]]).returncode == 0
