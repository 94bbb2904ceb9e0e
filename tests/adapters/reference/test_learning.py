"""Gradients, advantages, learning rates and settings of the reference trainer."""

import math
import random
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from torch import Tensor

from adapters.reference.losses import Pass, Totals, policy_loss
from adapters.reference.play import Rollout
from adapters.training.algorithms.advantages import advantages
from adapters.training.algorithms.rollout_metrics import Figures
from adapters.training.models import common_prefix
from tests.adapters.reference.digits import speech
from tests.adapters.reference.scripted import ScriptedEngine
from toolgym import Outcome
from toolgym.records import EpisodeRecord

pytestmark = pytest.mark.torch


def recorded(trainer: Any) -> list[Rollout]:
    """A batch of real episodes with other log-probabilities and rewards, for a float64 model."""
    player, draw = trainer.player, random.Random(0)
    player.engine = ScriptedEngine(
        player.model, player._chat.stop, lambda stream: speech(player._chat._tokenizer, stream)
    )
    rollouts: list[Rollout] = trainer.sample()[0]
    trainer._model.double()
    for rollout in rollouts:
        tokens = rollout.tokens
        noisy = [value + draw.uniform(-0.6, 0.6) for value in tokens.log_probs]
        tokens.log_probs = [n * bit for n, bit in zip(noisy, tokens.mask, strict=True)]
        rollout.reward = draw.random()
        rollout.turn_rewards = [draw.random() for _ in tokens.turns]
    return rollouts


def plain_log_probs(trainer: Any, rollouts: list[Rollout]) -> tuple[Tensor, Tensor]:
    """Log-probabilities [M] and entropies [M], with a forward pass for each rollout."""
    model, found = trainer._model.train(False), list[Tensor]()
    for rollout in rollouts:
        prompt, tokens = rollout.tokens.prompt, torch.tensor(rollout.tokens.tokens)
        logits = model(input_ids=torch.tensor([prompt + tokens.tolist()])).logits[0]
        logs = (logits[len(prompt) - 1 : -1] / trainer._config.temperature).log_softmax(1)
        both = torch.stack([logs.gather(1, tokens[:, None])[:, 0], -(logs.exp() * logs).sum(1)])
        found.append(both[:, torch.tensor(rollout.tokens.mask).bool()])
    log_probs, entropies = torch.cat(found, 1)
    return log_probs, entropies


