"""Two processes that share a step make the update that one makes alone."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch

from tests.adapters.trl.scripted_trl import prompt_text

pytestmark = [pytest.mark.torch, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
SETTINGS: dict[str, Any] = {
    "num_generations": 4,
    "max_steps": 1,
    "beta": 0.01,
    "learning_rate": 1e-3,
    "use_cpu": True,
    "ddp_backend": "gloo",
    "shuffle_dataset": False,
    "optim": "sgd",
}


@pytest.fixture
def folder(make_tokenizer: Any, tiny_model: Any, tmp_path: Path) -> Path:
    """A model and its tokenizer."""
    tokenizer = make_tokenizer(texts=(prompt_text(make_tokenizer()),))
    tiny_model.resize_token_embeddings(len(tokenizer))
    tiny_model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path


def run(folder: Path, name: str, processes: int, script: str, **settings: Any) -> Path:
    out = folder / name
    out.mkdir()
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(processes)]
    command += [
        "--master_port",
        str(29500 + os.getpid() % 2000),
        "-m",
        "tests.adapters.trl.trl_worker",
    ]
    command += [str(folder), str(out), script, json.dumps({**SETTINGS, **settings})]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    told = out / "stderr"
    with told.open("w") as stderr:
        process = subprocess.Popen(
            command, stdout=stderr, stderr=stderr, cwd=ROOT, env=environ, start_new_session=True
        )
        try:
            code = process.wait(timeout=300)
        except subprocess.TimeoutExpired:  # one waits for the other for ever
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
    (out / "returncode").write_text(str(code))
    return out


def weights(out: Path, rank: int = 0) -> dict[str, torch.Tensor]:
    assert (out / "returncode").read_text() == "0", (out / "stderr").read_text()[-3000:]
    held: dict[str, torch.Tensor] = torch.load(out / f"weights-{rank}.pt")
    return held


def told(out: Path, rank: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / f"told-{rank}.json").read_text())
    return found


def test_an_update_split_over_two_processes_is_the_update_of_one(folder: Path) -> None:
    alone = run(folder, "alone", 1, "lively", per_device_train_batch_size=16)
    both = run(folder, "both", 2, "lively", per_device_train_batch_size=8)
    first = torch.load(folder / "alone/weights-0.pt")
    assert told(both)["world"] == 2
    assert told(alone)["world"] == 1
    for name, weight in weights(alone).items():
        for rank in (0, 1):
            assert (weights(both, rank)[name] - weight).abs().max() < 1e-6, name
    assert first.keys() == weights(both).keys()
    ones, twos = told(alone)["numbers"][0], told(both)["numbers"][0]
    for key in ("reward", "dead_groups", "validity", "learnt_tokens", "drawn_groups", "updates"):
        assert ones[key] == twos[key], key
    for key in ("grad_norm", "entropy"):
        assert twos[key] == pytest.approx(ones[key], rel=1e-5)


def test_two_processes_draw_equally_often_and_agree_on_everything(folder: Path) -> None:
    settings = {"per_device_train_batch_size": 8, "max_steps": 4, "max_draws": 4.0}
    out = run(folder, "dead", 2, "half_dead", **settings)
    one, other = weights(out, 0), weights(out, 1)
    assert all(torch.equal(one[name], other[name]) for name in one)
    here, there = told(out, 0), told(out, 1)
    assert here["world"] == there["world"] == 2
    assert here["guards"] == there["guards"]
    assert here["sampling"] == there["sampling"]
    assert here["batches"] == there["batches"] > 4
    numbers = here["numbers"]
    assert sum(line["dropped_groups"] for line in numbers) > 0
    assert all(line["masked_groups"] == 0 for line in numbers)
    kept = [
        line["drawn_groups"] - line["dropped_groups"] - line["surplus_groups"] for line in numbers
    ]
    assert kept == [4.0] * 4


def test_groups_that_two_processes_would_share_are_refused(folder: Path) -> None:
    out = run(folder, "split", 2, "lively", per_device_train_batch_size=2)
    assert (out / "returncode").read_text() != "0"
    assert "groups split over processes: each has 2 rollouts" in (out / "stderr").read_text()


def test_with_a_vllm_server_each_rollout_gets_its_own_words_however_long_others_play(
    folder: Path,
) -> None:
    """Up to the server it is TRL's own code, which by itself deals out the words of others."""
    settings = {"per_device_train_batch_size": 12, "dynamic_sampling": False}
    out = run(folder, "served", 2, "server", **settings)
    here, there = weights(out, 0), weights(out, 1)
    assert all(torch.equal(here[name], there[name]) for name in here)
    ranks = [told(out, 0), told(out, 1)]
    for rank in ranks:
        assert rank["world"] == 2
        assert rank["correct"] == [place % 4 == 0 for place in range(12)]
    turns = [rank["turns"] for rank in ranks]
    assert sorted(turns[0] + turns[1]) == sorted([1, 2, 3] * 8)
    assert turns[0] != turns[1]
    most = [max(sum(n > i for n in rank["turns"]) for rank in ranks) for i in (1, 2)]
    assert ranks[0]["asked"] == [6, *(2 * n for n in most)]
    (numbers,) = ranks[0]["numbers"]
    assert numbers["accuracy"] == 0.25
    assert numbers["answered"] == numbers["validity"] == 1.0
    assert numbers["tool_failures"] == 0.0
