"""The memory of a training: what is kept, what is estimated, and what goes back to the system."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from transformers import PretrainedConfig

from adapters.training.models.memory_needs import Load, bytes_of_update
from adapters.training.models.supervised import SftSettings, train_supervised
from adapters.training.models.tokenized_examples import Example
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


@pytest.mark.parametrize(("family", "dtype"), [("Llama", "bfloat16"), ("Qwen3", "float32")])
def test_the_engine_leaves_room_for_the_activations_that_an_update_keeps(
    family: str, dtype: str
) -> None:
    """The estimate is compared with the tensors that autograd saves."""
    kept, expected = [], []
    for layers in (2, 4):
        sizes: dict[str, Any] = {"hidden_size": 128, "intermediate_size": 384, "head_dim": 32}
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
        expected.append(bytes_of_update(model.config, 0, Load(dtype, 0, 256, False)))

    assert expected[1] - expected[0] == pytest.approx(kept[1] - kept[0], rel=0.25)


def test_the_estimates_know_adapters_checkpointing_and_the_cache() -> None:
    model = random_model()
    count = model.num_parameters()

    def update(rank: int = 0, has_checkpointing: bool = False) -> int:
        load = Load("bfloat16", rank, 4096, has_checkpointing)
        return bytes_of_update(model.config, 10**9 if not rank else count, load)

    assert update(rank=8) < update(has_checkpointing=True) < update()
    assert bytes_of_update(PretrainedConfig(), 1, Load("float32", 0, 1, False)) == 0


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
