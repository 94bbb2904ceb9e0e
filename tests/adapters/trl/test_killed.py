"""Killed in the middle of a step and taken up again: the same numbers, to the last digit."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from adapters.commands.train_with_trl import last_checkpoint, train_with_trl
from adapters.training.runs import phases
from adapters.training.runs.progress import NoProgress
from adapters.training.runs.settings import TrainSettings, resolve
from toolgym.runs.metrics import METRICS
from toolgym.runs.run import Run

pytestmark = [pytest.mark.torch, pytest.mark.slow]

SCRIPT = Path(sys.executable).with_name("toolgym")
STABLE = {
    "dynamic_sampling": True,
    "advantage_estimator": None,
    "beta": 0.02,
    "guards": {},
    "snapshot_steps": 1,
    "steps_per_generation": 2,
    "num_iterations": 1,
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
}


def settings(**changes: object) -> TrainSettings:
    return resolve(
        "sqlgym/Explore-v0",
        env_kwargs={"dataset": "tiny"},
        demonstrations=600,
        warmup_steps=150,
        steps=8,
        save_every=1,
        group_size=4,
        prompts=4,
        eval_tasks=8,
        eval_tries=0,
        trainer_options=STABLE,
        **changes,
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run that nothing happens to."""
    run = Run.create(
        tmp_path_factory.mktemp("whole") / "run", {"settings": settings().model_dump()}
    )
    phases.train(run, settings(), train_with_trl, NoProgress())
    return run


def numbers(run: Run) -> list[dict[str, object]]:
    """What does not depend on the clock."""
    lines = run.metrics("grpo")
    return [
        {k: v for k, v in line.items() if k not in METRICS or METRICS[k].repeats} for line in lines
    ]


def test_a_run_that_is_killed_in_a_step_ends_with_the_same_numbers(
    whole: Run, tmp_path: Path
) -> None:
    assert (
        sum(line["drawn_groups"] for line in whole.metrics("grpo") if "drawn_groups" in line) > 16
    )
    folder = tmp_path / "killed"
    run = Run.create(folder, {"settings": settings().model_dump()})
    shutil.copytree(whole.checkpoints / "warmup", run.checkpoints / "warmup")
    command = [str(SCRIPT), "train", "--resume", str(folder), "--quiet"]
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environ) as process:
        for _ in range(1200):
            if len(Run.open(folder).metrics("grpo")) >= 5:
                break
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    run = Run.open(folder)
    assert run.summary["status"] == "interrupted"
    _, step = last_checkpoint(run)
    assert 2 <= step < 8
    assert step % 2 == 0

    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)

    assert done.returncode == 0, done.stderr
    assert numbers(Run.open(folder)) == numbers(whole)
    ours, theirs = Run.open(folder).rollouts(), whole.rollouts()
    assert [line for line in ours if line["phase"] != "before"] == [
        line for line in theirs if line["phase"] != "before"
    ]
    assert json.loads((folder / "summary.json").read_text())["after"] == whole.summary["after"]


def test_under_lora_what_is_measured_and_saved_is_model_and_adapter_together(
    whole: Run, tmp_path: Path
) -> None:
    import torch
    from peft import PeftModel

    from adapters.training.models.chat_policy import load_model

    wanted = settings(lora=True).model_copy(update={"steps": 4})
    run = Run.create(tmp_path / "lora", {"settings": wanted.model_dump()})
    shutil.copytree(whole.checkpoints / "warmup", run.checkpoints / "warmup")
    phases.train(run, wanted, train_with_trl, NoProgress())
    base, _ = load_model(str(run.checkpoints / "warmup"), for_training=True)
    checkpoint, step = last_checkpoint(run)
    assert step == 4
    merged = PeftModel.from_pretrained(base, str(checkpoint)).merge_and_unload()
    final, _ = load_model(str(run.checkpoints / "final"), for_training=True)
    first, _ = load_model(str(run.checkpoints / "warmup"), for_training=True)
    saved, before = final.state_dict(), first.state_dict()
    moved = 0.0
    for name, weight in merged.state_dict().items():
        assert torch.allclose(saved[name], weight, atol=1e-7)
        moved = max(moved, float((saved[name] - before[name]).abs().max()))
    assert moved > 1e-5
