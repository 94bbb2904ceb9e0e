"""Decoding steps that read what rows have in common once, against the model's own attention."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM

from adapters.reference import shared_decoding
from adapters.reference.decoder import Decoder
from adapters.reference.shared_decoding import Beginning, can_share, rows_alike, sharing

pytestmark = pytest.mark.torch


@pytest.fixture
def for_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_decoding, "_SMALL", 0)
    monkeypatch.setattr(shared_decoding, "LEAST", 2)


def tiny_llama(dtype: torch.dtype = torch.float32) -> Any:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        initializer_range=0.3,
        attn_implementation="sdpa",
    )
    return LlamaForCausalLM(config).to(dtype).train(False)


@pytest.mark.usefixtures("for_any_size")
@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_logits_are_those_of_plain_passes(data: st.DataObject) -> None:
    model = tiny_llama()
    tokens = st.integers(0, 299)
    prompts = data.draw(st.lists(st.lists(tokens, min_size=2, max_size=6), min_size=1, max_size=3))
    owners = data.draw(st.lists(st.integers(0, len(prompts) - 1), min_size=2, max_size=7))
    texts = [prompts[o] + data.draw(st.lists(tokens, max_size=4)) for o in owners]
    decoder = Decoder(model, len(texts))
    decoder.feed(0, texts, [0] * len(texts))
    beginnings = [Beginning(owner, len(prompts[owner])) for owner in owners]

    for _ in range(2):
        new = [[data.draw(tokens)] for _ in texts]
        logits = decoder.feed(0, new, [len(text) for text in texts], beginnings)
        for row, (text, token) in enumerate(zip(texts, new, strict=True)):
            text += token
            with torch.no_grad():
                plain = model(input_ids=torch.tensor([text])).logits[0, -1]
            torch.testing.assert_close(logits[row], plain, atol=1e-4, rtol=1e-4)


def test_a_model_of_another_kind_keeps_its_own_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_llama()
    assert not can_share(model)  # too small
    monkeypatch.setattr(shared_decoding, "_SMALL", 0)
    assert can_share(model)
    model.config._attn_implementation = "eager"
    assert not can_share(model)
    model.config._attn_implementation = "sdpa"
    alike = rows_alike([Beginning(0, 200)] * 2, [201, 201], torch.float32)
    with sharing(model, alike):
        assert model.config._attn_implementation != "sdpa"
    assert model.config._attn_implementation == "sdpa"
