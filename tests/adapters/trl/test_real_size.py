"""A model with the layers of Qwen3-0.6B and an adapter, through two steps of the trainer."""

import hashlib
import math
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch
from peft import LoraConfig
from transformers import Qwen3Config, Qwen3ForCausalLM

from adapters.training.models.weights import fast_dtype
from tests.adapters.trl.scripted_rollouts import one_right, scripted_trainer

pytestmark = [pytest.mark.torch, pytest.mark.nightly]

LAYERS = 28 if fast_dtype() == "bfloat16" else 7
"""All of them where the machine is fast enough."""
PARAMETERS = 155_582_464 + LAYERS * 15_730_944 + 1024
"""596,049,920 of Qwen3-0.6B: the tied embedding of 151,936 tokens once, the layers, a norm."""


@pytest.fixture
def model(read_tokenizer: Any) -> Any:
    """Random weights in bfloat16, or in float32 and fewer layers where the machine is slow in that.

    The tokenizer is a small one, which knows the first few ids.
    """
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=151_936,
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=LAYERS,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
        tie_word_embeddings=True,
        eos_token_id=read_tokenizer.eos_token_id,
        pad_token_id=read_tokenizer.pad_token_id,
        dtype=getattr(torch, fast_dtype()),
    )
    return Qwen3ForCausalLM._from_config(config)


def digests(model: Any) -> dict[str, str]:
    """What the weights are, to the bit: a copy of them would count as memory of the training."""
    return {
        name: hashlib.sha256(parameter.detach().contiguous().view(torch.uint8).numpy()).hexdigest()
        for name, parameter in model.named_parameters()
    }


def test_an_adapter_on_six_hundred_million_weights_learns_alone(
    model: Any, read_tokenizer: Any, tmp_path: Any
) -> None:
    assert sum(parameter.numel() for parameter in model.parameters()) == PARAMETERS
    assert {parameter.dtype for parameter in model.parameters()} == {getattr(torch, fast_dtype())}
    trainer = scripted_trainer(
        model,
        read_tokenizer,
        tmp_path,
        one_right,
        settings={
            "num_generations": 2,
            "per_device_train_batch_size": 2,
            "max_completion_length": 64,
            "max_steps": 2,
            "beta": 0.01,
            "bf16": fast_dtype() == "bfloat16",
            "use_cpu": True,
        },
        peft_config=LoraConfig(r=8, target_modules=["q_proj", "v_proj"]),
        snapshot_steps=10,
    )
    before = digests(trainer.model)
    trainer.train()
    after = digests(trainer.model)
    moved = {name for name in before if before[name] != after[name]}
    assert len(moved) >= 2 * LAYERS
    assert all("lora_" in name for name in moved)
    first, second = seen = trainer.seen
    assert all(math.isfinite(value) for metrics in seen for value in metrics.values())
    assert first["kl"] == 0.0
    assert second["kl"] > 0.0
    assert min(metrics["grad_norm"] for metrics in seen) > 0.0
    assert [metrics["nonfinite_gradients"] for metrics in seen] == [0, 0]
    assert second["updates"] == 2
    assert max(metrics["mismatch"] for metrics in seen) < 1e-2
    assert first["peak_memory"] < (8 if LAYERS == 28 else 5) * 1024
    assert trainer.ref_model is None
