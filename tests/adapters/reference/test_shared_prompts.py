"""Updates in which a group's prompt is read once, held against those in which it is read by all."""

import logging
import random
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from torch import Tensor

from adapters.reference.config import ReferenceConfig, reference_config
from adapters.reference.learner import Learner
from adapters.reference.rollout import Batch, Ending, Request, Rollout
from tests.adapters.base_models import random_model
from tests.sweeps import sweep

pytestmark = pytest.mark.torch

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "Llama, grouped heads": ("Llama", {}),
    "Llama, a head each": ("Llama", {"num_key_value_heads": 4}),
    "Llama, one for all": ("Llama", {"num_key_value_heads": 1}),
    "Qwen 3": ("Qwen3", {"head_dim": 16}),
    "Gemma 3, windows": (
        "Gemma3Text",
        {"sliding_window": 5, "head_dim": 16, "num_hidden_layers": 6},
    ),
    "Mistral, windows": ("Mistral", {"sliding_window": 7}),
}


def made_model(name: str = "Llama, grouped heads", dtype: Any = torch.float64) -> Any:
    family, options = MODELS.get(name, (name, {}))
    return random_model(family, dtype, **options)


def rollout(prompt: list[int], lengths: list[tuple[int, int]], group: int, seed: int) -> Rollout:
    """One with turns of these lengths, each followed by a result of that length."""
    draw = random.Random(seed)
    mask: list[int] = []
    turns: list[tuple[int, int]] = []
    for written, told in lengths:
        turns.append((len(mask), len(mask) + written))
        mask += [1] * written + [0] * told
    return Rollout(
        Request("t", group, str(seed)),
        prompt,
        [draw.randrange(3, 40) for _ in mask],
        mask,
        [-1.0 - 3 * draw.random() if bit else 0.0 for bit in mask],
        turns,
        [1.0] * len(turns),
        draw.random(),
        Ending.ANSWERED,
        None,
    )


def make_batch() -> Batch:
    """Groups of unlike sizes over prompts that begin alike, with members that do not count."""
    draw = random.Random(0)

    def some(length: int) -> list[int]:
        return [draw.randrange(3, 40) for _ in range(length)]

    tools = some(6)
    groups = [
        (tools + some(9), [[(5, 3), (4, 0)], [(1, 0)], [(2, 6), (1, 1), (7, 0)], [(11, 0)]]),
        (tools + some(4), [[(3, 2), (6, 0)], [(4, 0)], [(1, 4)]]),
        (some(12), [[(9, 0)]]),
        (some(1), [[(3, 0)], [(5, 2), (1, 0)]]),
        (some(1), [[(1, 0)]]),
    ]
    rollouts = [
        rollout(prompt, lengths, number, 10 * number + member)
        for number, (prompt, members) in enumerate(groups)
        for member, lengths in enumerate(members)
    ]
    return Batch.of(rollouts, [place not in (1, 5) for place in range(len(rollouts))])


def config(shares: bool, **options: Any) -> ReferenceConfig:
    return reference_config(
        {
            "group_size": 2,
            "prompts": 3,
            "learning_rate": 1e-3,
            "loss": "dapo",
            "share_prompts_from": 3 if shares else None,
            **options,
        }
    )


def gradient(
    model: Any, shares: bool, batch: Batch, **options: Any
) -> tuple[dict[str, float], dict[str, Tensor]]:
    """The metrics and the gradient of an update, all that it needs computed the same way."""
    model.zero_grad()
    settings = config(shares, **options)
    learner = Learner(model, None, settings)
    anchor = made_model("Qwen 3", model.dtype)  # any other model of this vocabulary
    reference = Learner(anchor, None, settings)._log_probs(anchor, batch)
    advantages = torch.linspace(-1, 1, len(batch))
    metrics = learner.accumulate(batch, advantages, learner.old_log_probs(batch), reference)
    found = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    return metrics, found


def agree(one: Any, other: Any, tolerance: float = 1e-6) -> None:
    """Loss, metrics and gradients are the same up to rounding."""
    assert one[0] == pytest.approx(other[0], rel=tolerance, abs=tolerance)
    assert one[1].keys() == other[1].keys()
    for name, expected in other[1].items():
        difference = float((one[1][name] - expected).norm())
        assert difference <= tolerance * float(expected.norm()) + 1e-12, name


@pytest.mark.parametrize("tokens_per_pass", sweep([1, 40, 10_000], ["40"]))
@pytest.mark.parametrize("name", sweep(MODELS, ["Llama, grouped heads"]))
def test_a_prompt_that_is_read_once_leaves_loss_and_gradient_as_they_are(
    name: str, tokens_per_pass: int
) -> None:
    model, batch = made_model(name), make_batch()
    options = {"loss": {"name": "grpo", "beta": 0.1}, "temperature": 0.7}

    shared = gradient(model, True, batch, tokens_per_pass=tokens_per_pass, **options)

    agree(shared, gradient(model, False, batch, **options))


@pytest.mark.nightly
@pytest.mark.parametrize(
    "options",
    [
        {"loss": {"name": "dapo", "entropy_bonus": 0.05}},
        {"loss": {"name": "gspo", "beta": 0.1}, "updates_per_batch": 3},
        {"loss": {"name": "cispo", "old_log_probs": "computed"}},
        {"loss": {"name": "dr_grpo", "constant_length": 20, "beta": 0.2}},
    ],
    ids=["an entropy bonus", "several updates", "weighted tokens", "a constant divisor"],
)
def test_every_loss_is_the_same_with_shared_prompts(options: dict[str, Any]) -> None:
    model, batch = made_model(), make_batch()

    agree(gradient(model, True, batch, **options), gradient(model, False, batch, **options))


def test_a_model_that_cannot_share_is_told_of_once_and_trains_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = made_model("Bloom")
    learner = Learner(model, None, config(True))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            model.zero_grad()
            metrics = learner.accumulate(make_batch(), torch.linspace(-1, 1, 11), None, None)

    assert caplog.text.count("cannot read a shared prompt once") == 1
    found = {n: p.grad.clone() for n, p in model.named_parameters()}
    model.zero_grad()
    plain = Learner(model, None, config(False))
    assert metrics == plain.accumulate(make_batch(), torch.linspace(-1, 1, 11), None, None)
    assert all(torch.equal(found[n], p.grad) for n, p in model.named_parameters())
