"""Log-probabilities of learned tokens, compared with plain forward passes of each text alone."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("peft", reason="needs the extra `train`")

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from adapters.training.models import common_prefix, token_log_probs
from adapters.training.models.common_prefix import can_share, clusters
from adapters.training.models.low_rank import Adapter, lora_config
from adapters.training.models.master_weights import MasterAdamW
from adapters.training.models.token_log_probs import _rounded_up, like_lengths, passes
from adapters.training.models.tokenized_examples import Example
from tests.adapters.base_models import random_model
from tests.sweeps import sweep

pytestmark = pytest.mark.torch

WINDOWS: dict[str, Any] = {"sliding_window": 5, "head_dim": 16, "num_hidden_layers": 6}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "Llama": ("Llama", {}),
    "Llama, eager": ("Llama", {"attention": "eager"}),
    "Qwen 3, tied head": ("Qwen3", {"head_dim": 16, "tie_word_embeddings": True}),
    "Qwen 3, mixture of experts": ("Qwen3Moe", {"num_experts": 4, "num_experts_per_tok": 2}),
    "Gemma 2, softcaps": ("Gemma2", {**WINDOWS, "attention": "eager"}),
    "Gemma 3, windows in most layers": ("Gemma3Text", WINDOWS),
    "Mistral, windows in all layers": ("Mistral", {"sliding_window": 5}),
    "Cohere, scaled logits": ("Cohere", {"logit_scale": 0.1}),
    "gpt-oss, sinks": ("GptOss", {"sliding_window": 5, "head_dim": 8}),
    "GPT-2, learned positions": ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 2}),
    "Bloom, biases for positions": ("Bloom", {}),
}
TEMPERATURE = 0.7


def some_texts(seed: int = 0) -> list[Example]:
    """Groups of completions, whose prompts begin alike too, in any order; and texts apart."""
    draw = random.Random(seed)

    def some(length: int) -> list[int]:
        return [draw.randrange(3, 40) for _ in range(length)]

    tools, texts = some(7), [Example((5, 6, 7), (True, False, True))]
    for prompt in (tools + some(6), tools + some(9), some(5)):
        for length in (1, 4, 9, 2):
            turn, result, again = some(length), some(3), some(length)
            learn = [True] * length + [False] * 3 + [True] * length
            text = (*prompt, *turn, *result, *again)
            texts.append(Example(text, (*[False] * len(prompt), *learn)))
    draw.shuffle(texts)
    return texts


def naive(model: Any, texts: Sequence[Example]) -> tuple[Tensor, Tensor]:
    """The same from all logits of each text by itself."""
    log_probs, entropies = [], []
    for text in texts:
        ids = torch.tensor([text.ids])
        logits = model(input_ids=ids, use_cache=False).logits[0, :-1].double()
        tempered = torch.log_softmax(logits / TEMPERATURE, dim=-1)
        learned = torch.tensor(text.learn[1:])
        log_probs.append(tempered.gather(1, ids[0, 1:, None]).squeeze(1)[learned])
        entropies.append(-(tempered.exp() * tempered).sum(dim=1)[learned])
    return torch.cat(log_probs), torch.cat(entropies)


def gradients(model: Any, values: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
    log_probs, entropies = values
    weights = torch.linspace(-1, 1, len(log_probs), dtype=log_probs.dtype)
    model.zero_grad()
    loss: Any = (log_probs * weights).sum() + 0.1 * entropies.sum()
    loss.backward()
    return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


def assert_same(model: Any, texts: Sequence[Example], tolerance: float) -> None:
    """Hold values and gradients to those of the plain forward passes."""
    found = token_log_probs.token_log_probs(model, texts, temperature=TEMPERATURE, entropy=True)
    wanted = naive(model, texts)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        assert float((one - other).detach().abs().max()) <= tolerance * float(
            other.detach().abs().max()
        )
    ours, plain = gradients(model, found), gradients(model, wanted)
    assert ours.keys() == plain.keys()
    for name, gradient in plain.items():
        error = float((ours[name] - gradient).norm())
        assert error <= tolerance * float(gradient.norm()) + 1e-9, name


def made_model(name: str) -> Any:
    family, options = MODELS[name]
    only_float32 = family in ("Qwen3Moe", "GptOss")
    return random_model(family, torch.float32 if only_float32 else torch.float64, **options)


def share(model: Any, monkeypatch: pytest.MonkeyPatch, least: int = 4) -> None:
    """Let a small model read short beginnings once."""
    monkeypatch.setattr(common_prefix, "_SMALL", 1)
    monkeypatch.setattr(common_prefix, "LEAST", least)
    assert can_share(model)


@pytest.mark.parametrize("at_once", [2**24, 100])
@pytest.mark.parametrize("name", sweep(MODELS, ["Llama", "Gemma 2, softcaps"]))
def test_learned_tokens_have_the_log_probabilities_entropies_and_gradients_of_all_logits(
    name: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(token_log_probs.LOGITS_AT_ONCE, "cpu", at_once)
    model = made_model(name)
    tolerance = 1e-6 if model.dtype == torch.float64 else 2e-5

    assert_same(model, some_texts(), tolerance)


@pytest.mark.parametrize(
    "name", sweep(MODELS, ["Qwen 3, tied head", "Mistral, windows in all layers"])
)
def test_a_beginning_that_is_read_once_changes_no_value_and_no_gradient(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, texts = made_model(name), some_texts()
    read: set[tuple[int, ...]] = set()
    model.get_input_embeddings().register_forward_pre_hook(
        lambda module, given: read.add(tuple(given[0].shape))
    )
    share(model, monkeypatch)
    read.clear()
    tolerance = 1e-6 if model.dtype == torch.float64 else 2e-5

    assert_same(model, texts, tolerance)

    assert {(1, 12), (1, 15), (1, 4)} <= read  # prompts without the token that predicts


@pytest.mark.parametrize("shares", [False, True])
def test_an_adapter_has_the_same_gradient_too(
    shares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = random_model("Qwen3", torch.float64, head_dim=16)
    Adapter(model, lora_config(4, 8, "all-linear"))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0, 0.1)
    if shares:
        share(model, monkeypatch)

    assert_same(model.double(), some_texts(), 1e-6)


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("tokens", [1, 60, 10**6])
def test_each_text_with_a_learned_token_is_in_one_pass(
    tokens: int, shares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, texts = made_model("Llama"), some_texts()
    texts.insert(3, Example((5, 6, 7), (True, False, False)))
    if shares:
        share(model, monkeypatch)

    divided = passes(texts, tokens, model)

    assert sorted(p for part in divided for p in part) == [p for p in range(len(texts)) if p != 3]
    if tokens == 1:
        assert {len(part) for part in divided} == {1}
    if tokens is None and shares:
        assert len(divided) == 1


def test_clusters_share_the_most_and_nothing_that_is_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def text(words: str, learned: int) -> Example:
        return Example(tuple(map(ord, words)), (False,) * learned + (True,) * 2)

    texts = [text("aaaabbbbbb1x", 10), text("aaaabbbbbb2x", 10), text("aaaacc1x", 6)]
    texts.append(text("zz1", 1))
    monkeypatch.setattr(common_prefix, "LEAST", 3)

    assert [tuple(each) for each in clusters(texts)] == [([0, 1], 9), ([3, 2], 0)]
    assert [tuple(each) for each in clusters(texts[1:])] == [([1, 0], 4), ([2], 0)]
    monkeypatch.setattr(common_prefix, "LEAST", 10)
    assert [tuple(each) for each in clusters(texts)] == [([3, 2, 0, 1], 0)]


def test_a_model_whose_cache_does_not_is_padded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(common_prefix, "_SMALL", 1)
    forgetful = made_model("Llama")
    cache = ("past_key_values", "cache")  # the names before and since transformers 5.24
    forgetful.model.layers[0].self_attn.register_forward_pre_hook(
        lambda module, args, named: (args, {**named, **dict.fromkeys({*cache} & {*named})}),
        with_kwargs=True,
    )

    assert not can_share(forgetful)
    assert "cannot read a common prefix once" in caplog.text


def test_small_models_and_those_with_checkpointing_are_padded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = made_model("Llama")
    assert not can_share(model)
    monkeypatch.setattr(common_prefix, "_SMALL", 1)
    model = made_model("Llama")
    assert can_share(model)
    model.activation_checkpointing_enable()
    assert not can_share(model)


def test_on_cuda_few_shapes_occur_and_little_is_padded() -> None:
    sizes = {_rounded_up(size) for size in range(1, 4097)}

    assert len(sizes) <= 80
    assert all(size <= _rounded_up(size) <= 1.125 * size for size in range(1, 4097))


def test_batches_of_similar_lengths_keep_the_limit_unless_a_single_row_exceeds_it() -> None:
    draw = random.Random(0)
    for _ in range(100):
        lengths = [draw.randint(1, 400) for _ in range(draw.randint(1, 20))]
        batches = like_lengths(lengths, 360, 128)
        assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
        for batch in batches:
            assert len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= 360


@pytest.mark.integration
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_pass_and_an_update_stay_on_the_device_and_do_not_wait_for_it(dtype: torch.dtype) -> None:
    """A fake device refuses to mix with another one and to tell a value to the host."""
    with FakeTensorMode():
        with torch.device("lazy:0"):
            model = random_model("Llama", dtype)
        optimizer = MasterAdamW(model.parameters())
        log_probs, _ = token_log_probs.token_log_probs(model, some_texts())
        log_probs.sum().backward()  # type: ignore[no-untyped-call]
        assert {gradient.device.type for gradient in optimizer.gradients()} == {"lazy"}
        optimizer.step(1e-3, log_probs.detach().sum(), 1.0)

        with pytest.raises(DataDependentOutputException, match="scalar"):
            log_probs.sum().item()
    assert {parameter.device.type for parameter in model.parameters()} == {"lazy"}
