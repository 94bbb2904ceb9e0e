"""Supervised training: the learned tokens of a transcript, and the loop that learns them."""

import json
import random
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from torch.nn import functional

from adapters.tiny.model import TinySize, build_model
from adapters.training.models import supervised
from adapters.training.models.demonstrations import demonstrate
from adapters.training.models.supervised import (
    SftSettings,
    accumulate,
    orthogonal,
    train_supervised,
)
from adapters.training.models.token_log_probs import passes
from adapters.training.models.tokenized_examples import Example, examples_of
from toolgym import ConfigurationError, registration

pytestmark = pytest.mark.torch

EXPLORE = "sqlgym/Explore-v0"
SMALL = TinySize(hidden=32, heads=2, feed_forward=64)
STEPS = 10


@pytest.fixture(scope="module")
def tiny_tools() -> Any:
    return registration.make(EXPLORE, dataset="tiny").tool_schemas()


@pytest.fixture(scope="module")
def tiny_examples(tiny_transcripts: Any, tiny_tools: Any, tiny_tokenizer: Any) -> list[Example]:
    """All transcripts as supervised training reads them."""
    return [e for t in tiny_transcripts for e in examples_of(t, tiny_tools, tiny_tokenizer)]


def learned_text(example: Example, tokenizer: Any) -> str:
    pairs = zip(example.ids, example.learn, strict=True)
    return str(tokenizer.decode([token for token, learned in pairs if learned]))


def test_the_tiny_template_gives_one_example_as_its_own_markers_would(
    tiny_transcripts: Any, tiny_tools: Any, tiny_tokenizer: Any
) -> None:
    plain = [t for t in tiny_transcripts if all("weight" not in m for m in t)]
    for transcript in plain[:15]:
        (example,) = examples_of(transcript, tiny_tools, tiny_tokenizer)
        marked = tiny_tokenizer.apply_chat_template(
            transcript, tools=tiny_tools, return_dict=True, return_assistant_tokens_mask=True
        )
        assert list(example.ids) == marked["input_ids"]
        assert [int(learned) for learned in example.learn] == marked["assistant_masks"]


def test_a_turn_of_weight_zero_is_read_and_not_learned(
    tiny_tools: Any, tiny_tokenizer: Any
) -> None:
    transcripts = demonstrate(EXPLORE, 10, recoveries=0.5, dataset="tiny")
    transcript = next(t for t in transcripts if any(m.get("weight") == 0 for m in t))
    wrong = next(m["tool_calls"][0]["function"] for m in transcript if m.get("weight") == 0)
    text = f'"name": "{wrong["name"]}", "arguments": {json.dumps(wrong["arguments"])}'

    (example,) = examples_of(transcript, tiny_tools, tiny_tokenizer)

    assert text in tiny_tokenizer.decode(list(example.ids))
    assert text not in learned_text(example, tiny_tokenizer)
    assert learned_text(example, tiny_tokenizer).endswith("done<|im_end|>")


@pytest.mark.parametrize("template", ["qwen3", "llama3_2"])
def test_with_a_real_template_every_turn_is_learned_after_the_prompt_that_generation_gives(
    make_tokenizer: Any, template: str, tiny_tools: Any, tiny_transcripts: Any
) -> None:
    tokenizer = make_tokenizer(template)
    transcript = next(t for t in tiny_transcripts if all("weight" not in m for m in t))
    turns = [i for i, message in enumerate(transcript) if message["role"] == "assistant"]

    found = list(examples_of(transcript, tiny_tools, tokenizer))

    starts = [
        example.ids[:place]
        for example in found
        for place in range(1, len(example.ids))
        if example.learn[place] and not example.learn[place - 1]
    ]
    assert len(starts) == len(turns)
    for turn, start in zip(turns, starts, strict=True):
        prompt = tokenizer.apply_chat_template(
            transcript[:turn], tools=tiny_tools, add_generation_prompt=True, tokenize=False
        )
        assert tokenizer.decode(list(start)) == prompt


