"""Adapters of low rank: training them, playing with them merged, and taking them out."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("peft", reason="needs the extra `train`")

import torch

from adapters.training.models.low_rank import Adapter, lora_config
from adapters.training.models.master_weights import MasterAdamW
from tests.adapters.base_models import random_model
from toolgym import ConfigurationError

pytestmark = pytest.mark.torch

IDS = torch.arange(3, 40)[None]


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(input_ids=IDS, use_cache=False).logits
    return found


def moved(model: Any) -> Any:
    """The model with an adapter that adds something."""
    torch.manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0, 0.1)
    return model


def test_an_adapter_is_all_that_is_trained_and_without_it_the_model_is_as_before() -> None:
    model = random_model(dtype=torch.bfloat16)
    before = logits(model)
    adapter = Adapter(model, lora_config(4, 8, "all-linear"), seed=1)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}

    assert torch.equal(logits(model), before)
    assert trained == {name for name, _ in model.named_parameters() if "lora_" in name}
    assert {p.dtype for p in model.parameters() if p.requires_grad} == {torch.float32}
    adapted = logits(moved(model))
    with adapter.disabled() as reference:
        assert torch.equal(logits(reference), before)
    adapter.merge()

    assert not torch.equal(adapted, before)
    assert float((logits(model) - adapted).abs().max() / adapted.std()) < 0.2
    assert not [name for name, _ in model.named_parameters() if "lora_" in name]
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.2)])
def test_merged_weights_compute_what_the_adapter_does_and_are_restored_to_the_bit(
    dtype: torch.dtype, tolerance: float
) -> None:
    model = random_model(dtype=dtype)
    adapter = Adapter(model, lora_config(4, 8, "all-linear"))
    adapted = logits(moved(model))
    optimizer = MasterAdamW(p for p in model.parameters() if p.requires_grad)
    loss: Any = model(input_ids=IDS).logits.float().square().mean()
    loss.backward()
    before = {n: (p.data_ptr(), p.detach().clone()) for n, p in model.named_parameters()}
    gradients = [gradient.clone() for gradient in optimizer.gradients()]

    with adapter.merged() as merged:
        assert all(p.data_ptr() == before[n][0] for n, p in merged.named_parameters())
        assert float((logits(merged) - adapted).abs().max() / adapted.std()) < tolerance

    for name, parameter in model.named_parameters():
        assert parameter.data_ptr() == before[name][0]
        assert torch.equal(parameter, before[name][1])
    assert torch.equal(logits(model), adapted)
    for one, other in zip(gradients, optimizer.gradients(), strict=True):
        assert torch.equal(one, other)


def test_a_removed_adapter_leaves_the_model_as_it_was() -> None:
    model = random_model(dtype=torch.bfloat16)
    names, before = list(model.state_dict()), logits(model)

    Adapter(model, lora_config(4, 8, "all-linear")).remove()

    assert list(model.state_dict()) == names
    assert torch.equal(logits(model), before)


def test_layers_that_a_model_does_not_have_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="invalid --set lora_targets"):
        Adapter(random_model(), lora_config(4, 8, ["nowhere"]))
