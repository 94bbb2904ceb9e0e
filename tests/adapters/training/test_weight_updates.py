"""Weights, moments and gradients in few bytes, and updates that are not lost in them."""

import math
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from torch import Tensor, nn

from adapters.training.models.exact_weights import Chances, divide, join, rounded
from adapters.training.models.supervised import passes
from adapters.training.models.weight_updates import WeightUpdates
from toolgym import ConfigurationError

pytestmark = pytest.mark.torch
CPU = torch.device("cpu")
MODES = ["exact", *(pytest.param(mode, marks=pytest.mark.nightly) for mode in ("half", "least"))]


def chances(*place: int) -> Chances:
    return Chances(0, CPU).named(*place)


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


def test_rounding_by_chance_keeps_the_mean_and_what_is_not_finite() -> None:
    numbers = any_numbers()
    found = rounded(numbers, chances(1))
    assert torch.equal(found.isnan(), numbers.isnan() & ~found.isinf())
    assert not bool(found[~numbers.isfinite()].isfinite().any())
    finite = found[numbers.isfinite()]
    assert torch.equal(finite.bfloat16().float(), finite)

    third = torch.full((400_000,), 1 + 2**-7 / 3)  # a third of the way from 1 to the next

    found = rounded(third, chances(2))
    assert set(found.tolist()) == {1.0, 1 + 2**-7}
    assert float(found.double().mean()) == pytest.approx(float(third[0]), abs=3e-5)
    assert torch.equal(found, rounded(third, chances(2)))
    assert not torch.equal(found, rounded(third, chances(3)))


def test_exact_updates_are_those_of_adamw_to_the_bit() -> None:
    torch.manual_seed(0)
    plain = [nn.Parameter(torch.randn(shape) * 0.02) for shape in ((300, 70), (17,), (1500, 900))]
    own = [nn.Parameter(each.detach().clone()) for each in plain]
    adam = torch.optim.AdamW(plain, 1e-3, betas=(0.9, 0.98), weight_decay=0.01)
    updates = WeightUpdates(own, "exact", (0.9, 0.98), 0.01)

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


@pytest.mark.parametrize("memory", MODES)
def test_small_updates_add_up_in_half_precision(memory: Any) -> None:
    """Each is a fiftieth of what bfloat16 tells apart at 1."""
    weights = nn.Parameter(torch.ones(64, 64, dtype=torch.bfloat16))
    updates = WeightUpdates([weights], memory, (0.9, 0.98))

    for _ in range(100):
        backward((weights.float() * 1e-3).sum())
        updates.step(2**-7 / 50, updates.norm()[0], 1.0)

    assert float(weights.detach().float().mean()) == pytest.approx(1 - 2 * 2**-7, abs=2**-8)


@pytest.mark.nightly
def test_the_gradients_of_many_passes_add_up_in_half_precision() -> None:
    """Without chance a sum of bfloat16 stands still where it is 256 times what is added."""
    weights = nn.Parameter(torch.ones(4000, dtype=torch.bfloat16))
    updates = WeightUpdates([weights], "half")

    for _ in range(1000):
        backward((weights.float() * 1.0).sum())

    total = updates.trained[0].grad
    assert total is not None
    assert total.dtype == torch.bfloat16
    assert float(total.float().mean()) == pytest.approx(1000, rel=3e-3)
    assert weights.grad is None


@pytest.mark.parametrize("memory", MODES)
def test_a_gradient_that_is_not_finite_is_seen_and_forgotten(memory: Any) -> None:
    weights = nn.Parameter(torch.ones(8, 8, dtype=torch.bfloat16))
    updates = WeightUpdates([weights], memory)

    for factor in (1.0, math.nan, 1.0):
        backward((weights.float() * factor).sum())
    assert updates.norm()[1] == 1
    updates.discard()

    assert updates.norm()[1] == 0
    assert (float(updates.norm()[0]), updates.nonfinite_weights()) == (0.0, 0)


