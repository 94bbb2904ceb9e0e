"""Two processes that share a step make the update that one makes alone."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch

from tests.adapters.trl import trl_worker
from tests.adapters.trl.processes import launch
from tests.adapters.trl.scripted_trl import same

pytestmark = pytest.mark.torch


@pytest.fixture
def folder(read_tokenizer: Any, tiny_model: Any, tmp_path: Path) -> Path:
    """A model and its tokenizer."""
    tiny_model.resize_token_embeddings(len(read_tokenizer))
    tiny_model.save_pretrained(tmp_path / "model")
    read_tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path


class Process:
    """The weights of a process after each step, and its metrics."""

    def __init__(self, out: Path, rank: int) -> None:
        self.weights: list[dict[str, torch.Tensor]] = torch.load(out / f"weights-{rank}.pt")
        self.told: dict[str, Any] = json.loads((out / f"told-{rank}.json").read_text())


def run(folder: Path, processes: int, script: str, **options: Any) -> list[Process]:
    """A training by `trl_worker`."""
    out = folder / f"{script}-{processes}"
    out.mkdir()
    if processes == 1:
        trl_worker.main(folder, out, script, options)
        return [Process(out, 0)]
    options["settings"]["ddp_backend"] = "gloo"
    given = str(folder), str(out), script, json.dumps(options)
    launch(out, processes, "tests.adapters.trl.trl_worker", *given)
    assert (out / "returncode").read_text() == "0", (out / "stderr").read_text()[-3000:]
    return [Process(out, rank) for rank in range(processes)]


def furthest(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    return max(float((one[name] - other[name]).abs().max()) for name in one)


@pytest.mark.integration
def test_an_update_split_over_two_processes_is_the_update_of_one(folder: Path) -> None:
    settings = {"optim": "sgd", "learning_rate": 0.1, "beta": 0.01}
    (alone,) = run(folder, 1, "lively", settings={**settings, "per_device_train_batch_size": 16})
    both = run(folder, 2, "lively", settings=settings)

    assert [each.told["processes"] for each in both] == [2, 2]
    assert furthest(alone.weights[1], alone.weights[0]) > 1e-3
    for process in both:
        assert furthest(process.weights[1], alone.weights[1]) < 1e-6
    (one,), (split,) = alone.told["metrics"], both[0].told["metrics"]
    clock = {"rollout_seconds", "update_seconds", "peak_memory"}
    assert {key: split[key] for key in split.keys() - clock} == pytest.approx(
        {key: one[key] for key in one.keys() - clock}, rel=1e-4, abs=1e-6
    )


@pytest.mark.integration
def test_two_processes_draw_equally_often_and_go_back_to_the_same_weights(folder: Path) -> None:
    one, other = run(
        folder,
        2,
        "half_dead",
        settings={"max_steps": 6},
        rollouts={"max_draws": 4.0},
        rows=24,
        broken=[3, 4, 5],
    )

    needs = [
        [sum(int(task[-1]) % 2 for task in batch["tasks"]) for batch in process.told["played"]]
        for process in (one, other)
    ]
    assert any(here != there for here, there in zip(*needs, strict=True))
    metrics = [[each["metrics"] for each in process.told["played"]] for process in (one, other)]
    for here, there in zip(*metrics, strict=True):
        assert here | {"rollout_seconds": 0} == there | {"rollout_seconds": 0}
        assert here["masked_groups"] == 0
        assert here["drawn_groups"] - here["dropped_groups"] - here["surplus_groups"] == 4
    assert one.told["guards"] == other.told["guards"]
    assert [line["skipped_updates"] for line in one.told["metrics"]] == [0, 0, 1, 2, 3, 3]
    assert [line["roll_backs"] for line in one.told["metrics"]] == [0, 0, 0, 0, 1, 1]
    for here, there in zip(one.weights, other.weights, strict=True):
        assert same(here, there)
    assert same(one.weights[4], one.weights[2])
    assert not same(one.weights[6], one.weights[5])


@pytest.mark.nightly
def test_with_a_vllm_server_each_rollout_gets_its_own_words_however_long_others_play(
    folder: Path,
) -> None:
    """Up to the server's client it is TRL's own code, which deals the turns out by position."""
    settings = {"per_device_train_batch_size": 12}
    processes = run(folder, 2, "server", settings=settings, guards={"only_warn": True})

    turns = []
    for process in processes:
        (played,) = process.told["played"]
        assert [score > 0.9 for score in played["scores"]] == [True, False, False, False] * 3
        expected = [1 + int(task[-1]) // 2 for task in played["tasks"] for _ in range(4)]
        assert played["turns"] == expected
        turns.append(expected)
    longest = [max(sum(n > done for n in own) for own in turns) for done in range(3)]
    assert sorted(turns[0]) != sorted(turns[1])
    assert processes[0].told["asked"] == [2 * n for n in longest]
    assert same(processes[0].weights[1], processes[1].weights[1])
    assert not same(processes[0].weights[1], processes[0].weights[0])
