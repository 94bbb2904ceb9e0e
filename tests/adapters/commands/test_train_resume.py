"""Runs that do not end as planned: what they say, and how they are resumed."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch

from adapters.commands import train_run
from adapters.commands.train import check_early
from adapters.commands.train_with_trl import last_checkpoint
from adapters.training.guards.fault_limit import TrainingStopped
from adapters.training.runs.preparation import load_prepared, prepare
from adapters.training.runs.progress import NoProgress
from adapters.training.settings import resolve
from tests.adapters.interrupting import Interrupt
from tests.toolgym.commands.command_line import run_here
from toolgym import ConfigurationError, EnvironmentFault
from toolgym.cli import main
from toolgym.report import write_report
from toolgym.runs.metrics import METRICS
from toolgym.runs.paired import compare_folders
from toolgym.runs.run import Run

pytestmark = pytest.mark.torch

SETTINGS = resolve(
    "sqlgym/Explore-v0",
    trainer="reference",
    env_kwargs={"dataset": "tiny", "step_limit": 3},
    split="dev",
    eval_split="dev-databases",
    demonstrations=24,
    sft_steps=8,
    sft_batch=4,
    steps=4,
    save_every=2,
    group_size=4,
    prompts=2,
    eval_tasks=4,
    eval_tries=1,
    eval_every=1,
    selection_tasks=3,
    checkpoint="best",
    max_new_tokens=8,
    max_completion_length=24,
    preflight=False,  # a model after eight supervised steps is not fit for training
)


SAMPLED = "unseen databases, sampled"


def without_clock(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Metrics that two runs of the same settings agree on."""
    seconds = {key for key, metric in METRICS.items() if metric.source == "clock"}
    return [{k: v for k, v in line.items() if k not in seconds} for line in lines]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run.create(tmp_path_factory.mktemp("runs") / "run", {"settings": SETTINGS.model_dump()})
    train_run.train(run, SETTINGS, NoProgress())
    return run


@pytest.mark.parametrize(
    "interrupt",
    [
        pytest.param(Interrupt("GRPO", 3), marks=pytest.mark.integration),
        pytest.param(
            Interrupt("unseen databases, sampled, after", 4), marks=pytest.mark.integration
        ),
        pytest.param(Interrupt("imitation", 7), marks=pytest.mark.nightly),
        pytest.param(Interrupt(f"{SAMPLED}, before", 4), marks=pytest.mark.nightly),
        pytest.param(Interrupt("unseen databases, step 2", 3), marks=pytest.mark.nightly),
    ],
    ids=lambda interrupt: interrupt.title,
)
def test_a_run_that_is_interrupted_in_any_phase_ends_with_the_same_numbers(
    interrupt: Interrupt, undisturbed: Run, tmp_path: Path
) -> None:
    run = Run.create(tmp_path / "run", {"settings": SETTINGS.model_dump()})
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        train_run.train(run, SETTINGS, interrupt)
    assert (run.status, run.summary["gain"]) == ("interrupted", None)

    train_run.train(run, SETTINGS, NoProgress())

    for phase in ("sft", "grpo", "selection"):
        assert without_clock(run.metrics(phase)) == without_clock(undisturbed.metrics(phase))
    in_order = [sorted(map(str, each.rollouts())) for each in (run, undisturbed)]
    assert in_order[0] == in_order[1]
    assert run.summary | {"seconds": 0} == undisturbed.summary | {"seconds": 0}


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


def test_a_checkpoint_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {})
    assert last_checkpoint(run) == (None, 0)
    for step, state in ((2, '{"global_step": 2}'), (4, '{"global_st'), (6, None)):
        folder = run.checkpoints / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        if state is not None:
            (folder / "trainer_state.json").write_text(state)

    assert last_checkpoint(run) == (run.checkpoints / "checkpoint-2", 2)


def test_a_run_whose_data_set_has_changed_is_not_mixed_with_the_new_one(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {"settings": SETTINGS.model_dump()})
    run.write_summary({"seconds": 1.0, "evaluations": []})
    with pytest.raises(ConfigurationError, match="the data set has changed since"):
        train_run.train(run, SETTINGS, NoProgress())


def test_a_resumed_run_takes_no_other_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run.create(tmp_path / "run", {"settings": SETTINGS.model_dump()})
    for words in (["--steps", "9"], ["--out", "elsewhere", "--quiet"]):
        with pytest.raises(SystemExit, match=r"^2$"):
            main(["train", "--resume", str(run.path), *words])
        assert f"leave out {words[0]}" in capsys.readouterr().err


# Status, report and messages of a run that is not complete ----------------------------------------


