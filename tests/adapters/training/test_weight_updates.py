"""Weights of a model in half precision, and updates that are not lost in them."""

import math
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from torch import Tensor, nn

from adapters.training.models.exact_weights import divide, join
from adapters.training.models.supervised import passes
from adapters.training.models.weight_updates import WeightUpdates

pytestmark = pytest.mark.torch


def backward(loss: Any) -> None:
    loss.backward()


def any_numbers() -> Tensor:
    """Float32 numbers of all bits, those that stand halfway between two others among them."""
    draw = torch.Generator().manual_seed(0)
    bits = torch.randint(-(2**31), 2**31, (200_000,), generator=draw)
    halfway = (torch.arange(-(2**15), 2**15) << 16) | 0x8000
    special = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan])
    return torch.cat([torch.cat([bits, halfway]).int().view(torch.float32), special])


def test_a_divided_weight_comes_back_to_the_bit() -> None:
    numbers = any_numbers()

    weights, missing = divide(numbers)
    again = join(weights, missing)

    same = again.view(torch.int32) == numbers.view(torch.int32)
    assert bool((same | (numbers.isnan() & again.isnan() & weights.isnan())).all())
    finite = numbers.isfinite() & weights.isfinite()
    step = (weights.float() - numbers).abs()[finite]
    assert bool((step <= (numbers.bfloat16().float() - numbers).abs()[finite]).all())


def test_exact_updates_are_those_of_adamw_to_the_bit() -> None:
    torch.manual_seed(0)
    plain = [nn.Parameter(torch.randn(shape) * 0.02) for shape in ((300, 70), (17,), (1500, 900))]
    own = [nn.Parameter(each.detach().clone()) for each in plain]
    adam = torch.optim.AdamW(plain, 1e-3, betas=(0.9, 0.98), weight_decay=0.01)
    updates = WeightUpdates(own, (0.9, 0.98), 0.01)

    for number in range(1, 4):
        for one, other in zip(plain, own, strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        norm = torch.nn.utils.clip_grad_norm_(plain, 1.0)
        adam.param_groups[0]["lr"] = 1e-3 / number
        adam.step()
        assert torch.equal(updates.norm()[0], norm)
        updates.step(1e-3 / number, norm, 1.0)

        assert all(torch.equal(one, other) for one, other in zip(plain, own, strict=True))


def test_small_updates_add_up_in_half_precision() -> None:
    """Each is a fiftieth of what bfloat16 tells apart at 1."""
    weights = nn.Parameter(torch.ones(64, 64, dtype=torch.bfloat16))
    updates = WeightUpdates([weights], (0.9, 0.98))

    for _ in range(100):
        backward((weights.float() * 1e-3).sum())
        updates.step(2**-7 / 50, updates.norm()[0], 1.0)

    assert float(weights.detach().float().mean()) == pytest.approx(1 - 2 * 2**-7, abs=2**-8)


@pytest.mark.nightly
def test_the_gradients_of_many_passes_add_up_in_half_precision() -> None:
    """A sum of bfloat16 stands still where it is 256 times what is added."""
    weights = nn.Parameter(torch.ones(4000, dtype=torch.bfloat16))
    updates = WeightUpdates([weights])

    for _ in range(1000):
        backward((weights.float() * 1.0).sum())

    total = updates.trained[0].grad
    assert total is not None
    assert total.tolist() == [1000.0] * 4000
    assert weights.grad is None


def test_a_gradient_that_is_not_finite_is_seen_and_forgotten() -> None:
    weights = nn.Parameter(torch.ones(8, 8, dtype=torch.bfloat16))
    updates = WeightUpdates([weights])

    for factor in (1.0, math.nan, 1.0):
        backward((weights.float() * factor).sum())
    assert updates.norm()[1] == 1
    updates.discard()

    assert updates.norm()[1] == 0
    assert (float(updates.norm()[0]), updates.nonfinite_weights()) == (0.0, 0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_weight_takes_as_many_bytes_as_are_told(dtype: torch.dtype) -> None:
    weights = nn.Parameter(torch.randn(1000, 1000).to(dtype))
    updates = WeightUpdates([weights])
    backward((weights.float() ** 2).sum())
    gradient = updates.trained[0].grad
    assert gradient is not None
    taken = gradient.numel() * gradient.element_size()
    updates.step(1e-3, updates.norm()[0], 1.0)
    tensors = [weights, *updates.state().values()]
    assert taken + sum(each.numel() * each.element_size() for each in tensors) == 16_000_000


def test_a_pass_of_imitation_has_no_more_tokens_than_it_may() -> None:
    lengths = [50, 180, 52, 175, 400]
    divided = passes(lengths, 360)

    assert sorted(place for part in divided for place in part) == list(range(5))
    assert [4] in divided  # it alone has more
    for part in divided:
        assert len(part) == 1 or len(part) * max(lengths[place] for place in part) <= 360
