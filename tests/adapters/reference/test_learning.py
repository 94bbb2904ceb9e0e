"""Gradients, updates and numbers of the reference trainer, held against the plain way."""

import dataclasses
import math
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from torch import Tensor

from adapters.reference.advantages import compute_advantages
from adapters.reference.config import ReferenceConfig, reference_config
from adapters.reference.kl_reference import CopiedReference
from adapters.reference.learner import Learner
from adapters.reference.losses import policy_loss
from adapters.reference.optimizer import Optimizer
from adapters.reference.rollout import Batch, Ending, Request, Rollout
from adapters.training.algorithms.rollout_metrics import Figures, batch_metrics
from adapters.training.guards.fault_limit import FaultLimit
from tests.adapters.base_models import random_model
from toolgym import ConfigurationError, EnvironmentFault, Outcome
from toolgym.rollout import EpisodeRecord
from toolgym.runs.metrics import METRICS

pytestmark = pytest.mark.torch


def made_model(family: str = "Llama", dtype: Any = torch.float64) -> Any:
    return random_model(family, dtype, "eager" if family == "Gemma2" else None)


def episode(correct: bool, progress: int = 0) -> EpisodeRecord:
    turns = ({"calls": [{}], "errors": [], "repairs": [], "valid": True, "reward": 0.0},)
    return EpisodeRecord("e", "t", 0, "?", turns, 0.0, correct, True, True, progress, {})