def check_claims_nothing(run: Run, status: str, *words: str) -> None:
    """Check that summary, report, notebook and comparison say the status, and no gain."""
    run = Run.open(run.path)
    summary = run.summary
    assert (run.status, summary["status"], summary["gain"]) == (status, status, None)
    page = write_report(run).read_text("utf-8")
    for word in (*words, f"toolgym train --resume {run.path}"):
        assert word in page
        assert word in run.state or word in summary["diagnosis"]
    for claim in ("Accuracy on", "rose from", "fell from", "stayed at"):
        assert claim not in page
    assert words[0] in run._repr_html_()
    with pytest.raises(ConfigurationError, match=f"no evaluation .* its training. {words[0]}"):
        compare_folders(run.path, run.path)


BRIEF = SETTINGS.model_copy(
    update={
        "eval_split": None,
        "demonstrations": 8,
        "sft_steps": 1,
        "eval_every": 0,
        "checkpoint": "last",
        "eval_tasks": 1,
        "eval_tries": 0,
        "max_new_tokens": 2,
    }
)


def train_briefly(folder: Path, **changes: Any) -> Run:
    settings, planned = check_early(BRIEF.model_copy(update=changes), folder)
    run, settings = train_run.new_run(settings, folder, planned)
    train_run.see_through_on_terminal(run, settings, quiet=True, as_json=False)
    return run


@pytest.mark.integration
@pytest.mark.parametrize(
    ("problem", "status", "words"),
    [
        (KeyboardInterrupt(), "interrupted", ["Interrupted: step 2 of 4 of GRPO. Continue"]),
        (
            TrainingStopped(2, "Training stops at step 2.\nLower the learning rate."),
            "stopped",
            [
                "Stopped by the guards: step 2 of 4 of GRPO. Train anyway",
                "Lower the learning rate.",
            ],
        ),
        (
            EnvironmentFault("the disk is gone."),
            "failed",
            ["Failed: step 2 of 4 of GRPO. Continue", "the disk is gone."],
        ),
        (
            torch.OutOfMemoryError("CUDA out of memory."),
            "failed",
            ["Failed: step 2 of 4 of GRPO. Continue", "OutOfMemoryError: CUDA out of memory."],
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_a_run_that_ends_early_says_so_and_how_it_continues(
    problem: BaseException,
    status: str,
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Run.log_metrics

    def log_metrics(run: Run, record: Any) -> None:
        log(run, record)
        if (record["phase"], record["step"]) == ("grpo", 2):
            raise problem

    monkeypatch.setattr(Run, "log_metrics", log_metrics)
    with pytest.raises(BaseException):  # noqa: B017, PT011
        train_briefly(tmp_path / "run")

    told = capsys.readouterr().err
    assert words[0] in told
    assert f"toolgym train --resume {tmp_path / 'run'}" in told
    assert words[0] in (tmp_path / "run" / "report.html").read_text("utf-8")
    check_claims_nothing(Run.open(tmp_path / "run"), status, *words)


@pytest.mark.integration
def test_a_run_that_the_preflight_refuses_says_so_and_trains_if_one_insists(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"^1$"):
        train_briefly(tmp_path / "run", preflight=True)
    run = Run.open(tmp_path / "run")
    words = "Refused by the preflight check, so GRPO did not start: step 1 of 1 of SFT."
    check_claims_nothing(run, "refused", words)
    assert run.state.endswith("--no-preflight")
    assert run.summary["diagnosis"].startswith("the preflight found a no-go")

    done = run_here("train", "--resume", run.path, "--no-preflight", "--quiet")

    assert done.returncode == 0, done.stderr
    assert (run.status, run.state, run.summary.get("diagnosis")) == ("complete", "", None)
    assert len(run.metrics("grpo")) == 4
    assert run.summary["gain"] in write_report(run).read_text("utf-8")


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.adapters.commands.test_train_resume import train_briefly
from toolgym.runs.run import Run

log = Run.log_metrics

def log_metrics(run, record):
    log(run, record)
    if (record["phase"], record["step"]) == ("grpo", 2):
        assert Run.open(run.path).status == "running"
        os.kill(os.getpid(), signal.SIGKILL)

Run.log_metrics = log_metrics
train_briefly(Path(sys.argv[1]))
"""


@pytest.mark.integration
def test_a_run_that_is_killed_is_interrupted_on_disk(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "run")]
    killed = subprocess.run(command, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    run = Run.open(tmp_path / "run")
    check_claims_nothing(run, "interrupted", "Interrupted: step 2 of 4 of GRPO. Continue")
