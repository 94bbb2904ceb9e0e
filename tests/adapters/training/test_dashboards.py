"""Dashboards get what the run folder gets, under names and steps that fit them."""

import importlib.util
import json
import math
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from toolgym.errors import ConfigurationError
from toolgym.runs.dashboards import ReportedRun, check_services, reported
from toolgym.runs.run import Run

SERVICES = ("tensorboard", "trackio", "wandb")


class Listed:
    """A dashboard that is a list."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, int, dict[str, float]]] = []

    def log(self, phase: str, step: int, numbers: Mapping[str, float]) -> None:
        self.shown.append((phase, step, dict(numbers)))

    def close(self) -> None:
        self.shown.append(("closed", 0, {}))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path / "run", {"env_id": "sqlgym/Explore-v0", "settings": {"seed": 1}})


def write(run: Run) -> None:
    """What a small training writes."""
    for step in (1, 2):
        run.log_metrics({"phase": "sft", "step": step, "loss": 3.0 / step})
    run.write_summary({"before": {"accuracy": 0.25, "episodes": 16}, "after": None})
    for step in (1, 2, 3):
        run.log_metrics({"phase": "grpo", "step": step, "reward": step / 10})
    run.write_summary({"before": {"accuracy": 0.25}, "after": {"accuracy": 0.5, "interval": [0]}})


def test_a_dashboard_is_shown_what_the_run_folder_holds(run: Run) -> None:
    listed = Listed()

    write(ReportedRun(run, [listed]))

    assert listed.shown == [
        ("sft", 1, {"loss": 3.0}),
        ("sft", 2, {"loss": 1.5}),
        ("evaluation", 0, {"accuracy": 0.25, "episodes": 16.0}),
        ("grpo", 1, {"reward": 0.1}),
        ("grpo", 2, {"reward": 0.2}),
        ("grpo", 3, {"reward": 0.3}),
        ("evaluation", 3, {"accuracy": 0.5}),
    ]
    assert [record["reward"] for record in run.metrics("grpo")] == [0.1, 0.2, 0.3]


def test_a_loss_that_is_not_finite_is_shown_as_it_is_and_what_is_no_number_is_not(run: Run) -> None:
    listed = Listed()
    record: dict[str, Any] = {"phase": "grpo", "step": 1, "loss": math.nan, "kl": None}

    ReportedRun(run, [listed]).log_metrics(record)

    (shown,) = listed.shown
    assert shown[2].keys() == {"loss"}
    assert math.isnan(shown[2]["loss"])


def test_a_misspelt_service_is_answered_with_the_nearest():
    with pytest.raises(ConfigurationError, match=r"got 'tensorbord'; did you mean tensorboard\?"):
        check_services(("tensorbord",))


def test_a_missing_library_is_named_with_the_command_that_installs_it() -> None:
    missing = [name for name in SERVICES if importlib.util.find_spec(name) is None]
    if not missing:
        pytest.skip("all services are installed")
    for name in missing:
        with pytest.raises(ConfigurationError, match=f"run: pip install {name}"):
            check_services((name,))


@pytest.mark.torch
def test_tensorboard_reads_back_what_was_logged_before_and_after_a_resume(run: Run) -> None:
    pytest.importorskip("tensorboard", reason="needs tensorboard")
    pytest.importorskip("torch", reason="needs the extra `train`")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with reported(run, ("tensorboard",)) as told:
        write(told)
    with reported(Run.open(run.path), ("tensorboard",)) as resumed:
        resumed.log_metrics({"phase": "grpo", "step": 4, "reward": 0.4})

    seen = EventAccumulator(str(run.path / "tensorboard")).Reload()
    rewards = [(event.step, round(event.value, 6)) for event in seen.Scalars("grpo/reward")]
    assert rewards == [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)]
    assert [event.step for event in seen.Scalars("sft/loss")] == [1, 2]
    assert [event.step for event in seen.Scalars("evaluation/accuracy")] == [0, 3]


@pytest.mark.nightly
def test_wandb_keeps_one_run_for_a_run_that_is_resumed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="needs wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")

    for _ in range(2):
        with reported(Run.open(run.path), ("wandb",)) as told:
            write(told)

    kept = {path.stem.removeprefix("run-") for path in run.path.glob("wandb/*/run-*.wandb")}
    assert kept == {json.loads((run.path / "dashboards.json").read_bytes())["name"]}


@pytest.mark.nightly
def test_trackio_keeps_each_number_at_the_step_of_its_phase(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    pytest.importorskip("trackio", reason="needs trackio")

    with reported(run, ("trackio",)) as told:
        write(told)

    (file,) = (tmp_path / "trackio").glob("*.db")
    rows = sqlite3.connect(file).execute("SELECT step, metrics FROM metrics").fetchall()
    rewards = [(step, json.loads(text).get("grpo/reward")) for step, text in rows]
    assert [pair for pair in rewards if pair[1] is not None] == [(1, 0.1), (2, 0.2), (3, 0.3)]
