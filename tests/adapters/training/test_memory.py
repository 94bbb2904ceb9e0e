"""The memory of a training: by arithmetic, and by what the computation keeps."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("peft", reason="needs the extra `train`")

import torch
from transformers import PretrainedConfig

from adapters.training.models.low_rank import Adapter, lora_config
from adapters.training.models.memory_needs import (
    Load,
    Needs,
    Shape,
    bytes_of_update,
    needs_of,
    shape_of,
)
from adapters.training.models.supervised import SftSettings, train_supervised
from adapters.training.models.tokenized_examples import Example
from adapters.training.preflight import memory
from adapters.training.preflight.memory import check_memory, memory_needs
from adapters.training.runs.settings import resolve
from tests.adapters.base_models import random_model

pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[3]


def test_supervised_training_leaves_no_gradients() -> None:
    model = random_model(dtype=torch.bfloat16)
    example = Example(tuple(range(3, 39)), (False,) + (True,) * 35)
    before = [parameter.detach().clone() for parameter in model.parameters()]

    train_supervised(model, [example], SftSettings(3, 2, 1e-2))

    pairs = zip(before, model.parameters(), strict=True)
    assert not all(torch.equal(one, other) for one, other in pairs)
    assert all(parameter.grad is None for parameter in model.parameters())
    loss: Any = model(input_ids=torch.tensor([example.ids])).logits.float().mean()
    loss.backward()  # nothing collects the gradients any more
    assert any(parameter.grad is not None for parameter in model.parameters())


def test_masters_and_the_copy_of_merged_weights_are_counted() -> None:
    shape = Shape(4, 128, 256, 1000, 4, 2, 32)

    def needed(**load: Any) -> Needs:
        return needs_of(shape, Load(has_reference=False, **load))

    exact, half = needed(dtype="float32"), needed(dtype="bfloat16")
    assert (exact.weights, half.weights) == (4 * shape.weights, 6 * shape.weights)
    assert exact.moments == half.moments == 8 * shape.weights
    layers = shape.layers * sum(rows * columns for rows, columns in shape.matrices)
    assert needed(adapter_rank=4).cache - half.cache == 2 * layers


def test_an_update_needs_what_a_training_needs_beside_its_weights() -> None:
    model, load = random_model("Llama"), Load(at_once=0, tokens_per_pass=512)
    count = sum(parameter.numel() for parameter in model.parameters())
    shape = shape_of(model.config, count)
    assert shape is not None
    needs = needs_of(shape, load)

    assert bytes_of_update(model.config, count, load) == int(needs.total - needs.weights)
    assert bytes_of_update(PretrainedConfig(), count, load) == 0


@pytest.mark.parametrize(
    ("family", "shape"),
    [
        ("Llama", Shape(3, 576, 1536, 49152, 9, 3, 64)),
        ("Qwen3", Shape(3, 4096, 12288, 151936, 32, 8, 128, is_tied=False)),
    ],
)
def test_the_arithmetic_counts_a_model_s_weights(family: str, shape: Shape) -> None:
    sizes = {
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.feed_forward,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_heads,
        "head_dim": shape.head_size,
        "tie_word_embeddings": shape.is_tied,
    }
    with torch.device("meta"):
        model = random_model(family, **sizes)
    found = shape_of(model.config)

    assert found == shape
    assert shape.weights == pytest.approx(model.num_parameters(), rel=1e-4)
    Adapter(model, lora_config(16, 32, "all-linear"))
    adapter = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert shape.adapter(16) == adapter


@pytest.mark.parametrize(("family", "dtype"), [("Llama", "bfloat16"), ("Qwen3", "float32")])
def test_the_arithmetic_counts_the_activations_that_are_kept(family: str, dtype: str) -> None:
    kept, expected = [], []
    for layers in (2, 4):
        sizes = {"hidden_size": 128, "intermediate_size": 384, "head_dim": 32}
        model = random_model(
            family, getattr(torch, dtype), **{**sizes, "num_hidden_layers": layers}
        )
        weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
        seen: dict[int, int] = {}

        held: list[torch.Tensor] = []  # or the next one may have its place

        def note(
            tensor: torch.Tensor, seen: Any = seen, weights: Any = weights, held: Any = held
        ) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in weights:
                seen[storage.data_ptr()] = storage.nbytes()
            held.append(tensor)
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            model.base_model(input_ids=torch.zeros(2, 128, dtype=torch.long), use_cache=False)
        kept.append(sum(seen.values()))
        shape = shape_of(model.config)
        assert shape is not None
        expected.append(needs_of(shape, Load(dtype=dtype, tokens_per_pass=256)).activations)

    assert expected[1] - expected[0] == pytest.approx(kept[1] - kept[0], rel=0.2)


def test_what_a_machine_cannot_hold_is_refused_or_warned_of(monkeypatch: Any) -> None:
    settings = resolve(
        "sqlgym/Explore-v0", model="some/model", trainer="reference", dtype="bfloat16"
    )
    needs = memory_needs(settings, random_model().config, 10**9)
    assert needs is not None
    assert needs.certain < needs.total

    found = []
    for free in (needs.total + 1, needs.total - 1, needs.certain - 1):
        monkeypatch.setattr(memory, "free_memory", lambda free=free: free)
        found.append([finding.level for finding in check_memory(needs)])
        assert not check_memory(needs, held=needs.total)

    assert found == [[], ["warn"], ["no-go"]]
    for own in ({"trainer": "trl"}, {"model": None}):
        other = resolve("sqlgym/Explore-v0", **{"model": "m/m", "trainer": "reference", **own})
        assert memory_needs(other, random_model().config) is None


def test_a_full_warm_up_before_an_adapter_takes_the_memory_of_all_weights() -> None:
    own = {"model": "m/m", "trainer": "reference", "dtype": "bfloat16", "lora": True}
    config = random_model().config

    def needed(**more: Any) -> Needs:
        needs = memory_needs(resolve("sqlgym/Explore-v0", **own, **more), config, 10**9)
        assert needs is not None
        return needs

    adapter, after_all_weights = needed(), needed(sft_lora=False)

    assert after_all_weights.certain > 4 * adapter.certain
    assert after_all_weights.cache == 0
    assert needed(sft_lora=False, sft_steps=0) == needed(sft_steps=0) == adapter


LONG = """
import sys, torch, resource
from transformers import LlamaConfig, LlamaForCausalLM
from adapters.training.models.supervised import accumulate
from adapters.training.models.tokenized_examples import Example
torch.set_num_threads(1)
config = LlamaConfig(vocab_size=100_000, hidden_size=32, intermediate_size=32,
    num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2)
