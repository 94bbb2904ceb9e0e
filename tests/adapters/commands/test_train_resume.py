"""Resuming a run that was interrupted or stopped, and the messages about it."""

from pathlib import Path
from typing import Any

import pytest
import typer

pytest.importorskip("torch", reason="needs the extra `train`")

import torch

from adapters.commands import train_run
from adapters.commands.train import check_early
from adapters.commands.train_with_trl import last_checkpoint, train_with_trl
from adapters.training.guards.fault_limit import TrainingStopped
from adapters.training.runs import phases
from adapters.training.runs.preparation import load_prepared, prepare
from adapters.training.runs.progress import NoProgress
from adapters.training.settings import resolve
from tests.adapters.interrupting import Interrupt
from toolgym.cli import main
from toolgym.runs.metrics import METRICS
from toolgym.runs.run import Run

pytestmark = pytest.mark.torch

SETTINGS = resolve(
    "sqlgym/Explore-v0",
    env_kwargs={"dataset": "tiny", "step_limit": 3},
    split="dev",
    eval_split="dev-databases",
    demonstrations=64,
    sft_steps=8,
    sft_batch=8,
    steps=4,
    save_every=2,
    group_size=4,
    prompts=2,
    eval_tasks=4,
    eval_tries=1,
    max_new_tokens=8,
    max_completion_length=24,
    preflight=False,  # whoever imitates for eight steps is not fit for training
)


def begin(folder: Path, watch: Any) -> Run:
    run = Run.create(folder, {"settings": SETTINGS.model_dump()})
    phases.train(run, SETTINGS, train_with_trl, watch)
    return run


def without_clock(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Metrics that two runs of the same settings agree on."""
    seconds = {key for key, metric in METRICS.items() if metric.source == "clock"}
    return [{k: v for k, v in line.items() if k not in seconds} for line in lines]


@pytest.mark.integration
def test_a_resumed_run_of_the_tiny_model_stays_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run.create(tmp_path / "run", {"settings": SETTINGS.model_dump()})
    settings = SETTINGS.model_copy(update={"sft_steps": 0})
    first, _ = prepare(settings, run, NoProgress())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)

    resumed, _ = load_prepared(settings, run)

    assert {weights.device.type for weights in resumed.parameters()} == {"cpu"}
    assert first.device == resumed.device


@pytest.mark.nightly
def test_a_run_that_is_interrupted_in_its_warm_up_ends_as_one_that_was_not(tmp_path: Path) -> None:
    undisturbed = begin(tmp_path / "undisturbed", NoProgress())
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        begin(tmp_path / "run", Interrupt("warm-up", 7))
    run = Run.open(tmp_path / "run")
    assert run.summary["status"] == "interrupted"

    summary = phases.train(run, SETTINGS, train_with_trl, NoProgress())

    assert without_clock(run.metrics()) == without_clock(undisturbed.metrics())
    assert list(run.rollouts()) == list(undisturbed.rollouts())
    assert summary | {"seconds": 0} == undisturbed.summary | {"seconds": 0}


def test_a_checkpoint_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {})
    for step, state in ((2, '{"global_step": 2}'), (4, '{"global_st'), (6, None)):
        folder = run.checkpoints / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        if state is not None:
            (folder / "trainer_state.json").write_text(state)

    assert last_checkpoint(run) == (run.checkpoints / "checkpoint-2", 2)


def test_without_a_checkpoint_there_is_none_to_go_on_from(tmp_path: Path) -> None:
    assert last_checkpoint(Run.create(tmp_path / "run", {})) == (None, 0)


def test_a_resumed_run_takes_no_other_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run.create(tmp_path / "run", {"settings": SETTINGS.model_dump()})
    for words in (["--steps", "9"], ["--out", "elsewhere", "--quiet"]):
        with pytest.raises(SystemExit, match=r"^2$"):
            main(["train", "--resume", str(run.path), *words])
        assert f"leave out {words[0]}" in capsys.readouterr().err


BRIEF = SETTINGS.model_copy(
    update={
        "eval_split": None,
        "demonstrations": 8,
        "sft_steps": 1,
        "eval_tasks": 1,
        "eval_tries": 0,
        "max_new_tokens": 2,
    }
)


def train_briefly(folder: Path) -> None:
    settings, planned = check_early(BRIEF, folder)
    with train_run.new_run(settings, folder, planned) as (run, settings):
        train_run.see_through_on_terminal(run, settings, quiet=True, as_json=False)


def test_ctrl_c_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(grpo: phases.Grpo) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(train_run, "trainer_named", lambda name: interrupted)

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        train_briefly(tmp_path / "run")

    assert f"toolgym train --resume {tmp_path / 'run'}" in capsys.readouterr().err


@pytest.mark.integration
def test_a_run_that_its_guards_end_says_why_and_leaves_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(grpo: phases.Grpo) -> None:
        raise TrainingStopped(3, "Training stops at step 3.\nLower the learning rate.")

    monkeypatch.setattr(train_run, "trainer_named", lambda name: stopped)

    with pytest.raises(typer.Exit, match=r"^1$"):
        train_briefly(tmp_path / "run")

    assert "Lower the learning rate." in capsys.readouterr().err
    summary = Run.open(tmp_path / "run").summary
    assert (summary["status"], summary["diagnosis"].splitlines()[0]) == (
        "stopped",
        "Training stops at step 3.",
    )
    assert (tmp_path / "run" / "report.html").is_file()