def gradients(trainer: Any) -> dict[str, Tensor]:
    """The gradients, which are removed from the model."""
    found = {n: p.grad for n, p in trainer._model.named_parameters() if p.grad is not None}
    for parameter in trainer._model.parameters():
        parameter.grad = None
    return found


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"loss": "gspo", "beta": 0.0}, id="one pass"),
        pytest.param(
            {"tokens_per_pass": 1, "loss": "grpo", "beta": 0.1, "entropy_bonus": 0.05},
            id="a pass for each rollout",
        ),
        pytest.param(
            {"tokens_per_pass": 1300, "temperature": 0.7, "advantages": "turn_normalized"},
            id="some passes",
        ),
        pytest.param({"gradient_checkpointing": True}, id="gradient checkpointing"),
        pytest.param({"shares": True, "tokens_per_pass": 800}, id="shared prompts"),
        pytest.param({"shares": True, "lora_rank": 4, "loss": "gspo"}, id="shared, adapter"),
        pytest.param(
            {"lora_rank": 4, "gradient_checkpointing": True, "loss": "dr_grpo"},
            id="adapter",
        ),
    ],
)
def test_loss_and_gradient_are_those_of_plain_passes(
    options: dict[str, Any], make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a batch of groups, with ratios outside their bounds on both sides."""
    if shares := options.get("shares", False):
        monkeypatch.setattr(common_prefix, "_SMALL", 0)
        monkeypatch.setattr(common_prefix, "LEAST", 16)
    trainer = make(**{name: each for name, each in options.items() if name != "shares"})
    rollouts, config = recorded(trainer), trainer._config
    with torch.no_grad():
        for name, weight in trainer._model.named_parameters():
            weight += 0.02 * torch.sin(torch.arange(weight.numel()) + len(name)).view_as(weight)
    samples = trainer.advantages(rollouts)
    reference = trainer.reference_log_probs(samples)
    assert common_prefix.can_share(trainer._model) == shares
    assert (common_prefix.clusters([sample.text for sample in samples])[0].common > 0) == shares

    metrics = trainer.gradient(samples, reference)

    found = gradients(trainer)
    log_probs, entropy = plain_log_probs(trainer, rollouts)
    lengths = torch.tensor([sum(rollout.tokens.mask) for rollout in rollouts])
    batch = Pass(
        log_probs,
        torch.cat([sample.old_log_probs for sample in samples]),
        torch.cat([sample.advantages for sample in samples]),
        torch.arange(len(samples)).repeat_interleave(lengths),
    )
    totals = Totals(len(samples), int(lengths.sum()), config.max_completion_length)
    given = {"reference": torch.cat(reference) if reference else None, "entropy": entropy}
    value, expected = policy_loss(batch, config, totals, **given)
    value.backward()
    wanted = gradients(trainer)
    expected |= {"loss": value.detach(), "learnt_tokens": lengths.sum()}
    assert metrics == pytest.approx({k: each.item() for k, each in expected.items()}, rel=1e-6)
    assert min(metrics["clip_high"], metrics["clip_low"]) > 0.02
    assert found.keys() == wanted.keys()
    assert all("lora" in name for name in found) == ("lora_rank" in options)
    for name, gradient in wanted.items():
        assert (found[name] - gradient).norm() <= 1e-6 * gradient.norm() + 1e-15, name


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_the_reference_is_the_model_before_training(lora_rank: int, make: Any) -> None:
    trainer = make(lora_rank=lora_rank, temperature=0.9)
    rollouts = recorded(trainer)
    trainer._model.float()
    with torch.no_grad():
        before, _ = plain_log_probs(trainer, rollouts)
        for parameter in trainer._model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.1)

        found = trainer.reference_log_probs(trainer.advantages(rollouts))

        torch.testing.assert_close(torch.cat(found), before, atol=1e-5, rtol=0)
        assert (plain_log_probs(trainer, rollouts)[0] - before).abs().max() > 0.1


def test_rollouts_left_out_of_the_loss_are_compared_all_the_same(make: Any) -> None:
    trainer = make(advantages="group_centered", advantage_limit=0.1)
    rollouts = recorded(trainer)
    rollouts[1].unfinished = True
    rollouts[2].reward = math.nan

    samples = trainer.advantages(rollouts)

    rewards = torch.tensor([rollout.reward for rollout in rollouts], dtype=torch.float64)
    groups = torch.tensor([rollout.group for rollout in rollouts])
    expected = advantages("group_centered", rewards, groups).clamp(-0.1, 0.1)
    learned = [place for place in range(8) if place not in (1, 2)]
    assert len(samples) == 6
    for sample, place in zip(samples, learned, strict=True):
        rollout = rollouts[place].tokens
        assert sample.text.ids == (*rollout.prompt, *rollout.tokens)
        assert sum(sample.text.learn) == len(sample.old_log_probs) == len(sample.advantages)
        assert sample.advantages.unique().tolist() == [pytest.approx(expected[place].item())]


def test_advantages_of_turns_reach_the_tokens_of_their_turn(make: Any) -> None:
    trainer = make(advantages="turn_normalized")
    rollouts = recorded(trainer)

    for rollout, sample in zip(rollouts, trainer.advantages(rollouts), strict=True):
        lengths = [end - start for start, end in rollout.tokens.turns]
        parts = sample.advantages.split(lengths)
        assert [len(part.unique()) for part in parts] == [1] * len(lengths)
        assert len({part[0].item() for part in parts}) == len(lengths)


def test_figures_count_what_an_episode_did() -> None:
    def turn(valid: bool, calls: int, errors: list[str], repairs: int = 0) -> dict[str, Any]:
        found = {"calls": [{}] * calls, "errors": errors, "valid": valid, "reward": 0.0}
        return {**found, "repairs": ["dropped_null"] * repairs}

    turns = (
        turn(True, 2, ["too_many_steps"], 1),
        turn(False, 0, ["no_call"]),
        turn(False, 1, ["x"]),
    )
    played = EpisodeRecord("e", "t", 0, "?", turns, 0.0, True, True, True, 5, {})

    figures = Figures.of(played, written=30, clipped=True, unfinished=True)

    assert figures.outcome == Outcome(True, 5)
    assert (figures.turns, figures.valid_turns, figures.calls) == (3, 1, 3)
    assert (figures.repairs, figures.failures, figures.over_limit) == (1, 2, 1)
    assert (figures.written, figures.clipped, figures.unfinished) == (30, True, True)
    assert not Figures.of(None).scored
