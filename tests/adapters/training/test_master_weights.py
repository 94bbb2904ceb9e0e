"""AdamW with float32 master weights: exact, resumable, and without trace of a discarded step."""

import math
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from adapters.training.models.master_weights import MasterAdamW
from toolgym import ConfigurationError

pytestmark = pytest.mark.torch

BETAS = (0.9, 0.98)


def backward(loss: Any) -> None:
    loss.backward()


def some_weights(dtype: torch.dtype) -> list[nn.Parameter]:
    torch.manual_seed(0)
    shapes = ((300, 70), (17,), (150, 90))
    return [nn.Parameter((torch.randn(shape) * 0.02).to(dtype)) for shape in shapes]


def some_passes(weights: list[nn.Parameter], step: int, count: int = 3) -> list[Tensor]:
    """Several backward passes; returns the exact sum of their gradients."""
    draw = torch.Generator().manual_seed(step)
    sums = [torch.zeros_like(weight, dtype=torch.float32) for weight in weights]
    for _ in range(count):
        factors = [torch.randn(w.shape, generator=draw).to(w.dtype) for w in weights]
        backward(sum((w * f).float().sum() for w, f in zip(weights, factors, strict=True)))
        for total, factor in zip(sums, factors, strict=True):
            total.add_(factor)
    return sums


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_updates_are_those_of_pytorch_on_float32_weights_to_the_bit(dtype: torch.dtype) -> None:
    weights = some_weights(dtype)
    exact = [nn.Parameter(weight.detach().float()) for weight in weights]
    adam = torch.optim.AdamW(exact, betas=BETAS, weight_decay=0.01)
    own = MasterAdamW(weights, betas=BETAS, weight_decay=0.01)

    for step in range(1, 4):
        for one, gradient in zip(exact, some_passes(weights, step), strict=True):
            one.grad = gradient
        norm = nn.utils.clip_grad_norm_(exact, 1.0)
        adam.param_groups[0]["lr"] = 1e-3 / step
        adam.step()
        assert torch.equal(own.norm()[0], norm)
        own.step(1e-3 / step, norm, 1.0)

        for one, weight in zip(exact, weights, strict=True):
            assert torch.equal(one.to(dtype), weight)
            assert weight.grad is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_training_that_is_resumed_goes_on_to_the_bit(dtype: torch.dtype) -> None:
    def train(interrupted: bool) -> list[nn.Parameter]:
        weights = some_weights(dtype)
        own = MasterAdamW(weights, betas=BETAS, weight_decay=0.01)
        for step in range(1, 7):
            if interrupted and step == 4:
                saved = save(own.state_dict())
                weights = [nn.Parameter(weight.detach().clone()) for weight in weights]
                own = MasterAdamW(weights, betas=BETAS, weight_decay=0.01)
                own.load_state_dict(load(saved))
            some_passes(weights, step)
            own.step(1e-3, own.norm()[0], 1.0)
        return weights

    for one, other in zip(train(False), train(True), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_discarded_step_leaves_no_trace(dtype: torch.dtype) -> None:
    def train(bad_steps: tuple[int, ...]) -> tuple[list[nn.Parameter], dict[str, Tensor]]:
        weights = some_weights(dtype)
        own = MasterAdamW(weights, betas=BETAS)
        for step in range(1, 5):
            if step in bad_steps:
                backward((weights[0].float() * math.nan).sum())
                assert own.norm()[1] == 1
                own.discard()
                assert (float(own.norm()[0]), own.norm()[1], own.nonfinite_weights()) == (0, 0, 0)
            some_passes(weights, step)
            own.step(1e-3, own.norm()[0], 1.0)
        return weights, own.state_dict()

    plain, disturbed = train(()), train((1, 3))

    for one, other in zip(plain[0], disturbed[0], strict=True):
        assert torch.equal(one, other)
    assert all(torch.equal(value, disturbed[1][name]) for name, value in plain[1].items())


def test_the_gradients_of_many_passes_add_up_in_half_precision() -> None:
    """A sum of bfloat16 stops growing at 256 times what is added."""
    weights = nn.Parameter(torch.ones(40, dtype=torch.bfloat16))
    own = MasterAdamW([weights])

    for _ in range(400):
        backward((weights.float() * 1.0).sum())

    assert own.gradients()[0].tolist() == [400.0] * 40
    assert weights.grad is None


def test_a_closed_optimizer_leaves_gradients_to_the_next() -> None:
    weights = some_weights(torch.bfloat16)
    own = MasterAdamW(weights)
    own.close()

    backward(weights[0].float().sum())

    assert weights[0].grad is not None


def test_weights_of_other_types_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="float16 cannot be trained"):
        MasterAdamW(some_weights(torch.float16))
