"""What is learnt from a transcript, with any chat template, and the loop that learns it."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from torch.nn import functional

from adapters.tiny.model import TinySize, build_model
from adapters.training.models import supervised
from adapters.training.models.supervised import (
    Muon,
    SftSettings,
    accumulate,
    matrices_of,
    orthogonal,
    train_supervised,
)
from adapters.training.models.token_log_probs import like_lengths, passes
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
    """All transcripts as the warm-up reads them."""
    return [e for t in tiny_transcripts for e in examples_of(t, tiny_tools, tiny_tokenizer)]


def learnt_text(example: Example, tokenizer: Any) -> str:
    pairs = zip(example.ids, example.learn, strict=True)
    return str(tokenizer.decode([token for token, learnt in pairs if learnt]))


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
        assert [int(learnt) for learnt in example.learn] == marked["assistant_masks"]


def test_a_turn_of_weight_zero_is_read_and_not_learnt(
    tiny_tools: Any, tiny_tokenizer: Any, tiny_transcripts: Any
) -> None:
    transcript = next(t for t in tiny_transcripts if any(m.get("weight") == 0 for m in t))
    stumble = next(m["content"] for m in transcript if m.get("weight") == 0)

    (example,) = examples_of(transcript, tiny_tools, tiny_tokenizer)

    assert stumble in tiny_tokenizer.decode(list(example.ids))
    assert stumble not in learnt_text(example, tiny_tokenizer)
    assert learnt_text(example, tiny_tokenizer).endswith("done<|im_end|>")


@pytest.mark.parametrize("template", ["qwen3", "llama3_2"])
def test_with_a_real_template_every_turn_is_learnt_after_the_prompt_that_generation_gives(
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

    with pytest.raises(ConfigurationError, match="it cannot be learnt from"):
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
    assert len(passes(batch)) > 1
    width = max(len(example.ids) for example in batch)
    ids = torch.tensor([[*e.ids, *[0] * (width - len(e.ids))] for e in batch])
    learnt = torch.tensor([[*e.learn, *[False] * (width - len(e.ids))] for e in batch])[:, 1:]
    logits = model(input_ids=ids).logits[:, :-1]
    whole = functional.cross_entropy(logits[learnt], ids[:, 1:][learnt])
    wanted = torch.autograd.grad(whole, list(model.parameters()))

    loss = accumulate(model, batch)

    assert loss.item() == pytest.approx(whole.item(), rel=1e-6)
    for parameter, gradient in zip(model.parameters(), wanted, strict=True):
        assert parameter.grad is not None
        assert torch.allclose(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


def divided(lengths: Sequence[int], tokens: int | None = None) -> list[list[int]]:
    return like_lengths(lengths, tokens, 128)


def padded_tokens(lengths: Sequence[int]) -> int:
    return sum(len(part) * max(lengths[place] for place in part) for part in divided(lengths))


def test_short_examples_go_apart_from_long_ones_where_that_saves_more_than_a_pass_costs() -> None:
    assert divided([50, 180, 52, 175]) == [[0, 2], [3, 1]]
    assert divided([100, 101]) == [[0, 1]]
    assert divided([7]) == [[0]]
    draw = random.Random(0)
    for _ in range(200):
        lengths = [draw.randint(1, 400) for _ in range(draw.randint(1, 20))]
        places = [place for part in divided(lengths) for place in part]
        assert sorted(places) == list(range(len(lengths)))
        assert padded_tokens(lengths) <= len(lengths) * max(lengths)


def test_a_pass_has_no_more_tokens_than_allowed_unless_a_single_text_has() -> None:
    lengths = [50, 180, 52, 175, 400]
    found = divided(lengths, 360)

    assert sorted(place for part in found for place in part) == list(range(5))
    assert [4] in found
    for part in found:
        assert len(part) == 1 or len(part) * max(lengths[place] for place in part) <= 360


@pytest.mark.parametrize(("alike", "kinds"), [(1, 3), (4, 2), (8, 1)])
def test_a_batch_holds_as_many_that_begin_alike_as_asked_for(alike: int, kinds: int) -> None:
    lengths = random.Random(0)
    examples = [
        Example((kind,) * 40 + (number,) * lengths.randrange(1, 30), (False,) * 41 + (True,) * 30)
        for number in range(16)
        for kind in (1, 2, 3)
    ]
    batches = supervised._batches(examples, SftSettings(9, batch=8, alike=alike))
    round_of_all = [next(batches) for _ in range(6)]

    assert sorted(e.ids for batch in round_of_all for e in batch) == sorted(e.ids for e in examples)
    found = [len({example.ids[0] for example in batch}) for batch in round_of_all]
    assert max(found) <= kinds if alike > 1 else max(found) == kinds
    again = supervised._batches(examples, SftSettings(9, batch=8, alike=alike))
    assert [next(again) for _ in range(6)] == round_of_all
    assert next(again) != round_of_all[0]


def test_passes_pad_less_than_half_as_much_as_the_batch_as_one(tiny_examples: Any) -> None:
    draw = random.Random(0)
    needed = as_one = in_passes = 0
    for _ in range(50):
        lengths = [len(example.ids) for example in draw.sample(tiny_examples, 16)]
        needed += sum(lengths)
        as_one += 16 * max(lengths)
        in_passes += padded_tokens(lengths)

    assert in_passes - needed < (as_one - needed) / 2


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


def test_muon_moves_the_layers_and_leaves_embeddings_and_norms_to_adamw(
    tiny_tokenizer: Any, tiny_examples: Any
) -> None:
    model = build_model(tiny_tokenizer, size=SMALL)
    before = {name: value.clone() for name, value in model.named_parameters()}
    accumulate(model, tiny_examples[:4])

    Muon(matrices_of(model)).step(0.01)

    for name, value in model.named_parameters():
        is_map = name.endswith("_proj.weight")
        assert torch.equal(value, before[name]) != is_map
    up = "model.layers.0.mlp.up_proj.weight"  # 64 x 32: longer by the root of 2
    moved = torch.linalg.svdvals(dict(model.named_parameters())[up] - before[up])
    assert 0.5 < moved[0] / (0.01 * 2**0.5) < 1.5
