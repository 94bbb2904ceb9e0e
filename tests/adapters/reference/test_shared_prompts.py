"""Updates in which a group's prompt is read once, held against those in which it is read by all."""

import logging
import math
import random
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from torch import Tensor

from adapters.reference.config import ReferenceConfig, reference_config
from adapters.reference.learner import Learner
from adapters.reference.optimizer import make_ready
from adapters.reference.rollout import Batch, Ending, Request, Rollout
from tests.adapters.base_models import random_model

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


@pytest.mark.parametrize("tokens_per_pass", [1, 40, 10_000])
@pytest.mark.parametrize("name", MODELS)
def test_a_prompt_that_is_read_once_leaves_loss_and_gradient_as_they_are(
    name: str, tokens_per_pass: int
) -> None:
    model, batch = made_model(name), make_batch()
    options = {"loss": {"name": "grpo", "beta": 0.1}, "temperature": 0.7}

    shared = gradient(model, True, batch, tokens_per_pass=tokens_per_pass, **options)

    agree(shared, gradient(model, False, batch, **options))


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


def test_checkpointing_computes_shared_prompts_again_as_they_were() -> None:
    made = []
    for shares in (True, False):
        model = made_model()
        make_ready(model, config(True, gradient_checkpointing=shares))
        made.append(gradient(model.double(), shares, make_batch()))

    assert model.config._attn_implementation == "sdpa"
    agree(made[0], made[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_in_lower_precision_shared_prompts_are_no_further_off_than_read_ones(dtype: Any) -> None:
    batch = make_batch()
    with torch.no_grad():
        rounded = made_model(dtype=dtype)
        truth = made_model()
        for one, other in zip(truth.parameters(), rounded.parameters(), strict=True):
            one.copy_(other)
    exact = gradient(truth, False, batch)[1]

    def off(shares: bool) -> float:
        found = gradient(rounded, shares, batch)[1]
        total = sum(float((found[name].double() - exact[name]).norm() ** 2) for name in exact)
        return math.sqrt(total / sum(float(each.norm() ** 2) for each in exact.values()))

    assert off(True) <= 1.5 * off(False) + 1e-9


def through(model: Any, shares: bool, batch: Batch, **options: Any) -> int:
    """The tokens that go through the model in an update."""
    read: list[int] = []
    layer = model.model.layers[0]
    hook = layer.register_forward_pre_hook(
        lambda module, given: read.append(given[0].shape[0] * given[0].shape[1])
    )
    settings = config(shares, **{"share_prompts_from": 128 if shares else None, **options})
    learner = Learner(model, None, settings)
    probe = learner._measure_sharing() if shares else False
    learner._can_share = probe
    read.clear()
    learner.accumulate(batch, torch.linspace(-1, 1, len(batch)), batch.log_probs, None)
    hook.remove()
    return sum(read)


def test_a_group_of_eight_puts_a_fifth_of_the_tokens_through_the_model() -> None:
    draw = random.Random(0)
    prompts = [[draw.randrange(3, 40) for _ in range(500)] for _ in range(2)]
    batch = Batch.of(
        [
            rollout(prompt, [(40, 0)], group, 8 * group + member)
            for group, prompt in enumerate(prompts)
            for member in range(8)
        ],
        [True] * 16,
    )
    model = made_model(dtype=torch.float32)

    shared, plain = (through(model, shares, batch) for shares in (True, False))

    assert plain == 16 * 540
    assert shared == 2 * (499 + 8 * 40)  # the last token of a prompt stands with each completion
    assert plain > 5 * shared


def test_short_prompts_go_through_the_model_as_they_always_did() -> None:
    batch, default = make_batch(), reference_config({}).share_prompts_from
    model = made_model(dtype=torch.float32)

    assert max(map(len, batch.prompts)) < (default or 0)
    assert through(model, True, batch) == through(model, False, batch)
    shared, plain = (
        gradient(model, flag, batch, share_prompts_from=least)
        for flag, least in ((True, default), (False, None))
    )
    assert shared[0] == plain[0]
    assert all(torch.equal(shared[1][name], plain[1][name]) for name in plain[1])


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
