"""Losses of the reference trainer, against values and gradients that are known exactly."""

import math
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from torch import Tensor

from adapters.reference.losses import LOSSES, Pass, Totals, policy_loss
from adapters.training.settings import GrpoSettings
from toolgym.errors import ConfigurationError

pytestmark = pytest.mark.torch


def exact(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def loss_of(
    log_probs: Tensor, old: Tensor, advantages: Tensor, name: str = "dapo", **options: Any
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of rollouts of one token each, or of those in `rollout`."""
    rollout = options.pop("rollout", torch.arange(len(log_probs)))
    length = options.pop("max_length", 1)
    reference = options.pop("reference", None)
    config = GrpoSettings(loss=name, **{"beta": 0.0, **options})
    batch = Pass(log_probs, old, advantages, rollout)
    totals = Totals(len(rollout.unique()), len(log_probs), length)
    return policy_loss(batch, config, totals, reference=reference)


class Dice:
    """A policy over eight faces, and a batch that holds each as often as an older policy drew it.

    64 rollouts of one token, face k in `COUNTS[k]` of them: a mean over the batch is an expectation
    under the older policy, without any sampling error.
    """

    COUNTS = (1, 2, 3, 5, 8, 13, 16, 16)

    def __init__(self, is_fresh: bool = True) -> None:
        old = exact(*self.COUNTS) / 64
        moved = 0 if is_fresh else exact(0.9, -0.4, 0.2, 0.5, -0.3, 0.1, -0.6, 0.4)
        self.weights = (old.log() + moved).requires_grad_()
        self.ref = exact(3, 1, 4, 1, 5, 9, 2, 6).div(31).log()
        self.faces = torch.arange(8).repeat_interleave(torch.tensor(self.COUNTS))
        self.old = old.log()[self.faces]

    def policy(self) -> Tensor:
        return self.weights.log_softmax(dim=0)

    def gradient(self, value: Tensor) -> Tensor:
        return torch.autograd.grad(value, self.weights)[0]

    def loss(self, worth: Tensor, name: str, beta: float) -> tuple[Tensor, dict[str, Tensor]]:
        log_probs, reference = self.policy()[self.faces], self.ref[self.faces]
        return loss_of(log_probs, self.old, worth[self.faces], name, beta=beta, reference=reference)


@pytest.mark.parametrize("is_fresh", [True, False])
@pytest.mark.parametrize("name", ["grpo", "dapo", "dr_grpo", "cispo"])
def test_the_kl_penalty_and_its_gradient_are_exact_in_expectation(
    name: str, is_fresh: bool
) -> None:
    dice = Dice(is_fresh)
    logs = dice.policy()
    divergence = (logs.exp() * (logs - dice.ref)).sum()

    value, metrics = dice.loss(torch.zeros(8).double(), name, beta=1.0)

    assert metrics["kl"].item() == pytest.approx(divergence.item(), rel=1e-12)
    torch.testing.assert_close(
        dice.gradient(value), dice.gradient(divergence), rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("name", LOSSES)
def test_the_gradient_of_a_fresh_batch_is_that_of_the_expected_reward(name: str) -> None:
    dice = Dice()
    worth = exact(1, -2, 0.5, 3, -1, 0.25, 0, -0.5)
    expected = dice.gradient((dice.policy().exp() * worth).sum())

    value, metrics = dice.loss(worth, name, beta=0.0)

    torch.testing.assert_close(-dice.gradient(value), expected, rtol=1e-12, atol=1e-14)
    assert metrics["ratio"].item() == pytest.approx(1.0)
    assert metrics["mismatch"].item() == pytest.approx(0.0, abs=1e-15)


def test_the_mismatch_is_the_divergence_of_sampling_from_training() -> None:
    dice = Dice(is_fresh=False)
    old = exact(*Dice.COUNTS).div(64)

    _, metrics = dice.loss(torch.zeros(8).double(), "dapo", beta=0.0)

    expected = (old * (old.log() - dice.policy())).sum().item()
    assert metrics["mismatch"].item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("gap", [-100.0, 100.0])
def test_a_token_far_from_the_reference_is_pulled_back_and_breaks_nothing(gap: float) -> None:
    log_probs = torch.tensor([-101.0], requires_grad=True)
    there = log_probs.detach()

    value, _ = loss_of(log_probs, there, torch.zeros(1), beta=1.0, reference=there - gap)
    value.backward()

    assert value.isfinite()
    assert log_probs.grad is not None
    assert log_probs.grad.item() == pytest.approx(math.copysign(10, gap), rel=1e-2)


@pytest.mark.parametrize(
    ("name", "ratio", "advantage", "gradient", "clipped"),
    [
        ("dapo", 1.25, 1, -1.25, ""),
        ("dapo", 1.3, 1, 0, "high"),
        ("dapo", 1.3, -1, 1.3, ""),
        ("dapo", 0.79, -1, 0, "low"),
        ("dapo", 0.79, 1, -0.79, ""),
        ("grpo", 1.25, 1, 0, "high"),
        ("gspo", 1.001, 1, 0, "high"),
        ("cispo", 9.0, 1, -5.0, "high"),
        ("cispo", 9.0, -1, 5.0, ""),
        ("cispo", 2.0, -1, 2.0, ""),
        ("cispo", 0.01, -1, 0.01, ""),
    ],
)
def test_a_token_outside_its_bounds_loses_its_gradient_and_with_cispo_a_part_of_it(
    name: str, ratio: float, advantage: float, gradient: float, clipped: str
) -> None:
    log_probs = exact(math.log(ratio) - 1).requires_grad_()

    value, metrics = loss_of(log_probs, exact(-1), exact(advantage), name)
    value.backward()

    assert log_probs.grad is not None
    assert log_probs.grad.item() == pytest.approx(gradient)
    assert [side for side in ("low", "high") if metrics[f"clip_{side}"]] == [clipped] * (
        clipped != ""
    )


def test_bounds_of_the_config_replace_those_of_the_paper() -> None:
    log_probs = exact(math.log(0.5)).requires_grad_()

    value, _ = loss_of(log_probs, exact(0), exact(-1), epsilon_low=1.0)

    assert torch.autograd.grad(value, log_probs)[0].item() == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("grpo", [1 / 2, 1 / 6, 1 / 6, 1 / 6]),
        ("dapo", [1 / 4] * 4),
        ("dr_grpo", [1 / 20] * 4),
        ("cispo", [1 / 4] * 4),
        ("gspo", [1 / 2, 1 / 6, 1 / 6, 1 / 6]),
    ],
)
def test_tokens_or_rollouts_count_the_same_by_the_name_of_the_loss(
    name: str, weights: list[float]
) -> None:
    log_probs = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    rollout, advantages = torch.tensor([0, 1, 1, 1]), exact(1, -1, -1, -1)

    value, _ = loss_of(
        log_probs, log_probs.detach(), advantages, name, rollout=rollout, max_length=10
    )
    value.backward()

    torch.testing.assert_close(log_probs.grad, -advantages * exact(*weights))


def test_gspo_clips_the_geometric_mean_of_the_ratios_of_a_rollout() -> None:
    log_probs = torch.log(exact(2, 0.5, 1, 4, 1)).requires_grad_()
    rollout = torch.tensor([0, 0, 1, 1, 1])

    value, metrics = loss_of(log_probs, torch.zeros(5), torch.ones(5), "gspo", rollout=rollout)
    value.backward()

    torch.testing.assert_close(log_probs.grad, exact(-0.25, -0.25, 0, 0, 0))
    assert metrics["clip_high"].item() == pytest.approx(3 / 5)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_gradients_and_metrics_of_passes_add_up_to_those_of_the_step(name: str) -> None:
    draw = torch.Generator().manual_seed(3)
    lengths = torch.tensor([9, 4, 7, 1, 5])
    rollout = torch.arange(5).repeat_interleave(lengths)
    old, reference, moved = torch.randn(3, 26, generator=draw, dtype=torch.float64)
    entropy = torch.rand(26, generator=draw, dtype=torch.float64).requires_grad_()
    advantages = torch.randn(5, generator=draw, dtype=torch.float64)[rollout]
    log_probs = (old + 0.3 * moved).requires_grad_()
    config = GrpoSettings(loss=name, beta=0.1, entropy_bonus=0.5)

    def step(*parts: list[int]) -> Any:
        value: Any = 0.0
        metrics: dict[str, Any] = {}
        for rows in parts:
            here = torch.isin(rollout, torch.tensor(rows))
            own = torch.unique(rollout[here], return_inverse=True)[1]
            batch = Pass(log_probs[here], old[here], advantages[here], own)
            part, found = policy_loss(
                batch,
                config,
                Totals(5, 26, 9),
                reference=reference[here],
                entropy=entropy[here],
            )
            value = value + part
            metrics = {key: metrics.get(key, 0.0) + each for key, each in found.items()}
        return value, torch.autograd.grad(value, (log_probs, entropy)), metrics

    whole = step([0, 1, 2, 3, 4])

    torch.testing.assert_close(step([0], [1, 2], [3, 4]), whole)
    torch.testing.assert_close(whole[1][1], torch.full_like(entropy, -0.5 / 26))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("gap", [500.0, -500.0])
def test_a_ratio_beyond_every_float_stays_finite(name: str, gap: float) -> None:
    log_probs = torch.tensor([0.0, -1.0], requires_grad=True)
    old = torch.tensor([-gap, -1.0])

    value, metrics = loss_of(log_probs, old, -torch.ones(2), name)
    value.backward()

    assert value.isfinite()
    assert log_probs.grad is not None
    assert log_probs.grad.isfinite().all()
    assert all(metric.isfinite() for metric in metrics.values())


def test_a_loss_mixes_no_devices_and_waits_for_none() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        log_probs, old, advantages, reference = torch.randn(4, 6, device="lazy:0")
        rollout = torch.zeros(6, dtype=torch.long, device="lazy:0")
        batch = Pass(log_probs.requires_grad_(), old, advantages, rollout)
        config = GrpoSettings(loss="gspo", beta=0.1, entropy_bonus=0.1)
        value, metrics = policy_loss(
            batch, config, Totals(1.0, 6.0, 6), reference=reference, entropy=old
        )
        value.backward()

    assert {str(each.device) for each in metrics.values()} == {"lazy:0"}


def test_a_penalty_without_a_reference_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="pass reference log-probabilities"):
        loss_of(exact(-1), exact(-1), exact(1), beta=0.1)