model = LlamaForCausalLM(config)
tokens = int(sys.argv[1])
accumulate(model, [Example(tuple(range(tokens)), (True,) * tokens)])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.nightly
def test_memory_does_not_grow_with_vocabulary_times_tokens() -> None:
    """Logits of 1,500 more places would be 600 MB, and their gradient as much."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    peaks = []
    for tokens in (500, 2000):
        command = [sys.executable, "-c", LONG, str(tokens)]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, check=True, timeout=600
        )
        peaks.append(json.loads(done.stdout) * 1024)

    assert peaks[1] - peaks[0] < 200e6


@pytest.mark.nightly
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_what_was_freed_goes_back_to_the_system() -> None:
    program = """
import torch
from adapters.training.models.weights import release_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

torch.ones(2**22)  # from here on glibc has blocks of this size in its heap
large, small = [], []
for _ in range(300):
    large.append(torch.ones(2**18))
    small.append(torch.ones(64))
held = resident()
del large
freed = resident()
release_memory()
print(held - freed, freed - resident())
"""
    command = [sys.executable, "-c", program]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, cwd=ROOT, timeout=600
    )

    assert done.returncode == 0, done.stderr
    by_itself, released = map(int, done.stdout.split())
    assert by_itself < 30e6, "glibc gives it back by itself: nothing is shown here"
    assert released > 250e6
