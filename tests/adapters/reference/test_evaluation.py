"""Evaluations that are played in batches over one cache come out as those played turn by turn."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch

from adapters.reference import evaluation, generation
from adapters.reference.evaluation import BatchPlay, play_in_batches
from adapters.reference.generation import Player, PlaySettings
from adapters.training.runs.playing import Asked, evaluation_of, play_turn_by_turn
from adapters.training.runs.settings import resolve
from tests.adapters.reference.scripted import Blind
from tests.adapters.reference.test_contract import random_model
from toolgym.tries import seed_of_try

pytestmark = pytest.mark.torch

NOTES = "trl-tests/Notes-v0"
WIDE = {"max_position_embeddings": 4096, "hidden_size": 32}
TASKS = [f"note-{number}" for number in (3, 0, 5)]


def model_for(tokenizer: Any, family: str = "Llama", **options: Any) -> Any:
    """With random weights, in float64, which rounds too little to turn a likeliest token."""
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    made = random_model(family, **{**WIDE, "vocab_size": len(tokenizer), **ends, **options})
    return made.double().eval()


def first_turns(records: Any) -> list[tuple[Any, ...]]:
    return [(r.task_id, r.number, r.seed, r.turns[0]["action"], r.correct) for r in records]


@pytest.fixture
def settings() -> Any:
    return resolve(NOTES, model="random", env_kwargs={"step_limit": 2}, max_new_tokens=6)


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("Llama", {}),
        pytest.param("Qwen3", {"head_dim": 16}, marks=pytest.mark.nightly),
        pytest.param("Gemma3Text", {"head_dim": 8, "sliding_window": 8}, marks=pytest.mark.nightly),
    ],
)
def test_greedy_turns_are_those_of_the_policy(
    read_tokenizer: Any, settings: Any, family: str, options: dict[str, Any]
) -> None:
    model = model_for(read_tokenizer, family, **options)
    asked = Asked({"step_limit": 2}, TASKS)
    told: list[int] = []

    fast = BatchPlay(at_once=2)(model, read_tokenizer, settings, asked, told.append)
    slow = play_turn_by_turn(model, read_tokenizer, settings, asked, lambda done: None)

    assert first_turns(fast) == first_turns(slow)
    assert [r.task_id for r in fast] == TASKS
    assert {r.seed for r in fast} == {seed_of_try(0, task, 0) for task in TASKS}
    # A turn that is cut off is no end: both go on until the calls are spent.
    assert [len(r.turns) for r in fast] == [len(r.turns) for r in slow]
    assert min(len(r.turns) for r in fast) > 1
    assert told == [2, 3]
    assert evaluation_of(asked, fast).summary()["episodes"] == 3


def test_tries_are_numbered_and_a_try_is_drawn_alike_in_whatever_batch(
    read_tokenizer: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "Sampler", Blind)
    model = model_for(read_tokenizer)
    asked = Asked({"step_limit": 2}, TASKS[:2], temperature=1.0, tries=3)

    whole, parts = (
        BatchPlay(at_once)(model, read_tokenizer, settings, asked, lambda done: None)
        for at_once in (6, 4)
    )

    assert [(r.task_id, r.number) for r in whole] == [(t, n) for t in TASKS[:2] for n in range(3)]
    assert first_turns(whole) == first_turns(parts)
    assert len({r.turns[0]["action"] for r in whole[:3]}) == 3


def test_a_model_that_the_cache_does_not_fit_is_played_turn_by_turn(
    read_tokenizer: Any, settings: Any
) -> None:
    torch.manual_seed(0)
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(
        vocab_size=len(read_tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        eos_token_id=read_tokenizer.eos_token_id,
    )
    model: Any = MambaForCausalLM(config).eval()
    asked = Asked({"step_limit": 2}, TASKS[:2])
    play = BatchPlay()
    assert play._player(model, read_tokenizer, settings, asked) is None
    assert play._fits is False


def test_the_tiny_model_is_played_turn_by_turn(read_tokenizer: Any) -> None:
    tiny = resolve(NOTES, env_kwargs={"step_limit": 2}, max_new_tokens=4)
    model = model_for(read_tokenizer)
    asked = Asked({"step_limit": 2}, TASKS[:1])
    play = BatchPlay()
    (record,) = play(model, read_tokenizer, tiny, asked, lambda done: None)
    assert play._fits is None
    assert record.number == 0


def test_the_order_of_lengths_is_not_that_of_the_answer(read_tokenizer: Any) -> None:
    player = Player(
        model_for(read_tokenizer),
        read_tokenizer,
        NOTES,
        settings=PlaySettings(0.0, max_tokens=8, turn_tokens=4, at_once=1),
    )
    records = play_in_batches(player, Asked({}, TASKS), 0, lambda done: None)
    assert [record.task_id for record in records] == TASKS


def test_no_more_episodes_are_played_together_than_are_expected_to_fit(
    read_tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = PlaySettings(0.0, max_tokens=8, turn_tokens=4)
    player = Player(model_for(read_tokenizer), read_tokenizer, NOTES, settings=how)
    told: list[int] = []
    asked = Asked({}, TASKS)
    whole = play_in_batches(player, asked, 0, told.append)
    monkeypatch.setattr(evaluation, "_MEMORY", 0)
    monkeypatch.setattr(evaluation, "bytes_of_rollout", lambda *sizes: 2**40)

    each = play_in_batches(player, asked, 0, told.append)

    assert told == [3, 1, 2, 3]
    assert first_turns(whole) == first_turns(each)
