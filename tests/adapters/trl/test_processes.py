"""Two processes that share a step make the update that one makes alone."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.adapters.trl.processes import launch
from tests.adapters.trl.scripted_trl import prompt_text, same, scripted
from tests.adapters.trl.trl_worker import lively

pytestmark = pytest.mark.torch

SETTINGS: dict[str, Any] = {
    "num_generations": 4,
    "max_steps": 1,
    "beta": 0.01,
    "learning_rate": 1e-3,
    "use_cpu": True,
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
    """A training by `trl_worker`, whose settings may have some of the worker's own."""
    out = folder / name
    out.mkdir(exist_ok=True)
    told = json.dumps({**SETTINGS, "ddp_backend": "gloo", **settings})
    launch(out, processes, "tests.adapters.trl.trl_worker", str(folder), str(out), script, told)
    return out


def weights(out: Path, rank: int = 0) -> dict[str, torch.Tensor]:
    assert (out / "returncode").read_text() == "0", (out / "stderr").read_text()[-3000:]
    held: dict[str, torch.Tensor] = torch.load(out / f"weights-{rank}.pt")
    return held


def told(out: Path, rank: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / f"told-{rank}.json").read_text())
    return found


@pytest.mark.integration
def test_an_update_split_over_two_processes_is_the_update_of_one(folder: Path) -> None:
    seen: list[dict[str, float]] = []
    alone = scripted(
        AutoModelForCausalLM.from_pretrained(folder / "model"),
        AutoTokenizer.from_pretrained(folder / "model"),
        folder / "alone",
        lively,
        settings={**SETTINGS, "per_device_train_batch_size": 16},
        on_metrics=lambda step, numbers: seen.append(numbers),
    )
    alone.train()
    both = run(folder, "both", 2, "lively", per_device_train_batch_size=8)
    assert told(both)["world"] == 2
    expected = dict(alone.model.named_parameters())
    for rank in (0, 1):
        found = weights(both, rank)
        assert found.keys() == expected.keys()
        for name, weight in expected.items():
            assert (found[name] - weight).abs().max() < 1e-6, name
    (ones,), (twos,) = seen, told(both)["numbers"]
    for key in ("reward", "dead_groups", "validity", "learnt_tokens", "drawn_groups", "updates"):
        assert ones[key] == twos[key], key
    for key in ("grad_norm", "entropy"):
        assert twos[key] == pytest.approx(ones[key], rel=1e-5)


@pytest.mark.nightly
def test_two_processes_draw_equally_often_and_agree_on_everything(folder: Path) -> None:
    settings = {"per_device_train_batch_size": 8, "max_steps": 4, "max_draws": 4.0}
    out = run(folder, "dead", 2, "half_dead", **settings)
    one, other = weights(out, 0), weights(out, 1)
    assert all(torch.equal(one[name], other[name]) for name in one)
    here, there = told(out, 0), told(out, 1)
    assert here["world"] == there["world"] == 2
    assert here["guards"] == there["guards"]
    assert here["refills"] == there["refills"]
    assert here["batches"] == there["batches"] > 4
    numbers = here["numbers"]
    assert sum(line["dropped_groups"] for line in numbers) > 0
    assert all(line["masked_groups"] == 0 for line in numbers)
    kept = [
        line["drawn_groups"] - line["dropped_groups"] - line["surplus_groups"] for line in numbers
    ]
    assert kept == [4.0] * 4


@pytest.mark.nightly
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


# A model in shards

FSDP2: dict[str, Any] = {
    "fsdp": True,
    "fsdp_config": {
        "version": 2,
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "state_dict_type": "SHARDED_STATE_DICT",  # of checkpoints, as accelerate launch has it
    },
}
LOADED_CUT = {"loaded_cut": True}  # by transformers, with no help of accelerate
FAULTY: dict[str, Any] = {
    "per_device_train_batch_size": 8,
    "max_steps": 6,
    "optim": "adamw_torch",
    "lr_scheduler_type": "linear",
    "snapshot_steps": 1,
    "snapshot_keep": 9,
    "save_strategy": "steps",
    "save_steps": 2,
}
LORA: dict[str, Any] = {"r": 4, "target_modules": ["q_proj", "v_proj", "down_proj"]}


