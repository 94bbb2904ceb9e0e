"""The preparation of a model for reinforcement learning."""

import copy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch

from adapters.training.models.weights import make_ready
from tests.adapters.base_models import random_model
from tests.sweeps import sweep
from toolgym import ConfigurationError

pytestmark = pytest.mark.torch

DROPOUTS: dict[str, dict[str, Any]] = {
    "Llama": {"attention_dropout": 0.3},
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 2},
    "OPT": {"ffn_dim": 64, "word_embed_proj_dim": 32, "dropout": 0.3, "layerdrop": 0.5},
    "Starcoder2": {"residual_dropout": 0.3, "embedding_dropout": 0.3},
    "BioGpt": {"hidden_dropout_prob": 0.3, "layerdrop": 0.5},
}


def test_half_precision_leaves_positions_exact(tmp_path: Path) -> None:
    """Rounded frequencies would make another model than the one loaded from a checkpoint."""
    model = random_model("Qwen3", torch.float32, head_dim=32, initializer_range=0.2)
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path, dtype=torch.bfloat16).train(False)
    ids = torch.randint(40, (1, 900), generator=torch.Generator().manual_seed(0))

    make_ready(model, "bfloat16", gradient_checkpointing=False)

    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert {n: b.dtype for n, b in model.named_buffers()} == {
        n: b.dtype for n, b in loaded.named_buffers()
    }
    with torch.no_grad():
        assert torch.equal(model(input_ids=ids).logits, loaded(input_ids=ids).logits)


@pytest.mark.parametrize("family", sweep(DROPOUTS, ["Llama", "GPT2", "OPT"]))
def test_nothing_is_dropped_while_learning(family: str) -> None:
    model = random_model(family, torch.float32, **DROPOUTS[family]).train()
    ids = torch.arange(3, 40)[None]

    make_ready(model, "float32", gradient_checkpointing=True)

    with torch.no_grad():
        learning = model(input_ids=ids, use_cache=False).logits
        assert model.training
        playing = model.train(False)(input_ids=ids, use_cache=False).logits
    torch.testing.assert_close(learning, playing)


def test_dropout_that_cannot_be_turned_off_is_refused() -> None:
    model = random_model("Falcon", torch.float32, hidden_dropout=0.3, attention_dropout=0.3)
    make_ready(copy.deepcopy(model), "float32", gradient_checkpointing=False)

    with pytest.raises(ConfigurationError, match="load the model with all dropouts"):
        make_ready(model, "float32", gradient_checkpointing=True)
