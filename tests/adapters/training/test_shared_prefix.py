"""Texts that share their beginnings in one row, held against each text by itself."""

import random
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch

from adapters.training.models import shared_prefix, supervised
from adapters.training.models.shared_prefix import (
    Packing,
    divided,
    paths,
    reading,
    sharing_problem,
)
from adapters.training.models.supervised import WarmupSettings, accumulate, warm_up
from adapters.training.models.tokenized_examples import Example
from tests.adapters.base_models import random_model
from tests.sweeps import sweep

pytestmark = pytest.mark.torch

WINDOWS: dict[str, Any] = {"sliding_window": 5, "head_dim": 16, "num_hidden_layers": 6}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "Llama": ("Llama", {}),
    "Llama, eager": ("Llama", {"attention": "eager"}),
    "Qwen 3": ("Qwen3", {"head_dim": 16}),
    "Qwen 3, mixture of experts": ("Qwen3Moe", {"num_experts": 4, "num_experts_per_tok": 2}),
    "Gemma 2, softcaps": ("Gemma2", {**WINDOWS, "attention": "eager"}),
    "Gemma 3, windows in most layers": ("Gemma3Text", WINDOWS),
    "Mistral, windows in all layers": ("Mistral", {"sliding_window": 5}),
    "gpt-oss, sinks": ("GptOss", {"sliding_window": 5, "head_dim": 8}),
    "GPT-2, learnt positions": ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 2}),
}


def made_model(name: str, dtype: Any = torch.float64) -> Any:
    family, options = MODELS.get(name, (name, {}))
    return random_model(family, dtype, **options)


def some_texts(seed: int = 0) -> tuple[list[list[int]], list[int]]:
    """Texts over a tree of beginnings, and what of each may be shared."""
    draw = random.Random(seed)

    def some(length: int) -> list[int]:
        return [draw.randrange(3, 40) for _ in range(length)]

    manual = some(7)
    prompts = [manual + some(6), manual + some(9), some(5), some(1)]
    texts, shareable = [], []
    for number, prompt in enumerate(prompts):
        for length in (1, 4, 9, 2)[: 4 - number % 2]:
            texts.append(prompt + some(length))
            shareable.append(len(prompt) - 1)
    order = draw.sample(range(len(texts)), len(texts))
    return [texts[place] for place in order], [shareable[place] for place in order]


def test_segments_of_a_path_are_the_text_and_numbers_stand_for_tokens() -> None:
    texts, shareable = some_texts()

    found = paths(texts, shareable, 3)

    meant: dict[int, tuple[int, ...]] = {}
    for place, path in found.items():
        assert [s.start for s in path] == [0, *(s.stop for s in path[:-1])]
        assert path[-1].stop == len(texts[place])
        assert path[-1].start <= shareable[place]
        for segment in path:
            tokens = tuple(texts[place][: segment.stop])
            assert meant.setdefault(segment.number, tokens) == tokens
    assert sorted(found) == list(range(len(texts)))
    assert len(meant) < sum(map(len, found.values()))


@pytest.mark.parametrize("most", [1, 60])
def test_no_row_has_more_tokens_than_it_may(most: int) -> None:
    texts, shareable = some_texts()
    found = paths(texts, shareable, 3)

    rows = list(divided(found, [1] * len(texts), most, 4))

    assert [text for row in rows for text in row] == list(found)
    for row in rows:
        size = Packing(texts, found, row).ids.numel()
        assert size <= most or len(row) == 1
        assert len(row) <= 4