def states(out: Path, rank: int = 0) -> list[dict[str, Any]]:
    """Weights and moments after each step, 0 for before the first, whole in either case."""
    assert (out / "returncode").read_text() == "0", (out / "stderr").read_text()[-3000:]
    held: list[dict[str, Any]] = torch.load(out / f"states-{rank}.pt")
    return held


def furthest(ones: dict[str, torch.Tensor], others: dict[str, torch.Tensor]) -> float:
    assert ones.keys() == others.keys()
    return max(float((ones[name] - others[name]).abs().max()) for name in ones)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("way", "lora"),
    [(FSDP2, None), (FSDP2, LORA), (LOADED_CUT, None)],
    ids=["accelerate", "accelerate with lora", "transformers"],
)
def test_an_update_of_shards_is_the_update_of_the_whole(
    folder: Path, way: dict[str, Any], lora: Any
) -> None:
    alone = run(folder, "alone", 1, "lively", per_device_train_batch_size=16, lora=lora)
    cut = run(folder, "cut", 2, "lively", per_device_train_batch_size=8, lora=lora, **way)
    assert furthest(weights(cut), weights(alone)) < 1e-6
    assert same(weights(cut, 0), weights(cut, 1))
    assert furthest(weights(cut), states(cut)[0]["weights"]) > 1e-6
    (ones,), (twos,) = told(alone)["numbers"], told(cut)["numbers"]
    assert (told(alone)["sharded"], told(cut)["sharded"]) == (False, True)
    for key in ("reward", "learnt_tokens", "nonfinite_gradients", "nonfinite_weights", "kl"):
        assert ones[key] == twos[key], key
    for key in ("grad_norm", "entropy"):
        assert twos[key] == pytest.approx(ones[key], rel=1e-5)


@pytest.mark.nightly
@pytest.mark.parametrize("way", [FSDP2, LOADED_CUT], ids=["accelerate", "transformers"])
def test_processes_that_share_a_model_may_generate_turns_of_unequal_length(
    folder: Path, way: dict[str, Any]
) -> None:
    """Each token needs all shards, so the one that is done goes on until the other is, too."""
    settings = {"dynamic_sampling": False, "per_device_train_batch_size": 4, "beta": 0.0}
    out = run(folder, "unequal", 2, "unequal", **settings, **way)
    assert same(weights(out, 0), weights(out, 1))
    assert [told(out, rank)["generated"] for rank in (0, 1)] == [[4] * 4, [12] * 4]
    assert told(out, 0)["guards"] == told(out, 1)["guards"]


@pytest.mark.nightly
def test_a_nan_in_one_shard_is_skipped_rolled_back_and_learnt_from_slower_everywhere(
    folder: Path,
) -> None:
    """As in two processes that hold all weights; and a run that was killed finds its snapshots."""
    plain = run(
        folder, "plain", 2, "lively", faults={"steps": [3, 4, 5], "ranks": [0, 1]}, **FAULTY
    )
    fault = {"steps": [3, 4, 5], "ranks": [1]}
    cut = run(folder, "cut", 2, "lively", faults=fault, **FAULTY, **FSDP2)
    told_of = [told(cut, rank) for rank in (0, 1)]
    assert told_of[0]["guards"] == told_of[1]["guards"]
    numbers, of_plain = told_of[0]["numbers"], told(plain)["numbers"]
    for key in ("updates", "skipped_updates", "roll_backs", "learning_rate_scale"):
        assert [line[key] for line in numbers] == [line[key] for line in of_plain], key
    assert [line["nonfinite_gradients"] for line in numbers] == [0, 0, 1, 1, 1, 0]
    assert [line["roll_backs"] for line in numbers] == [0, 0, 0, 0, 1, 1]
    assert numbers[-1]["learning_rate_scale"] == 0.5
    after = states(cut)
    assert same(after[3], after[2])
    assert same(after[4], after[2])
    assert same(after[5], after[1])
    for step, (ours, theirs) in enumerate(zip(after, states(plain), strict=True)):
        assert furthest(ours["weights"], theirs["weights"]) < 1e-5, step
    run(folder, "killed", 2, "lively", killed_at=2, **FAULTY, **FSDP2)
    assert not list((folder / "killed").glob("told-*"))
    resumed = run(folder, "killed", 2, "lively", faults=fault, **FAULTY, **FSDP2)
    assert same(states(resumed), after[2:])
    assert told(resumed)["guards"] == told_of[0]["guards"]
