"""The decoder of a KV cache with slots, and which models it is right for."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sweeps import sweep
from tests.toolgym.generation.random_models import FAMILIES, random_model
from toolgym import ConfigurationError
from toolgym.generation import check_model
from toolgym.generation.decoder import Decoder

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("family", sweep(FAMILIES, ["Qwen3", "Gemma3Text", "GptOss", "OPT"]))
def test_a_model_of_keys_and_values_computes_the_same_with_the_cache(family: str) -> None:
    model = random_model(family).train(True)

    check_model(model)

    assert model.training


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("Mamba", {}),
        ("Bloom", {"n_layer": 2, "n_head": 4}),
        pytest.param("Qwen3Next", {"num_hidden_layers": 4}, marks=pytest.mark.nightly),
    ],
)
def test_a_model_with_another_memory_is_refused(family: str, options: dict[str, Any]) -> None:
    model = random_model(family, **options, attn_implementation="eager")

    with pytest.raises(ConfigurationError, match="use --trainer trl"):
        check_model(model)


def test_a_model_in_half_precision_is_compared_in_float32() -> None:
    check_model(random_model("GptOss").bfloat16())


@settings(max_examples=6, deadline=None)
@given(st.data())
def test_any_ragged_feeding_gives_the_logits_of_plain_passes(data: st.DataObject) -> None:
    model = random_model()
    count = data.draw(st.integers(1, 4))
    texts: list[list[int]] = [[] for _ in range(count)]
    decoder = Decoder(model, count)
    token = st.integers(0, 299)
    for _ in range(data.draw(st.integers(1, 4))):
        first = data.draw(st.integers(0, count - 1))
        rows = range(first, count)
        new = [data.draw(st.lists(token, min_size=1, max_size=7)) for _ in rows]
        with torch.inference_mode():
            logits = decoder.feed(first, new, [len(texts[row]) for row in rows])
        longest = max(map(len, new))
        for row, tokens in zip(rows, new, strict=True):
            texts[row] += tokens
            if len(tokens) == longest:
                with torch.no_grad():
                    plain = model(input_ids=torch.tensor([texts[row]])).logits[0, -1]
                torch.testing.assert_close(logits[row - first], plain, atol=1e-4, rtol=1e-4)
        sources = data.draw(st.lists(st.integers(0, count - 1), min_size=count, max_size=count))
        with torch.inference_mode():
            decoder.cache.arrange(sources, max(map(len, texts)))
        texts = [list(texts[source]) for source in sources]
