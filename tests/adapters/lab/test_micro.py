"""The workflow micro-model: its words, its world, its training, and what it is measured by."""

import math

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch

from adapters.lab.micro import world
from adapters.lab.micro.loop import MicroConfig, Trainer, mean, train
from adapters.lab.micro.measure import prose_probability, text_probabilities
from adapters.lab.micro.model import MicroModel, prompts_of, read, sample
from adapters.lab.micro.start import started
from adapters.lab.micro.tokens import (
    LONGEST,
    PROSE_TEXTS,
    WORKFLOWS,
    is_prose,
    text_of,
    tokens_of,
)
from adapters.lab.starts import remembered_in

pytestmark = pytest.mark.torch
SMALL = MicroConfig(group_size=2, prompts=2, updates=3, start_steps=6)


def test_every_text_that_is_shown_fits_and_comes_back():
    for text in (*WORKFLOWS, *PROSE_TEXTS):
        assert text_of(tokens_of(text)) == text
        assert len(tokens_of(text)) <= LONGEST
    assert all(map(is_prose, PROSE_TEXTS))
    assert not any(map(is_prose, WORKFLOWS))


@pytest.mark.nightly
def test_workflows_can_be_run_and_prose_cannot():
    for text in WORKFLOWS:
        tasks = range(8, 16) if "Test" in text else (0, 8, 16)
        assert all(world.play(text, task, 0).valid for task in tasks), text
    for text in PROSE_TEXTS:
        ending = world.play(text, 0, 0)
        assert not ending.valid
        assert ending.level == 0.0


def test_what_was_drawn_is_as_likely_as_the_model_says():
    model = MicroModel(seed=3)
    sampled = sample(model, prompts_of([0, 5, 23]), torch.Generator().manual_seed(0))
    again = read(model, sampled)

    drawn = torch.where(sampled.mask, again.logprobs, 0.0)
    torch.testing.assert_close(drawn, sampled.logprobs, atol=2e-5, rtol=0)
    assert float(again.entropy.detach().max()) <= math.log(model.words.num_embeddings) + 1e-5


@pytest.mark.nightly
def test_exact_probabilities_agree_with_draws():
    model = started(0, prose=0.5, steps=30)
    prompts = prompts_of([4] * 500)
    drawn = sample(model, prompts, torch.Generator().manual_seed(1))
    texts = [text_of(row) for row in drawn.tokens.tolist()]

    with torch.no_grad():
        prose = float(prose_probability(model, prompts[:1]))
        programmer = float(text_probabilities(model, prompts[:1], ["Programmer"]))
    # Four standard errors of 500 draws: one seed in 16,000 would fail.
    assert sum(map(is_prose, texts)) / 500 == pytest.approx(prose, abs=0.09)
    assert texts.count("Programmer") / 500 == pytest.approx(programmer, abs=0.09)


def test_one_seed_is_one_training_and_another_is_another():
    first, again, other = (train(SMALL, seed)[0] for seed in (0, 0, 1))

    assert first == again
    assert first != other
    assert 0 <= mean(first, "valid", 2) <= 1


@pytest.mark.nightly
def test_a_start_is_kept_on_disk_and_is_the_same_from_there(tmp_path):
    fresh = started(5, steps=4)
    with remembered_in(tmp_path):
        from adapters.lab.micro import start

        start._weights.cache_clear()
        started(5, steps=4)
        files = list(tmp_path.iterdir())
        start._weights.cache_clear()
        kept = started(5, steps=4)

    assert len(files) == 1
    for one, other in zip(fresh.parameters(), kept.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.nightly
def test_a_step_that_teaches_nothing_moves_no_weight():
    model = started(0, steps=6)
    before = [each.clone() for each in model.parameters()]
    trainer = Trainer(SMALL, model, 0, judge=lambda ending, task, luck: 0.2)
    told = [trainer.step() for _ in range(2)]

    assert [step["updated"] for step in told] == [0.0, 0.0]
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


@pytest.mark.nightly
def test_dynamic_sampling_fills_a_step_with_groups_that_differ():
    config = MicroConfig(group_size=4, prompts=3, draws=3.0, updates=1, start_steps=20)
    history, _ = train(config, 0)

    assert history[0]["drawn_groups"] >= 3
    masked = history[0]["masked_groups"]
    assert history[0]["dead_groups"] == pytest.approx(masked / 3)