def bytes_kept(memory: Any, dtype: torch.dtype) -> float:
    weights = nn.Parameter(torch.randn(1000, 1000).to(dtype))
    updates = WeightUpdates([weights], memory)
    backward((weights.float() ** 2).sum())
    gradient = updates.trained[0].grad
    assert gradient is not None
    taken = gradient.numel() * gradient.element_size()
    updates.step(1e-3, updates.norm()[0], 1.0)
    tensors = [weights, *updates.state().values()]
    return (taken + sum(each.numel() * each.element_size() for each in tensors)) / 1e6


def test_a_weight_takes_as_many_bytes_as_are_told() -> None:
    half = [bytes_kept(memory, torch.bfloat16) for memory in ("exact", "half", "least")]
    single = [bytes_kept(memory, torch.float32) for memory in ("exact", "half", "least")]

    assert half == pytest.approx([16, 10, 5], abs=0.02)
    assert single == pytest.approx([16, 12, 8], abs=0.02)


@pytest.mark.nightly
def test_a_factored_update_is_that_of_adafactor_with_a_rate_of_its_own() -> None:
    draw = torch.Generator().manual_seed(0)
    start, shape = torch.randn(40, 30, generator=draw), (40, 30)
    weights = nn.Parameter(start.clone())
    updates = WeightUpdates([weights], "least", (0.9, 0.98))
    rows, columns, expected = torch.zeros(40), torch.zeros(30), start.clone()

    for number in range(1, 4):
        gradient = torch.randn(shape, generator=draw) * 0.01
        weights.grad = gradient.clone()
        updates.step(1e-2, updates.norm()[0], 1.0)
        rows = 0.98 * rows + 0.02 * gradient.square().mean(dim=1)
        columns = 0.98 * columns + 0.02 * gradient.square().mean(dim=0)
        square = torch.outer(rows, columns) / rows.mean() / (1 - 0.98**number)
        update = gradient / square.sqrt()
        expected -= 1e-2 * update / max(1.0, float(update.square().mean().sqrt()))

        torch.testing.assert_close(weights.detach(), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.nightly
def test_experts_in_one_tensor_are_factored_one_by_one() -> None:
    together = nn.Parameter(torch.ones(3, 20, 10))
    apart = [nn.Parameter(torch.ones(20, 10)) for _ in range(3)]
    gradient = torch.randn(3, 20, 10, generator=torch.Generator().manual_seed(0))
    one, other = WeightUpdates([together], "least"), WeightUpdates(apart, "least")

    together.grad = gradient.clone()
    for each, own in zip(apart, gradient, strict=True):
        each.grad = own.clone()
    for updates in (one, other):
        updates.step(0.1, updates.norm()[0], 1.0)

    assert torch.equal(together.detach(), torch.stack([each.detach() for each in apart]))


def test_a_state_of_another_setting_is_refused() -> None:
    kept = {}
    for memory in ("half", "least"):
        weights = nn.Parameter(torch.ones(8, 8, dtype=torch.bfloat16))
        updates = WeightUpdates([weights], memory)
        backward(weights.float().sum())
        updates.step(1e-3, updates.norm()[0], 1.0)
        kept[memory] = updates.state()
    fresh = nn.Parameter(torch.ones(8, 8, dtype=torch.bfloat16))

    for one, other in (("half", "least"), ("least", "half")):
        with pytest.raises(ConfigurationError, match=f"not kept with memory='{other}'"):
            WeightUpdates([fresh], other).load(kept[one], 1)  # type: ignore[arg-type]


def test_a_pass_of_imitation_has_no_more_tokens_than_it_may() -> None:
    lengths = [50, 180, 52, 175, 400]
    divided = passes(lengths, 360)

    assert sorted(place for part in divided for place in part) == list(range(5))
    assert [4] in divided  # it alone has more
    for part in divided:
        assert len(part) == 1 or len(part) * max(lengths[place] for place in part) <= 360