def make_rollouts(seed: int = 0, count: int = 6) -> list[Rollout]:
    """Ragged ones with made-up log-probabilities, two turns each, in groups of two."""
    draw = torch.Generator().manual_seed(seed)

    def tokens(low: int, high: int) -> list[int]:
        length = int(torch.randint(low, high, (1,), generator=draw))
        return torch.randint(3, 40, (length,), generator=draw).tolist()

    rollouts = []
    for number in range(count):
        first, told, second = tokens(1, 9), tokens(2, 7), tokens(1, 12)
        mask = [1] * len(first) + [0] * len(told) + [1] * len(second)
        noise = torch.rand(len(mask), generator=draw).tolist()
        rollouts.append(
            Rollout(
                Request("t", number // 2, str(number)),
                tokens(2, 14),
                first + told + second,
                mask,
                [-1.0 - 4 * p if bit else 0.0 for p, bit in zip(noise, mask, strict=True)],
                [(0, len(first)), (len(first) + len(told), len(mask))],
                [0.25 * (number % 3), 0.5],
                0.5 + 0.25 * (number % 3),
                Ending.ANSWERED,
                episode(number % 2 == 0),
            )
        )
    return rollouts


def config(**options: Any) -> ReferenceConfig:
    return reference_config({"group_size": 2, "prompts": 3, "learning_rate": 1e-3, **options})


def plain_log_probs(model: Any, batch: Batch, temperature: float) -> tuple[Tensor, Tensor]:
    """Log-probabilities and entropies [N, T], a rollout at a time, with full logits."""
    shape = batch.tokens.shape
    log_probs, entropy = torch.zeros(shape).double(), torch.zeros(shape).double()
    for row, prompt in enumerate(batch.prompts):
        length = int(batch.lengths[row])
        ids = torch.tensor([prompt + batch.tokens[row, :length].tolist()])
        spread = torch.log_softmax(model(input_ids=ids).logits[0] / temperature, dim=1)
        predicting = spread[len(prompt) - 1 : -1]
        log_probs[row, :length] = predicting.gather(1, ids[0, len(prompt) :, None]).squeeze(1)
        entropy[row, :length] = -(predicting.exp() * predicting).sum(dim=1)
    return log_probs, entropy


@pytest.mark.parametrize(
    ("family", "tokens_per_pass"),
    [
        ("Llama", 1),
        ("Llama", 10_000),
        ("Gemma2", 40),
        ("Cohere", 40),
        ("GPT2", 40),
        pytest.param("Granite", 40, marks=pytest.mark.nightly),
    ],
)
def test_the_gradient_is_that_of_the_plain_way(family: str, tokens_per_pass: int) -> None:
    settings = config(
        temperature=0.7,
        tokens_per_pass=tokens_per_pass,
        loss={"name": "grpo", "beta": 0.1, "entropy_bonus": 0.05, "epsilon_low": 0.4},
    )
    model, counts = made_model(family), [True, True, False, True, True, True]
    batch = Batch.of(make_rollouts(), counts)
    reference, advantages = torch.full(batch.tokens.shape, -3.0), torch.linspace(-1, 1, 6)
    log_probs, entropy = plain_log_probs(model, batch, 0.7)
    expected = policy_loss(
        log_probs,
        batch.log_probs,
        advantages,
        batch.loss_mask,
        config=settings.loss,
        ref_logprobs=reference,
        entropy=entropy,
    )
    expected.value.backward()
    wanted = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()

    found = Learner(model, None, settings).accumulate(batch, advantages, batch.log_probs, reference)

    assert found["loss"] == pytest.approx(float(expected.value.detach()), rel=1e-9)
    assert found["entropy"] == pytest.approx(float(expected.metrics["entropy"]), rel=1e-9)
    assert found["clip_low"] + found["clip_high"] > 0.05
    for name, parameter in model.named_parameters():
        if name in wanted:
            difference = (parameter.grad - wanted[name]).norm()
            assert float(difference) <= 1e-6 * float(wanted[name].norm()) + 1e-15, name


@pytest.mark.parametrize("updates", [1, 2])
def test_narrow_bounds_take_no_gradient_from_a_fresh_batch(updates: int) -> None:
    """Recorded ones are off by the rounding of another way to compute, more than GSPO allows."""
    model, batch = made_model(), Batch.of(make_rollouts(), [True] * 6)
    exact = plain_log_probs(model, batch, 1.0)[0].detach()
    noise = 0.01 * torch.randn(exact.shape, generator=torch.Generator().manual_seed(1))
    batch = dataclasses.replace(batch, log_probs=(exact + noise) * batch.loss_mask)
    clipped = {}
    for old in ("recorded", "computed"):
        loss = {"name": "gspo", "old_log_probs": old}
        learner = Learner(model, None, config(loss=loss, updates_per_batch=updates))
        found = learner.accumulate(
            batch, torch.linspace(-1, 1, 6), learner.old_log_probs(batch), None
        )
        clipped[old] = found["clip_low"] + found["clip_high"]

    assert clipped["recorded"] > 0.2
    assert clipped["computed"] == 0.0
    assert config(loss="gspo").loss.old_log_probs == "computed"


def test_entropy_without_a_bonus_has_no_gradient() -> None:
    rollouts = make_rollouts()
    grads = []
    for beta in (0.0, 0.05):
        model = made_model()
        settings = config(loss={"name": "dapo", "entropy_bonus": beta})
        Learner(model, None, settings).accumulate(
            Batch.of(rollouts, [True] * 6), torch.zeros(6), None, None
        )
        grads.append(sum(float(p.grad.abs().sum()) for p in model.parameters()))

    assert grads[0] == 0.0
    assert grads[1] > 0.0


def test_reference_log_probs_stand_at_learnt_tokens_only() -> None:
    model, settings = made_model(), config(temperature=0.9, tokens_per_pass=30)
    batch = Batch.of(make_rollouts(), [True] * 5 + [False])

    found = Learner(model, CopiedReference(model), settings).reference_log_probs(batch)

    expected = plain_log_probs(model, batch, 0.9)[0].detach() * batch.loss_mask
    assert found is not None
    torch.testing.assert_close(found.double(), expected, atol=1e-6, rtol=0)
    assert Learner(model, None, settings).reference_log_probs(batch) is None


def test_every_rollout_that_counts_is_in_one_pass_and_no_pass_is_too_large() -> None:
    batch = Batch.of(make_rollouts(count=20), [number % 4 != 0 for number in range(20)])

    parts = list(batch.passes(60))

    rows = [row for part in parts for row in part.rows]
    assert sorted(rows) == [number for number in range(20) if number % 4]
    assert all(part.ids.numel() <= 60 or len(part.rows) == 1 for part in parts)
    for part in parts:
        places = part.predicts.roll(1, dims=1)
        assert part.ids[places].tolist() == [
            token
            for row in part.rows
            for token, loss_mask in zip(batch.tokens[row], batch.loss_mask[row], strict=True)
            if loss_mask
        ]


def test_groups_without_a_counting_rollout_stay_out_of_the_statistics() -> None:
    rollouts = make_rollouts()
    alone = [
        dataclasses.replace(r, reward=reward) for r, reward in zip(rollouts, range(6), strict=True)
    ]
    wild = [dataclasses.replace(r, reward=r.reward * 1000) for r in alone[4:]]
    settings = config(advantages="batch_normalized_baseline")
    counts = [True, True, True, False, False, False]

    few = compute_advantages(Batch.of(alone[:4], counts[:4]), None, settings)
    many = compute_advantages(Batch.of([*alone[:4], *wild], counts), None, settings)

    assert many[:4].tolist() == pytest.approx(few.tolist())
    assert few[3] > 0  # left out of the loss, and still what the other is compared with
    assert many[4:].tolist() == [0.0, 0.0]


def test_turn_level_advantages_reach_the_tokens_of_their_turn() -> None:
    rollouts = make_rollouts()
    batch = Batch.of(rollouts, [True] * 6)

    advantages = compute_advantages(
        batch, None, config(advantages="turn_centered", advantage_limit=None)
    )

    assert advantages.shape == batch.tokens.shape
    for row, rollout in enumerate(rollouts):
        for start, end in rollout.turns:
            assert len(set(advantages[row, start:end].tolist())) == 1
    between = batch.turn_of_token < 0
    assert advantages[between].abs().max() == 0


def test_divergence_in_the_reward_is_taken_off_before_comparing() -> None:
    batch = Batch.of(make_rollouts(), [True] * 6)
    settings = config(
        advantages="group_centered",
        advantage_limit=None,
        loss={"name": "grpo", "beta": 0.5, "kl_in_reward": True},
    )
    reference = batch.log_probs.clone()
    reference[0] -= batch.loss_mask[0] * 0.1

    advantages, untouched = (
        compute_advantages(batch, r, settings) for r in (reference, batch.log_probs)
    )

    expected = -0.5 * 0.1 * float(batch.loss_mask[0].sum()) / 2
    assert float(advantages[0] - untouched[0]) == pytest.approx(expected, rel=1e-5)


def test_half_precision_loses_no_small_update() -> None:
    shape = {"num_hidden_layers": 1}
    coarse, fine = (random_model("Llama", d, **shape) for d in (torch.bfloat16, torch.float32))
    with torch.no_grad():
        for one, other in zip(fine.parameters(), coarse.parameters(), strict=True):
            one.copy_(other)
    settings = config(learning_rate=1e-5)
    start = [p.detach().clone() for p in coarse.parameters()]
    for model in (coarse, fine):
        optimizer = Optimizer(model, settings)
        for _ in range(40):
            for parameter in model.parameters():
                (parameter * 2**-10).sum().backward()
            optimizer.step(1e-5, optimizer.gradient()[0])

    for own, exact in zip(coarse.parameters(), fine.parameters(), strict=True):
        assert torch.equal(own, exact.to(torch.bfloat16))
    assert any(
        not torch.equal(own, old) for own, old in zip(coarse.parameters(), start, strict=True)
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_discarded_gradient_leaves_no_trace(dtype: Any) -> None:
    model, settings = made_model(dtype=dtype), config()
    optimizer = Optimizer(model, settings)

    def backward(factor: float) -> Tensor:
        for parameter in model.parameters():
            (parameter.float() * factor).sum().backward()
        return optimizer.gradient()[0]

    optimizer.step(1e-3, backward(1.0))  # there is momentum now
    before = [p.detach().clone() for p in model.parameters()]
    state = str(optimizer.state_dict())
    backward(math.nan)
    assert optimizer.gradient()[1] == len(before)
    optimizer.discard()

    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert str(optimizer.state_dict()) == state
    assert float(optimizer.gradient()[0]) == 0.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_optimizer_goes_on_from_its_state_to_the_bit(dtype: Any) -> None:
    settings = config()

    def backward(model: Any, seed: int) -> None:
        torch.manual_seed(seed)
        for parameter in model.parameters():
            parameter.backward(torch.randn_like(parameter))

    whole = made_model(dtype=dtype)
    optimizer = Optimizer(whole, settings)
    for seed in range(4):
        backward(whole, seed)
        optimizer.step(1e-3, optimizer.gradient()[0])
        if seed == 1:
            weights = {k: v.clone() for k, v in whole.state_dict().items()}
            saved = torch.utils._pytree.tree_map(
                lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf,
                optimizer.state_dict(),
            )
    resumed = made_model(dtype=dtype)
    resumed.load_state_dict(weights)
    again = Optimizer(resumed, settings)
    again.load_state_dict(saved)
    for seed in (2, 3):
        backward(resumed, seed)
        again.step(1e-3, again.gradient()[0])

    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("decay", "rates"),
    [
        ("constant", [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("linear", [0.25, 0.5, 0.75, 1.0, 0.8, 0.6, 0.4, 0.2]),
        ("cosine", [0.25, 0.5, 0.75, 1.0, 0.904508, 0.654508, 0.345492, 0.095492]),
    ],
)
def test_the_learning_rate_rises_and_falls_as_told(decay: str, rates: list[float]) -> None:
    settings = config(steps=8, ramp=3, decay=decay, learning_rate=1.0)
    optimizer = Optimizer(made_model(), settings)

    def updated() -> float:
        rate = optimizer.rate()
        optimizer.step(rate, optimizer.gradient()[0])
        return rate

    assert [updated() for _ in rates] == pytest.approx(rates, abs=1e-6)


def test_the_schedule_waits_for_an_update_that_is_left_out_and_goes_back_with_the_rest() -> None:
    optimizer = Optimizer(made_model(), config(steps=8, decay="linear", learning_rate=1.0))
    before, first = optimizer.state_dict(), optimizer.rate()
    optimizer.discard()
    assert optimizer.rate() == first
    optimizer.step(first, optimizer.gradient()[0])
    assert optimizer.rate() < first
    optimizer.load_state_dict(before)
    assert optimizer.rate() == first


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"steps": 0}, "steps: Input should be greater than or equal to 1"),
        ({"advantages": "best"}, "there is no advantage estimator 'best'"),
        ({"loss": "worst"}, "there is no loss 'worst'"),
        ({"betas": (0.9, 1.0)}, "betas must be at least 0 and below 1"),
        (
            {"control": "shuffled-rewards", "advantages": "turn_centered"},
            "choose another estimator",
        ),
        (
            {"advantages": "turn_centered", "loss": {"beta": 0.1, "kl_in_reward": True}},
            "charge the divergence in the loss",
        ),
        ({"top_p": 0.9}, "top_p: Extra inputs are not permitted"),
    ],
)
def test_settings_that_cannot_be_are_refused(values: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        reference_config(values)


def test_settings_survive_being_written_down() -> None:
    settings = config(loss={"name": "gspo", "beta": 0.1}, sampling={"max_draws": 2.0})

    assert reference_config(settings.model_dump(mode="json")) == settings


def test_figures_have_the_names_of_the_vocabulary() -> None:
    numbers = batch_metrics([Figures(True), Figures(False)], [0.5, math.nan], [3, 3])

    assert not numbers.keys() - METRICS.keys()
    assert set(numbers) == {key for key, metric in METRICS.items() if metric.source == "rollouts"}


def test_figures_of_a_batch_worked_by_hand() -> None:
    def turn(valid: bool, calls: int, errors: list[str], repairs: int = 0) -> dict[str, Any]:
        found = {"calls": [{}] * calls, "errors": errors, "valid": valid, "reward": 0.0}
        return {**found, "repairs": ["dropped_null"] * repairs}

    turns = (turn(True, 2, ["deadline"], 1), turn(False, 0, ["no_call"]), turn(False, 1, ["x"]))
    played = dataclasses.replace(episode(True, 5), turns=turns)
    figures = [
        Figures.of(played, written=30, clipped=True, unfinished=True),
        Figures.of(episode(True, 5), written=10, stopped_early=True),
        Figures.of(None),
        Figures.of(dataclasses.replace(played, scored=False)),
    ]

    numbers = batch_metrics(figures, [1.0, 0.5, math.nan, math.nan], [0, 1, 0, 1])

    assert figures[0].outcome == Outcome(True, 5)
    assert (figures[0].turns, figures[0].valid_turns, figures[0].calls) == (3, 1, 3)
    assert numbers["validity"] == pytest.approx(2 / 5)
    assert numbers["tool_failures"] == pytest.approx(2 / 4)
    assert numbers["repairs_per_call"] == pytest.approx(1 / 4)
    assert (numbers["faults"], numbers["deadlines"], numbers["turns"]) == (2.0, 1.0, 5.0)
    assert (numbers["completion_length"], numbers["clipped"]) == (10.0, 0.25)
    assert (numbers["unfinished"], numbers["reward"], numbers["reward_max"]) == (0.25, 0.75, 1.0)
    assert (numbers["dead_groups"], numbers["zero_variance_groups"]) == (1.0, 1.0)


def test_one_bad_step_stops_nothing_and_a_lost_environment_stops_the_run() -> None:
    limit = FaultLimit(steps=100)
    limit.note(1, rollouts=8, faults=8, latest="a moment")
    again = FaultLimit(steps=100)
    again.load_state_dict(limit.state_dict())
    for step in range(2, 20):
        again.note(step, rollouts=8, faults=0, latest="")

    for step in range(2, 5):
        limit.note(step, rollouts=8, faults=8, latest="gone")
    with pytest.raises(EnvironmentFault, match=r"at step 5: .* 40 of the last 40 .* gone"):
        limit.note(5, rollouts=8, faults=8, latest="gone")
