"""Evaluations that are played in batches give what those played turn by turn give."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from adapters.reference import evaluation
from adapters.reference.evaluation import BatchPlay
from adapters.reference.play import Player, evaluate
from adapters.training.runs.playing import Asked, play_turn_by_turn
from adapters.training.settings import resolve
from tests.adapters.base_models import random_model
from tests.adapters.reference.test_contract import BAD
from tests.adapters.reference.test_rollout import WORLD
from tests.sweeps import sweep
from toolgym import EnvironmentFault
from toolgym.tries import seed_of_try

pytestmark = pytest.mark.torch

NOTES = "trl-tests/Notes-v0"
TASKS = [f"note-{number}" for number in (3, 0, 5)]
FAMILIES: dict[str, dict[str, Any]] = {
    "Llama": {},
    "Qwen3": {"head_dim": 16},
    "Gemma3Text": {"head_dim": 8, "sliding_window": 8},
}


def model_for(tokenizer: Any, family: str = "Llama", **options: Any) -> Any:
    """With random weights, in float64, which rounds too little to change a likeliest token."""
    own = {"vocab_size": len(tokenizer), "max_position_embeddings": 4096}
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    return random_model(family, **own, **ends, **options)


@pytest.fixture
def settings() -> Any:
    return resolve(NOTES, model="random", env_kwargs={"step_limit": 2}, max_new_tokens=6)


@pytest.mark.parametrize("family", sweep(FAMILIES, ["Llama"]))
def test_greedy_turns_are_those_of_the_policy(
    family: str, read_tokenizer: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "_SLOTS", 1)
    model = model_for(read_tokenizer, family, **FAMILIES[family])
    asked, done = Asked({"step_limit": 2}, TASKS), list[int]()

    fast = BatchPlay()(model, read_tokenizer, settings, asked, done.append)
    slow = play_turn_by_turn(model, read_tokenizer, settings, asked, lambda _: None)

    def seen(records: Any) -> list[Any]:
        """The first turns, and how many: a turn that is cut does not end an episode."""
        return [(r.task_id, r.turns[0]["action"], len(r.turns), r.correct) for r in records]

    assert seen(fast) == seen(slow)
    assert [record.task_id for record in fast] == TASKS
    assert {record.seed for record in fast} == {seed_of_try(0, task, 0) for task in TASKS}
    assert min(len(record.turns) for record in fast) > 1
    assert done == [2, 3]


@pytest.mark.integration
def test_a_try_is_sampled_alike_in_whatever_batch(
    read_tokenizer: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_for(read_tokenizer)
    asked = Asked({"step_limit": 2}, TASKS[:2], temperature=1.0, tries=3)

    whole = BatchPlay()(model, read_tokenizer, settings, asked, lambda _: None)
    monkeypatch.setattr(evaluation, "_MEMORY", 0)
    monkeypatch.setattr(evaluation, "bytes_of_rollout", lambda *sizes: 2**40)
    parts = BatchPlay()(model, read_tokenizer, settings, asked, lambda _: None)

    tries = [(task, number) for task in TASKS[:2] for number in range(3)]
    assert [(record.task_id, record.number) for record in whole] == tries
    assert [r.turns[0]["action"] for r in whole] == [r.turns[0]["action"] for r in parts]
    assert len({record.turns[0]["action"] for record in whole[:3]}) == 3


def test_a_template_that_rewrites_earlier_turns_is_played_turn_by_turn(
    tokenizer: Any, settings: Any
) -> None:
    tokenizer.chat_template = BAD["rewrites"]
    model, asked = model_for(tokenizer), Asked({"step_limit": 2}, TASKS[:2])

    fast, slow = (
        play(model, tokenizer, settings, asked, lambda _: None)
        for play in (BatchPlay(), play_turn_by_turn)
    )

    assert [record.to_json() for record in fast] == [record.to_json() for record in slow]


def test_an_episode_that_cannot_begin_is_a_fault_of_the_environment(
    notes_model: Any, notes_tokenizer: Any, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    asked = Asked({}, ["w-1", "lost"])
    world = settings.model_copy(update={"env_id": WORLD})

    with pytest.raises(EnvironmentFault, match="the disk is gone"):
        BatchPlay()(notes_model, notes_tokenizer, world, asked, lambda _: None)


def test_an_evaluation_while_training_is_greedy_and_leaves_no_trace(
    notes_model: Any, notes_tokenizer: Any
) -> None:
    player = Player(notes_model, notes_tokenizer, NOTES, {"step_limit": 2}, slots=2)

    one, other = (evaluate(player, TASKS, max_tokens=20) for _ in range(2))

    assert one.episodes == 3
    assert [r.to_json() for r in one.records] == [r.to_json() for r in other.records]
