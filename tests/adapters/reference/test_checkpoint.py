"""Checkpoints: which are kept, what they restore, and which are refused."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("peft", reason="needs the extra `train`")

import torch

from adapters.reference.checkpoint import Checkpoints
from adapters.training.models.low_rank import Adapter, lora_config
from tests.adapters.base_models import random_model
from toolgym import ConfigurationError

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("family", "options"), [("Llama", {"tie_word_embeddings": True}), ("Qwen3", {"head_dim": 16})]
)
def test_a_checkpoint_is_read_into_the_memory_that_is_there(
    family: str, options: dict[str, Any], tmp_path: Path, tokenizer: Any
) -> None:
    checkpoints, model = Checkpoints(tmp_path, keep=2), random_model(family, **options)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    checkpoints.save(3, model, tokenizer, {"0.first": torch.arange(4.0)}, {"updates": 3})
    places = [parameter.data_ptr() for parameter in model.parameters()]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)

    tensors, state = checkpoints.load(3, model)

    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert [parameter.data_ptr() for parameter in model.parameters()] == places
    assert torch.equal(tensors["0.first"], torch.arange(4.0))
    assert (state["updates"], state["global_step"]) == (3, 3)


def test_an_adapter_of_another_shape_is_refused(tmp_path: Path, tokenizer: Any) -> None:
    one, other = (Adapter(random_model(), lora_config(rank, 8, "all-linear")) for rank in (4, 8))
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.save(3, one, tokenizer, {}, {})

    with pytest.raises(ConfigurationError, match="has no adapter of the shape"):
        checkpoints.load(3, other)


def test_the_latest_healthy_checkpoint_outlives_those_that_came_after(
    tmp_path: Path, tokenizer: Any
) -> None:
    checkpoints, model = Checkpoints(tmp_path, keep=2), random_model()

    kept = []
    for step in range(0, 50, 10):
        checkpoints.save(step, model, tokenizer, {}, {}, healthy=range(min(step, 15)))
        kept.append(checkpoints.steps())

    assert kept == [[0], [0, 10], [10, 20], [10, 20, 30], [10, 30, 40]]


def test_a_checkpoint_of_another_model_or_a_damaged_one_is_refused(
    tmp_path: Path, tokenizer: Any
) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.save(3, random_model(), tokenizer, {}, {})

    with pytest.raises(ConfigurationError, match="another model than the trained one"):
        checkpoints.load(3, random_model(hidden_size=64))
    for file in ("model.safetensors", "optimizer.safetensors"):
        (tmp_path / "checkpoint-3" / file).write_bytes(b"half")
        with pytest.raises(
            ConfigurationError, match="Remove it to resume from an older checkpoint"
        ):
            checkpoints.load(3, random_model())
