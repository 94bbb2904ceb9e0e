"""Packages that are exported, installed and run by verifiers' own commands; faults and limits."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("verifiers", reason="needs its extra: make test-adapters NAME=verifiers")

from adapters.verifiers.environment import FAULT
from tests.adapters.local_server import ROOT
from tests.adapters.scripted_episodes import EXPLORE, HUTS, SCRIPTS
from tests.adapters.verifiers.verifiers_play import (
    episode_of,
    importable,
    next_message,
    rows_of,
)
from tests.chat_server import ScriptedServer
from toolgym import EpisodeRecord
from toolgym.messages import tools_in_words
from toolgym.registration import make

BIN = Path(sys.executable).parent
NAME = "huts-of-toolgym"
FAULTY = next(script for script in SCRIPTS if script.name == "fault")
UNANSWERED = next(script for script in SCRIPTS if script.name == "unanswered")
CLEAN = next(script for script in SCRIPTS if script.name == "clean")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedServer]:
    folder: Path = tmp_path_factory.mktemp("exported") / "package"
    with importable(folder), ScriptedServer(next_message) as running:
        yield running


def run(*command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        command,
        cwd=cwd,
        env={**own, **env},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def test_an_exported_package_is_installed_validated_and_played_to_the_end(
    tmp_path: Path, server: ScriptedServer
) -> None:
    exported = tmp_path / "hub"
    options = ["--split", "train", "--n", "5", "--seed", "775", "--name", NAME]  # with HUTS
    done = run(
        *(sys.executable, "-m", "toolgym", "export", "verifiers", EXPLORE),
        *("--out", str(exported), *options),
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr) == (0, "")
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    done = run(*pip, "install", "-e", ".", "--no-deps", cwd=exported)
    assert done.returncode == 0, done.stderr
    try:
        play_and_validate(tmp_path, server)
    finally:
        run(*pip, "uninstall", "--yes", NAME, cwd=tmp_path)


def play_and_validate(tmp_path: Path, server: ScriptedServer) -> None:
    done = run(
        *(str(BIN / "vf-eval"), NAME, "-m", "clean", "-r", "2", "--no-push", "--rich", "None"),
        *("--select.include.names", json.dumps([HUTS]), "--client.base-url", server.url),
        cwd=tmp_path, PATH=f"{BIN}:/usr/bin:/bin",
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    episodes = rows_of(tmp_path / "outputs")
    assert [each["ok"] for each in episodes] == [True, True]
    for episode in episodes:
        (trace,) = episode["traces"]
        record = EpisodeRecord.from_json(trace["info"]["episode"])
        assert record.correct
        assert trace["rewards"] == {"score": {"score": record.score, "weight": 1.0}}
        assert (trace["metrics"]["correct"], trace["metrics"]["turns"]) == (1.0, 3.0)
        assert trace["metrics"]["part/outcome"] == 1.0
        assert trace["task"]["key"] == f"{EXPLORE}/{HUTS}"
        assert "1539" not in json.dumps(trace["task"])

    done = run(
        *(str(BIN / "vf-validate"), NAME, "--select.limit", "2", "--runtime.type", "subprocess"),
        *("--only-gold", "-o", "validated"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "validated").rglob("results.jsonl")
    results = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [each["valid"] for each in results] == [True, True]


def test_a_fault_fails_the_episode_and_names_no_file(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    episode = episode_of(server, FAULTY)

    (trace,) = episode.traces
    assert (episode.ok, trace.ok, trace.rewards) == (False, False, {})
    assert trace.metrics == {"scored": 0.0}
    told = episode.model_dump_json()
    assert FAULT in told
    assert "was not recorded" not in told
    assert any("was not recorded" in each.getMessage() for each in caplog.records)
    assert len(trace.info["episode"]["turns"]) == 1


def test_a_limit_ends_an_episode_without_an_answer_and_it_is_scored(
    server: ScriptedServer,
) -> None:
    episode = episode_of(server, UNANSWERED, turns=len(UNANSWERED.messages))

    (trace,) = episode.traces
    assert (episode.ok, trace.stop_condition) == (True, "max_turns")
    assert trace.metrics["answered"] == 0.0
    assert trace.metrics["part/unanswered"] < 0
    assert math.isclose(trace.reward, trace.metrics["score"])


def test_a_model_that_fails_leaves_the_episode_without_a_reward(server: ScriptedServer) -> None:
    server.faults = lambda number, asked: "401"
    try:
        episode = episode_of(server, CLEAN)
    finally:
        server.faults = ()

    (trace,) = episode.traces
    assert (episode.ok, trace.rewards) == (False, {})
    assert trace.last_error.type == "ProviderError"
    assert trace.metrics == {"scored": 0.0}


def test_the_tools_are_told_in_the_system_prompt(server: ScriptedServer) -> None:
    before = len(server.requests)
    episode_of(server, CLEAN)

    asked = server.requests[before]
    assert asked["messages"][0]["content"].endswith(tools_in_words(make(EXPLORE).tools))