@pytest.mark.parametrize("block", [6, pytest.param(256, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", sweep(MODELS, ["Llama", "Gemma 3, windows in most layers"]))
def test_a_text_in_a_row_has_the_logits_that_it_has_alone(
    name: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_prefix, "_BLOCK", block)
    model, (texts, shareable) = made_model(name, torch.float32), some_texts()
    found = paths(texts, shareable, 3)
    packing = Packing(texts, found, list(found))
    assert packing.ids.numel() < 0.8 * sum(map(len, texts))

    with reading(model, packing), torch.no_grad():
        packed = model(
            input_ids=packing.ids, position_ids=packing.positions, use_cache=False
        ).logits[0]

    for place, shift in zip(found, packing.shifts, strict=True):
        with torch.no_grad():
            alone = model(input_ids=torch.tensor([texts[place]]), use_cache=False).logits[0]
        own = packed[shareable[place] + shift : len(texts[place]) + shift]
        error = (own - alone[shareable[place] :]).abs().max() / alone.std()
        assert float(error) < 5e-5


@pytest.mark.parametrize("name", sweep(MODELS, ["Qwen 3"]))
def test_a_model_that_reads_shared_beginnings_alike_is_found_to(name: str) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        model = made_model(name, dtype)
        before = {key: value.clone() for key, value in model.state_dict().items()}

        assert sharing_problem(model) == ""
        assert model.config._attn_implementation in ("sdpa", "eager")
        assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


@pytest.mark.nightly
def test_a_model_that_does_not_is_found_to() -> None:
    assert "spread" in sharing_problem(made_model("Bloom", torch.float32))  # its mask has biases
    assert "Error" in sharing_problem(made_model("GPTJ", torch.float32))

    flash = made_model("Llama")
    flash.config._attn_implementation = "flash_attention_2"
    assert "flash_attention_2" in sharing_problem(flash)

    chunks = made_model("Llama")
    chunks.config.layer_types = ["chunked_attention", "full_attention"]
    assert "chunked_attention" in sharing_problem(chunks)

    silent = made_model("Llama")  # a window that attention is not told of
    silent.config.sliding_window = 5
    assert "windows" in sharing_problem(silent)


def some_examples(seed: int = 0) -> list[Example]:
    """Transcripts with two learnt turns, most of them with the same tools."""
    texts, shareable = some_texts(seed)
    draw = random.Random(seed)
    examples = []
    for text, prompt in zip(texts, shareable, strict=True):
        told, again = text[:3], [draw.randrange(3, 40) for _ in range(draw.randrange(1, 5))]
        learn = [False] * (prompt + 1) + [True] * (len(text) - prompt - 1)
        tail = [False] * len(told) + [True] * len(again) + [False]
        examples.append(Example((*text, *told, *again, 1), (*learn, *tail)))
    return [*examples, Example((5, 6, 7), (True, False, False))]  # one with nothing to learn


@pytest.mark.parametrize("row", [20, pytest.param(10_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", sweep(["Llama", "Gemma 3, windows in most layers"], ["Llama"]))
def test_examples_in_one_row_have_the_gradient_of_padded_ones(
    name: str, row: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised, "_ROW", row)
    monkeypatch.setattr(supervised, "LEAST", 3)
    model, examples = made_model(name), some_examples()
    padded = accumulate(model, examples)
    wanted = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()

    packed = accumulate(model, examples, packs=True)

    assert packed == pytest.approx(padded, rel=1e-6)
    found = [p.grad for p in model.parameters() if p.grad is not None]
    for one, other in zip(found, wanted, strict=True):
        assert float((one - other).norm()) <= 1e-6 * float(other.norm()) + 1e-12


@pytest.mark.nightly
def test_a_large_model_warms_up_in_rows_and_a_small_one_does_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shapes: list[tuple[int, ...]] = []

    def warm(model: Any) -> list[tuple[int, ...]]:
        shapes.clear()
        look = model.register_forward_pre_hook(
            lambda module, given, named: shapes.append(tuple(named["input_ids"].shape)),
            with_kwargs=True,
        )
        warm_up(model, some_examples(), WarmupSettings(steps=1, batch=6))
        look.remove()
        return [shape for shape in shapes if model.training is False]

    small = made_model("Llama", torch.float32)
    assert all(rows > 1 for rows, _ in warm(small)[:1])
    monkeypatch.setattr(supervised, "_SMALL", 1)
    assert warm(made_model("Llama", torch.float32))[-1][0] == 1
    assert not caplog.records
    warm(made_model("Bloom", torch.float32))
    assert "they are padded" in caplog.text
