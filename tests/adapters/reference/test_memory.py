"""What a training keeps in memory: the reference, an adapter, a checkpoint that is read."""

import dataclasses
import gc
import json
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("peft", reason="needs the extra `train`")

import torch
import transformers

from adapters.reference.checkpoint import Checkpoints
from adapters.reference.config import reference_config
from adapters.reference.decoder import Decoder, check_model
from adapters.reference.kl_reference import CopiedReference
from adapters.reference.optimizer import Optimizer
from adapters.training.models.low_rank import Adapter, lora_config
from adapters.training.models.memory_needs import (
    SHAPES,
    Load,
    Needs,
    needs_of,
    shape_of,
)
from adapters.training.models.released_memory import _glibc
from adapters.training.models.supervised import WarmupSettings, warm_up
from adapters.training.models.tokenized_examples import Example
from adapters.training.preflight import memory
from adapters.training.preflight.memory import check_memory, memory_needs
from adapters.training.runs.settings import resolve
from toolgym import ConfigurationError

pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[3]
SHAPE: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
}
IDS = torch.arange(3, 40)[None]


def random_model(family: str = "Llama", dtype: Any = torch.bfloat16, **options: Any) -> Any:
    config = getattr(transformers, f"{family}Config")(**{**SHAPE, **options})
    torch.manual_seed(0)
    auto: Any = transformers.AutoModelForCausalLM
    return auto.from_config(config, dtype=dtype).train(False)


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(input_ids=IDS, use_cache=False).logits
    return found


def moved(model: Any) -> Any:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.01 * torch.randn_like(parameter))
    return model


def test_the_reference_stays_what_the_model_was() -> None:
    model = random_model()
    before, reference = logits(model), CopiedReference(model)
    moved(model)

    with reference.active() as active:
        assert torch.equal(logits(active), before)
    assert not torch.equal(logits(model), before)


def test_an_adapter_is_all_that_is_trained_and_without_it_the_model_is_what_it_was() -> None:
    model = random_model()
    before = logits(model)
    adapter = Adapter(model, lora_config(4, 8, "all-linear"), seed=1)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}

    assert torch.equal(logits(model), before)
    assert trained == {name for name, _ in model.named_parameters() if "lora_" in name}
    assert {p.dtype for p in model.parameters() if p.requires_grad} == {torch.float32}
    check_model(model)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0, 0.1)
    adapted = logits(model)
    with adapter.active() as reference:
        assert torch.equal(logits(reference), before)
    adapter.merge()

    assert not torch.equal(adapted, before)
    torch.testing.assert_close(logits(model), adapted, atol=0.05, rtol=0.05)
    assert not [name for name, _ in model.named_parameters() if "lora_" in name]
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_removed_adapter_leaves_the_model_as_it_was() -> None:
    model = random_model()
    names, before = list(model.state_dict()), logits(model)

    Adapter(model, lora_config(4, 8, "all-linear")).remove()

    assert list(model.state_dict()) == names
    assert torch.equal(logits(model), before)


def test_a_warm_up_leaves_gradients_to_whoever_trains_next() -> None:
    model = random_model()
    example = Example(tuple(range(3, 40)), (False,) + (True,) * 36)
    before = logits(model)

    warm_up(model, [example], WarmupSettings(3, 2, 1e-2))
    assert not torch.equal(logits(model), before)
    assert [name for name, p in model.named_parameters() if p.grad is not None] == []
    kept = weakref.ref(next(model.parameters()))
    optimizer = Optimizer(model, reference_config({}))
    model(input_ids=IDS).logits.float().square().mean().backward()

    assert float(optimizer.gradient()[0]) > 0
    del optimizer, model
    gc.collect()
    assert kept() is None


def test_layers_that_a_model_does_not_have_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="lora_targets is refused"):
        Adapter(random_model(), lora_config(4, 8, ["nowhere"]))


@pytest.mark.parametrize(
    ("family", "options"), [("Llama", {"tie_word_embeddings": True}), ("Qwen3", {"head_dim": 16})]
)
def test_a_checkpoint_is_read_into_the_memory_that_is_there(
    family: str, options: dict[str, Any], tmp_path: Path, tokenizer: Any
) -> None:
    checkpoints, model = Checkpoints(tmp_path, keep=2), random_model(family, **options)
    state = {"0.first": torch.arange(4.0)}
    before = logits(model)
    checkpoints.save(3, model, tokenizer, state, {"updates": 3})
    places = [parameter.data_ptr() for parameter in moved(model).parameters()]

    saved = checkpoints.load_weights(3, model)

    assert torch.equal(logits(model), before)
    assert [parameter.data_ptr() for parameter in model.parameters()] == places
    assert (list(saved), checkpoints.load_state(3)["updates"]) == (["0.first"], 3)
    assert torch.equal(saved["0.first"], state["0.first"])


def test_a_checkpoint_in_several_files_is_read_too(tmp_path: Path, tokenizer: Any) -> None:
    checkpoints, model = Checkpoints(tmp_path, keep=2), random_model()
    before = logits(model)
    checkpoints.save(3, model, tokenizer, {}, {})
    model.save_pretrained(tmp_path / "checkpoint-3", max_shard_size="40KB")
    (tmp_path / "checkpoint-3" / "model.safetensors").unlink(missing_ok=True)
    assert len(list((tmp_path / "checkpoint-3").glob("model-*.safetensors"))) > 1

    checkpoints.load_weights(3, moved(model))

    assert torch.equal(logits(model), before)


def test_an_adapter_of_another_shape_is_refused(tmp_path: Path, tokenizer: Any) -> None:
    one, other = (Adapter(random_model(), lora_config(rank, 8, "all-linear")) for rank in (4, 8))
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.save(3, one, tokenizer, {}, {})

    with pytest.raises(ConfigurationError, match="holds no adapter of the shape"):
        checkpoints.load_weights(3, other)


@pytest.mark.nightly
def test_no_more_than_one_module_is_in_float32_while_a_model_is_checked() -> None:
    model = random_model(num_hidden_layers=6)
    wide: list[int] = []

    def count(*_: Any) -> None:
        wide.append(sum(p.dtype == torch.float32 for p in model.parameters()))

    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_hook(count)
    check_model(model)

    assert 1 in wide
    assert max(wide) <= 1
    decoder = Decoder(model, 1)
    assert decoder.feed(0, [[3, 4]], [0]).dtype == torch.bfloat16


@pytest.mark.parametrize(("family", "size"), [("Llama", "135M"), ("Qwen3", "8B")])
def test_the_arithmetic_counts_a_model_s_weights(family: str, size: str) -> None:
    shape = dataclasses.replace(SHAPES[size], layers=3)
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
        model = random_model(family, getattr(torch, dtype), **sizes, num_hidden_layers=layers)
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


def test_the_arithmetic_knows_the_defaults_of_the_trainer() -> None:
    defaults = reference_config({})
    assert {name: getattr(defaults, name) for name in memory._DEFAULTS} == memory._DEFAULTS
    assert defaults.loss.beta == 0.01


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
@pytest.mark.skipif(_glibc() is None, reason="needs glibc")
def test_what_was_freed_goes_back_to_the_system() -> None:
    program = """
import torch
from adapters.training.models.released_memory import release_memory

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
