"""`toolgym train` under a launcher: one run, whoever many processes do it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from tests.adapters.commands.test_train_resume import without_clock
from toolgym.runs.run import Run

pytestmark = pytest.mark.torch

ENV = "sqlgym/Explore-v0"
SMALL = ["--demonstrations", "80", "--sft-steps", "10", "--steps", "2", "--group-size", "4"]
SMALL += ["--prompts", "2", "--eval-tasks", "8", "--eval-tries", "0", "--step-limit", "3"]
SMALL += ["--max-completion-length", "40", "--no-preflight", "--quiet"]


def launched(*arguments: object) -> subprocess.CompletedProcess[str]:
    """What two processes say that `torchrun` starts."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    return subprocess.run(
        [*launch, "-m", "toolgym", "train", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        timeout=1200,
    )


@pytest.mark.nightly
@pytest.mark.parametrize("trainer", ["trl", "reference"])
def test_two_processes_write_one_run(trainer: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"

    done = launched(ENV, *SMALL, "--trainer", trainer, "--out", folder)

    assert done.returncode == 0, done.stderr[-3000:]
    assert [line.split()[0] for line in done.stderr.splitlines() if line].count("Training") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    run = Run.open(folder)
    assert run.is_complete
    steps = run.metrics("grpo")
    assert [line["step"] for line in steps] == [1, 2]
    assert len(run.metrics("sft")) == 10
    assert json.loads((folder / "config.json").read_text())["settings"]["prompts"] == 2
    episodes = [line for line in run.rollouts() if line["phase"] == "after"]
    assert len(episodes) == 8


@pytest.mark.nightly
def test_a_run_is_taken_up_by_two_processes_where_one_left_it(tmp_path: Path) -> None:
    """Step 1 is kept as it was and step 2 is done again, with the same tasks and settings.

    The processes compute rollouts in other batches, so a sampled token may differ by rounding;
    `reference/test_trainer` compares the updates of fixed rollouts.
    """
    one, two = tmp_path / "one", tmp_path / "two"
    options = [*SMALL, "--trainer", "reference", "--save-every", "1", "--out", str(one)]
    command = [sys.executable, "-m", "toolgym", "train", ENV, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr[-3000:]
    shutil.copytree(one, two)
    run = Run.open(two)  # as if it was killed in its second step
    for name in ("checkpoint-2", "final"):
        shutil.rmtree(run.checkpoints / name)
    untrained = [{**each, "after": None} for each in run.evaluations]
    run.write_summary({**run.summary, "evaluations": untrained, "status": "interrupted"})

    done = launched("--resume", two, "--quiet")

    assert done.returncode == 0, done.stderr[-3000:]
    alone, together = (Run.open(folder).metrics("grpo") for folder in (one, two))
    assert [line["step"] for line in together] == [1, 2]
    assert without_clock(together[:1]) == without_clock(alone[:1])
    for key in ("rollouts", "learning_rate"):
        assert together[1][key] == alone[1][key]