def test_a_template_that_hides_the_turn_is_refused_in_words(
    make_tokenizer: Any, tiny_tools: Any, tiny_transcripts: Any
) -> None:
    tokenizer = make_tokenizer()
    tokenizer.chat_template = "{% if add_generation_prompt %}now speak{% else %}nothing{% endif %}"

    with pytest.raises(ConfigurationError, match="the turn cannot be learned"):
        list(examples_of(tiny_transcripts[0], tiny_tools, tokenizer))


@pytest.mark.parametrize("matrix_rate", [None, 0.02])
def test_imitation_lowers_the_loss_and_ends_at_the_same_weights_every_time(
    matrix_rate: float | None, tiny_tokenizer: Any, tiny_examples: Any
) -> None:
    settings = SftSettings(STEPS, 4, 1e-2, ramp=2, matrix_rate=matrix_rate)
    told: list[dict[str, float]] = []
    models = [build_model(tiny_tokenizer, size=SMALL) for _ in range(2)]

    for model in models:
        train_supervised(model, tiny_examples, settings, told.append)

    losses = [numbers["loss"] for numbers in told[:STEPS]]
    assert sum(losses[-3:]) < 0.8 * sum(losses[:3])
    assert [numbers["step"] for numbers in told[:STEPS]] == list(range(1, STEPS + 1))
    assert told[:STEPS] == told[STEPS:]
    weights = [torch.cat([w.flatten() for w in model.parameters()]) for model in models]
    assert torch.equal(*weights)
    assert not models[0].training


def test_the_passes_of_a_batch_add_up_to_the_gradient_of_the_batch_as_one(
    tiny_examples: Any, tiny_tokenizer: Any
) -> None:
    model = build_model(tiny_tokenizer, size=SMALL).double()
    batch = random.Random(1).sample(tiny_examples, 16)
    assert len(passes(batch, 8192, model)) > 1
    width = max(len(example.ids) for example in batch)
    ids = torch.tensor([[*e.ids, *[0] * (width - len(e.ids))] for e in batch])
    learned = torch.tensor([[*e.learn, *[False] * (width - len(e.ids))] for e in batch])[:, 1:]
    logits = model(input_ids=ids).logits[:, :-1]
    whole = functional.cross_entropy(logits[learned], ids[:, 1:][learned])
    wanted = torch.autograd.grad(whole, list(model.parameters()))

    loss = accumulate(model, batch)

    assert loss.item() == pytest.approx(whole.item(), rel=1e-6)
    for parameter, gradient in zip(model.parameters(), wanted, strict=True):
        assert parameter.grad is not None
        assert torch.allclose(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


def test_prompts_that_share_a_prefix_are_in_one_batch_if_asked_for() -> None:
    examples = [
        Example((kind,) * 40 + (number,), (False,) * 40 + (True,))
        for number in range(16)
        for kind in (1, 2, 3)
    ]
    for alike, kinds in ((1, 3), (8, 1)):
        batches = supervised._batches(examples, SftSettings(9, batch=8, alike=alike))
        epoch = [next(batches) for _ in range(6)]
        assert sorted(e.ids for batch in epoch for e in batch) == sorted(e.ids for e in examples)
        assert max(len({example.ids[0] for example in batch}) for batch in epoch) == kinds


@pytest.mark.parametrize("shape", [(32, 32), (20, 48), (48, 20)])
def test_an_update_of_muon_is_as_long_in_rare_directions_as_in_common_ones(
    shape: tuple[int, int],
) -> None:
    draw = torch.Generator().manual_seed(0)
    rank = min(shape)
    left, _ = torch.linalg.qr(torch.randn(shape[0], rank, generator=draw))
    right, _ = torch.linalg.qr(torch.randn(shape[1], rank, generator=draw))
    lengths = torch.logspace(0, -2, rank)

    found = orthogonal(left * lengths @ right.T)

    along = torch.linalg.multi_dot((left.T, found, right))
    assert torch.allclose(along, torch.diag(along.diagonal()), atol=1e-4)
    assert ((along.diagonal() > 0.6) & (along.diagonal() < 1.3)).all()
