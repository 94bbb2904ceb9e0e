"""The model that is built from nothing."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from transformers import AutoModelForCausalLM

from adapters.tiny.model import build_model

pytestmark = pytest.mark.torch


def test_one_seed_gives_one_model_and_leaves_the_global_stream_alone(tiny_tokenizer: Any) -> None:
    state = torch.random.get_rng_state()

    first, same, other = (build_model(tiny_tokenizer, seed) for seed in (1, 1, 2))

    weights = [model.state_dict()["model.layers.0.mlp.up_proj.weight"] for model in (first, same)]
    assert torch.equal(*weights)
    assert not torch.equal(weights[0], other.state_dict()["model.layers.0.mlp.up_proj.weight"])
    assert torch.equal(state, torch.random.get_rng_state())


def test_a_saved_model_gives_the_same_logits(tmp_path: Path, tiny_tokenizer: Any) -> None:
    model = build_model(tiny_tokenizer).eval()
    ids = torch.tensor([tiny_tokenizer("How many products are there?")["input_ids"]])

    model.save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(str(tmp_path)).eval()

    with torch.no_grad():
        assert torch.equal(model(ids).logits, loaded(ids).logits)
    assert loaded.generation_config.eos_token_id == tiny_tokenizer.eos_token_id


def test_heads_that_copy_make_the_word_they_read_likelier_than_heads_at_random(
    tiny_tokenizer: Any,
) -> None:
    """Of what each word leaves behind in the first layer, seen by the layer's output alone."""

    def rank_of_own_word(copying: float) -> float:
        model = build_model(tiny_tokenizer, seed=3, copying=copying)
        words = torch.arange(300, len(tiny_tokenizer))
        with torch.no_grad():
            embedding = model.get_input_embeddings().weight
            attention = model.model.layers[0].self_attn
            read = model.model.layers[0].input_layernorm(embedding[words])
            said = attention.o_proj(attention.v_proj(read)) @ embedding.T
        own = said.gather(1, words[:, None])
        return (said > own).sum(dim=1).float().mean().item()

    assert rank_of_own_word(0.5) < 5
    assert rank_of_own_word(0.0) > 100
