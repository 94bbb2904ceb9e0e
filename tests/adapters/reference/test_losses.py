"""The reference losses, against gradients that are known exactly."""

import math
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from torch import Tensor

from adapters.reference.losses import (
    LOSSES,
    Loss,
    LossConfig,
    Totals,
    loss_config,
    penalized_rewards,
    policy_loss,
)
from toolgym.errors import ConfigurationError

pytestmark = pytest.mark.torch

NAN = math.nan


def exact(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def relative(found: Tensor, true: Tensor) -> float:
    return ((found - true).norm() / true.norm()).item()


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
        self.old = old.log()[self.faces][:, None]
        self.mask = torch.ones(64, 1)

    def policy(self) -> Tensor:
        return self.weights.log_softmax(dim=0)

    def gradient(self, value: Tensor) -> Tensor:
        return torch.autograd.grad(value, self.weights)[0]

    def true_gradient(self) -> Tensor:
        """Of the divergence of the policy from the reference."""
        logs = self.policy()
        return self.gradient((logs.exp() * (logs - self.ref)).sum())

    def loss(self, config: LossConfig, advantages: Tensor | None = None) -> Loss:
        nothing = torch.zeros(64, dtype=torch.float64)
        return policy_loss(
            self.policy()[self.faces][:, None],
            self.old,
            nothing if advantages is None else advantages,
            self.mask,
            config=config,
            ref_logprobs=self.ref[self.faces][:, None],
        )


@pytest.mark.parametrize("aggregation", ["sample", "token"])
@pytest.mark.parametrize("estimate", ["k1", "k2", "k3"])
def test_on_a_fresh_batch_each_estimate_has_the_exact_expected_gradient(
    estimate: Any, aggregation: Any
) -> None:
    dice = Dice()

    found = dice.gradient(
        dice.loss(LossConfig(beta=1.0, kl=estimate, aggregation=aggregation)).value
    )

    assert relative(found, dice.true_gradient()) < 1e-12


@pytest.mark.parametrize("estimate", ["k1", "k3"])
def test_on_an_old_batch_those_with_the_ratio_stay_exact(estimate: Any) -> None:
    dice = Dice(is_fresh=False)

    found = dice.gradient(dice.loss(LossConfig(beta=1.0, kl=estimate)).value)

    assert relative(found, dice.true_gradient()) < 1e-12


@pytest.mark.parametrize("is_fresh", [True, False])
@pytest.mark.parametrize("estimate", ["k1", "k3"])
def test_the_reported_divergence_is_the_true_one(estimate: Any, is_fresh: bool) -> None:
    dice = Dice(is_fresh)
    logs = dice.policy()

    found = dice.loss(LossConfig(kl=estimate)).metrics["kl"]

    assert found.item() == pytest.approx((logs.exp() * (logs - dice.ref)).sum().item(), rel=1e-12)


def test_in_the_reward_the_divergence_has_the_exact_gradient_too_and_is_charged_once() -> None:
    dice = Dice()
    ref = dice.ref[dice.faces][:, None]
    nothing = torch.zeros(64, dtype=torch.float64)
    paid = penalized_rewards(nothing, dice.old, ref, dice.mask, beta=0.5, limit=10.0)

    loss = dice.loss(LossConfig(beta=0.5, kl_in_reward=True), advantages=paid)

    assert relative(dice.gradient(loss.value), 0.5 * dice.true_gradient()) < 1e-12
    assert torch.equal(loss.value.detach(), loss.metrics["policy_loss"])
    assert loss.metrics["kl"] > 0


def test_a_rollout_pays_for_its_own_tokens_and_an_unscored_one_stays_unscored() -> None:
    old, ref = torch.tensor([[1.0, 2.0], [0.0, 90.0]]), torch.tensor([[0.5, NAN], [0.5, 0.0]])

    paid = penalized_rewards(
        torch.tensor([1.0, NAN]), old, ref, torch.tensor([[1, 0], [1, 1]]), beta=0.1, limit=10.0
    )

    assert paid[0].item() == pytest.approx(0.95)
    assert paid[1].isnan()


@pytest.mark.parametrize("name", ["clip", "cispo"])
def test_the_gradient_of_a_fresh_batch_is_that_of_the_expected_reward(name: Any) -> None:
    dice = Dice()
    worth = exact(1, -2, 0.5, 3, -1, 0.25, 0, -0.5)
    true = dice.gradient((dice.policy().exp() * worth).sum())

    found = dice.loss(LossConfig(surrogate=name), advantages=worth[dice.faces])

    assert relative(-dice.gradient(found.value), true) < 1e-12


@pytest.mark.parametrize("estimate", ["k1", "k2", "k3"])
@pytest.mark.parametrize("gap", [-100.0, 100.0])
def test_a_token_far_from_the_reference_is_pulled_back_and_breaks_nothing(
    gap: float, estimate: Any
) -> None:
    logprobs = torch.tensor([[-101.0]], requires_grad=True)
    config = LossConfig(beta=1.0, kl=estimate)

    loss = policy_loss(
        logprobs,
        None,
        torch.zeros(1),
        torch.ones(1, 1),
        config=config,
        ref_logprobs=logprobs.detach() - gap,
    )
    loss.value.backward()

    assert loss.value.isfinite()
    assert logprobs.grad is not None
    pull = {"k1": math.copysign(10, gap) + 1}.get(estimate, math.copysign(10, gap))
    assert logprobs.grad.item() == pytest.approx(pull, rel=1e-2)


def of_one(ratio: float, advantage: float, config: LossConfig) -> tuple[float, float, Loss]:
    """Value and gradient (in log pi) of a single token whose ratio is given."""
    logprobs = exact(math.log(ratio) - 1)[None].requires_grad_()
    loss = policy_loss(logprobs, exact(-1)[None], exact(advantage), torch.ones(1, 1), config=config)
    loss.value.backward()
    assert logprobs.grad is not None
    return loss.value.item(), logprobs.grad.item(), loss


@pytest.mark.parametrize(
    ("ratio", "advantage", "changes", "gradient"),
    [
        (1.25, 1, {}, -1.25),
        (1.3, 1, {}, 0),
        (1.3, -1, {}, 1.3),
        (0.79, -1, {}, 0),
        (0.79, 1, {}, -0.79),
        (0.5, -1, {"epsilon_low": 1.0}, 0.5),
        (5.0, -2, {}, 10),
        (5.0, -2, {"dual_clip": 3.0}, 0),
        (2.9, -2, {"dual_clip": 3.0}, 5.8),
        (5.0, 2, {"dual_clip": 3.0}, 0),
    ],
)
def test_a_token_outside_its_bounds_has_no_gradient(
    ratio: float, advantage: float, changes: dict[str, Any], gradient: float
) -> None:
    value, found, loss = of_one(ratio, advantage, LossConfig(**changes))

    assert found == pytest.approx(gradient)
    shares = [loss.metrics.get(f"clip_{side}", 0) for side in ("low", "high", "dual")]
    assert sum(map(float, shares)) == (1 if gradient == 0 else 0)
    assert value * advantage < 0


@pytest.mark.parametrize(
    ("ratio", "weight", "side"), [(9.0, 5.0, "high"), (2.0, 2.0, ""), (0.5, 0.8, "low")]
)
@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_cispo_keeps_every_gradient_and_bounds_its_weight(
    ratio: float, weight: float, side: str, advantage: float
) -> None:
    _, found, loss = of_one(ratio, advantage, loss_config("cispo", epsilon_low=0.2))

    assert found == pytest.approx(-weight * advantage)
    assert [name for name in ("low", "high") if loss.metrics[f"clip_{name}"]] == [side] * bool(side)


def test_a_sequence_ratio_is_the_geometric_mean_of_the_tokens_that_count() -> None:
    logprobs = torch.log(exact(2, 0.5, 7, 1, 1, 1)).view(2, 3).requires_grad_()
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]])

    loss = policy_loss(logprobs, torch.zeros(2, 3), exact(1, 1), mask, config=loss_config("gspo"))
    loss.value.backward()

    assert loss.metrics["ratio"].item() == pytest.approx(1.0)
    assert loss.metrics["clip_high"] == 0
    expected = [[-0.25, -0.25, 0], [-1 / 6, -1 / 6, -1 / 6]]
    torch.testing.assert_close(logprobs.grad, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize(
    ("config", "gradient"),
    [
        (loss_config("grpo"), [[-1 / 2, 0, 0], [1 / 6, 1 / 6, 1 / 6]]),
        (loss_config("dapo"), [[-1 / 4, 0, 0], [1 / 4, 1 / 4, 1 / 4]]),
        (loss_config("dr_grpo", constant_length=10), [[-1 / 20, 0, 0], [1 / 20, 1 / 20, 1 / 20]]),
    ],
)
def test_what_counts_the_same_is_what_the_aggregation_says(
    config: LossConfig, gradient: list[list[float]]
) -> None:
    logprobs = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[1, 0, 0], [1, 1, 1], [0, 0, 0]])  # nothing of the third counts

    policy_loss(logprobs, None, exact(1, -1, 5), mask, config=config).value.backward()

    expected = torch.tensor([*gradient, [0, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(logprobs.grad, expected)


EVERY = {
    name: loss_config(name, beta=0.1, **({"constant_length": 9} if name == "dr_grpo" else {}))
    for name in LOSSES
}


class Batch:
    """Six rollouts of up to nine tokens with everything a loss may ask for."""

    def __init__(self) -> None:
        stream = torch.Generator().manual_seed(3)
        self.old, self.ref, self.entropy = torch.randn(
            3, 6, 9, generator=stream, dtype=torch.float64
        )
        moved = 0.3 * torch.randn(6, 9, generator=stream, dtype=torch.float64)
        self.logprobs = (self.old + moved).requires_grad_()
        self.advantages = torch.randn(6, generator=stream, dtype=torch.float64)
        lengths = torch.tensor([9, 4, 0, 7, 1, 5])
        self.mask = (torch.arange(9) < lengths[:, None]) & (torch.arange(9) != 2)

    def loss(
        self, config: LossConfig, rows: slice = slice(None), totals: Totals | None = None
    ) -> Loss:
        return policy_loss(
            self.logprobs[rows],
            self.old[rows],
            self.advantages[rows],
            self.mask[rows],
            config=config,
            ref_logprobs=self.ref[rows],
            entropy=self.entropy[rows],
            totals=totals,
        )

    def gradient(self) -> Tensor:
        found, self.logprobs.grad = self.logprobs.grad, None
        assert found is not None
        return found


@pytest.mark.parametrize("name", EVERY)
def test_losses_gradients_and_metrics_of_the_parts_add_up_to_those_of_the_step(name: str) -> None:
    batch = Batch()
    config = EVERY[name].model_copy(update={"entropy_bonus": 0.01})
    whole = batch.loss(config)
    whole.value.backward()
    gradient = batch.gradient()

    parts = [slice(0, 1), slice(1, 3), slice(3, 6)]
    totals = sum((Totals.of(batch.mask[part]) for part in parts), Totals(0, 0))
    losses = [batch.loss(config, part, totals) for part in parts]
    for loss in losses:
        loss.value.backward()

    torch.testing.assert_close(sum(loss.value for loss in losses), whole.value)
    torch.testing.assert_close(batch.gradient(), gradient)
    for metric, value in whole.metrics.items():
        torch.testing.assert_close(sum(loss.metrics[metric] for loss in losses), value)


@pytest.mark.parametrize("name", EVERY)
def test_the_average_over_processes_is_the_step_when_totals_are_shared_out(
    name: str,
) -> None:
    processes = 100  # of which all but two have nothing to learn from
    batch = Batch()
    whole = batch.loss(EVERY[name]).value
    share = Totals.of(batch.mask) / processes

    parts = [batch.loss(EVERY[name], rows, share).value for rows in (slice(0, 2), slice(2, 6))]

    torch.testing.assert_close(sum(parts) / processes, whole)


@pytest.mark.parametrize("name", EVERY)
def test_what_does_not_count_may_be_anything(name: str) -> None:
    batch = Batch()
    clean = batch.loss(EVERY[name])
    clean.value.backward()
    gradient = batch.gradient()

    spoilt = [batch.old, batch.ref, batch.entropy, batch.logprobs]
    for values, poison in zip(spoilt, (NAN, -math.inf, NAN, math.inf), strict=True):
        values.data[~batch.mask] = poison
    found = batch.loss(EVERY[name])
    found.value.backward()

    assert torch.equal(found.value, clean.value)
    assert torch.equal(batch.gradient(), gradient)
    assert all(metric.isfinite() for metric in found.metrics.values())


@pytest.mark.parametrize("name", EVERY)
def test_where_nothing_counts_loss_and_gradient_are_zero(name: str) -> None:
    batch = Batch()
    batch.mask = torch.zeros_like(batch.mask)

    loss = batch.loss(EVERY[name])
    loss.value.backward()

    assert loss.value == 0
    assert batch.gradient().abs().max() == 0


@pytest.mark.parametrize("name", EVERY)
def test_a_ratio_beyond_every_float_stays_finite(name: str) -> None:
    logprobs = torch.tensor([[0.0, -1.0]], requires_grad=True)
    config = EVERY[name].model_copy(update={"beta": 0.0})

    loss = policy_loss(
        logprobs, torch.tensor([[-500.0, -1.0]]), -torch.ones(1), torch.ones(1, 2), config=config
    )
    loss.value.backward()

    assert loss.value.isfinite()
    assert logprobs.grad is not None
    assert logprobs.grad.isfinite().all()
    assert loss.metrics["log_ratio_limited"] == (1.0 if config.ratio == "sequence" else 0.5)


def test_an_entropy_bonus_raises_the_entropy_per_token_whatever_the_aggregation() -> None:
    batch = Batch()
    batch.entropy.requires_grad_()
    for config in EVERY.values():
        batch.entropy.grad = None

        batch.loss(config.model_copy(update={"entropy_bonus": 0.5})).value.backward()

        expected = -0.5 * batch.mask / batch.mask.sum()
        torch.testing.assert_close(batch.entropy.grad, expected.double())


def test_what_has_no_price_cannot_spoil_the_loss() -> None:
    batch = Batch()
    batch.ref[0, 0] = batch.entropy[0, 0] = NAN

    loss = batch.loss(loss_config("dapo"))

    assert loss.value.isfinite()
    assert loss.metrics["kl"].isnan()
    assert loss.metrics["entropy"].isnan()


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("ppo", {}, r"no loss 'ppo'; choose among grpo, dapo, dr_grpo, gspo, cispo"),
        ("dr_grpo", {}, "give a length with 'constant'"),
        ("dapo", {"constant_length": 5}, "and only there"),
        ("cispo", {"dual_clip": 3.0}, "no meaning for 'cispo'"),
        ("dapo", {"dual_clip": 1.2}, r"dual_clip > 1 \+ epsilon_high does not hold: 1.2 <= 1.28"),
        ("dapo", {"kl_in_reward": True}, "kl_in_reward without beta"),
        ("dapo", {"epsilon": 0.2}, "epsilon: Extra inputs"),
        ("dapo", {"beta": NAN}, "beta: Input should be a finite number"),
    ],
)
def test_what_does_not_go_together_is_refused(
    name: str, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        loss_config(name, **changes)
