"""Decoding steps on a CPU that read the prompt of a group once."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch

from tests.toolgym.generation.random_models import plain_log_probs, random_model
from toolgym.generation import Engine, Generation, shared_prompts
from toolgym.generation.shared_prompts import can_share

pytestmark = pytest.mark.torch


@pytest.fixture
def for_any_size(monkeypatch: Any) -> None:
    monkeypatch.setattr(shared_prompts, "_SMALL", 0)
    monkeypatch.setattr(shared_prompts, "_LEAST", 3)


@pytest.mark.usefixtures("for_any_size")
@pytest.mark.parametrize("is_half", [False, True])
def test_log_probabilities_are_those_of_plain_forward_passes(
    is_half: bool, monkeypatch: Any
) -> None:
    attended: list[int] = []
    attend = shared_prompts._attend

    def noted(*args: Any, **options: Any) -> Any:
        attended.extend(group.common for group in shared_prompts._groups)
        return attend(*args, **options)

    shared_prompts.AttentionInterface.register("toolgym_shared_prompts", noted)
    model = random_model(num_attention_heads=6, hidden_size=48)
    if is_half:
        model = model.bfloat16()
    prompts = [[5, 6, 7, 8], [9, 10, 11, 12, 13, 14], [3], [4, 5, 6]]
    generations = [
        Generation(list(prompt), f"{place}-{member}", 8 + member)
        for place, prompt in enumerate(prompts)
        for member in range(1 if place > 1 else 5)
    ]
    Engine(model, stop=range(0, 300, 9)).generate(
        generations, lambda over: [[8, 9] if len(each.turns) < 2 else None for each in over],
        turn_tokens=3,
    )  # fmt: skip
    shared_prompts.AttentionInterface.register("toolgym_shared_prompts", attend)

    assert {*attended} >= {0, 3, 5}
    assert model.config._attn_implementation == "sdpa"
    for each in generations:
        expected = plain_log_probs(model, each)
        assert each.log_probs == pytest.approx(expected, abs=0.3 if is_half else 1e-4)


def test_only_large_models_with_plain_attention_share(monkeypatch: Any) -> None:
    assert not can_share(random_model())
    monkeypatch.setattr(shared_prompts, "_SMALL", 0)
    assert can_share(random_model())
    for family in ("Mistral", "Gemma3Text", "GptOss"):
        assert not can_share(random_model(family))
    assert can_share(random_model().to(torch.float64))
