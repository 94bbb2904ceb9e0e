"""Evaluations by the generation engine have the episodes of a policy that plays turn by turn."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from adapters.reference.evaluation import Evaluator
from adapters.reference.play import Player, evaluate
from adapters.training.models.chat_policy import ChatModelPolicy
from adapters.training.runs.evaluations import Evaluation
from adapters.training.runs.progress import NoProgress
from adapters.training.settings import resolve
from tests.adapters.base_models import random_model
from tests.adapters.reference.test_contract import BAD
from tests.adapters.reference.test_rollout import WORLD
from tests.sweeps import sweep
from toolgym import ConfigurationError, EnvironmentFault, rollout
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


def evaluator(model: Any, tokenizer: Any, env_id: str = NOTES, at_once: int = 4) -> Evaluator:
    settings = resolve(env_id, model="random", prompts=1, group_size=at_once, max_new_tokens=6)
    return Evaluator(model, tokenizer, settings, NoProgress())


def of(**options: Any) -> Evaluation:
    return Evaluation("unseen tasks", "", {"step_limit": 2}, "notes", ("tasks",), 6, 6, **options)


@pytest.mark.parametrize("family", sweep(FAMILIES, ["Llama"]))
def test_greedy_turns_are_those_of_the_policy(family: str, read_tokenizer: Any) -> None:
    model = model_for(read_tokenizer, family, **FAMILIES[family])
    policy = ChatModelPolicy(model, read_tokenizer, max_new_tokens=6)

    fast = evaluator(model, read_tokenizer).play(of(), TASKS, "before")
    slow = rollout.evaluate(NOTES, policy, task_ids=TASKS, step_limit=2)

    def seen(records: Any) -> list[Any]:
        """The first turns, and how many: a turn that is cut does not end an episode."""
        return [(r.task_id, r.turns[0]["action"], len(r.turns), r.correct) for r in records]

    assert seen(fast) == seen(slow)
    assert [record.task_id for record in fast] == TASKS
    assert {record.seed for record in fast} == {seed_of_try(0, task, 0) for task in TASKS}
    assert min(len(record.turns) for record in fast) > 1


@pytest.mark.integration
def test_a_try_is_sampled_alike_in_whatever_batch(read_tokenizer: Any) -> None:
    model, sampled = model_for(read_tokenizer), of(temperature=1.0, tries=3)

    whole, parts = (
        list(evaluator(model, read_tokenizer, at_once=slots).play(sampled, TASKS[:2], "before"))
        for slots in (8, 2)
    )

    tries = [(task, number) for task in TASKS[:2] for number in range(3)]
    assert [(record.task_id, record.number) for record in whole] == tries
    assert [r.turns[0]["action"] for r in whole] == [r.turns[0]["action"] for r in parts]
    assert len({record.turns[0]["action"] for record in whole[:3]}) == 3


def test_a_template_that_rewrites_earlier_turns_is_refused(tokenizer: Any) -> None:
    tokenizer.chat_template = BAD["changes earlier messages"]
    with pytest.raises(ConfigurationError, match=r"changes earlier messages.*--chat-template"):
        evaluator(model_for(tokenizer), tokenizer).play(of(), TASKS, "before")


def test_an_episode_that_cannot_begin_is_a_fault_of_the_environment(
    notes_model: Any, notes_tokenizer: Any
) -> None:
    world = Evaluation("unseen tasks", "", {}, "world", ("tasks",), 2, 2)
    with pytest.raises(EnvironmentFault, match="the disk is gone"):
        evaluator(notes_model, notes_tokenizer, WORLD).play(world, ["w-1", "lost"], "before")


def test_an_evaluation_while_training_is_greedy_and_leaves_no_trace(
    notes_model: Any, notes_tokenizer: Any
) -> None:
    player = Player(notes_model, notes_tokenizer, NOTES, {"step_limit": 2}, slots=2)

    one, other = (evaluate(player, TASKS, max_tokens=20) for _ in range(2))

    assert one.episodes == 3
    assert [r.to_json() for r in one.records] == [r.to_json() for r in other.records]
