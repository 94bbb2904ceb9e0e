"""A chat model as a policy: what it says, and what is said when it cannot be loaded."""

import copy

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch

from adapters.tiny.model import TinySize, build_model
from adapters.training.models.chat_policy import ChatModelPolicy
from adapters.training.models.loading import load
from adapters.training.runs.preparation import save
from toolgym import ConfigurationError, registration, rollout
from toolgym.generation import steps
from toolgym.policies import Situation
from toolgym.records import Evaluation

pytestmark = pytest.mark.torch
ENV = "sqlgym/Explore-v0"
TINY = {"dataset": "tiny", "split": "dev", "step_limit": 4}


@pytest.fixture(scope="module")
def pair(tiny_tokenizer):
    size = TinySize(hidden=32, heads=2, feed_forward=64)
    return build_model(tiny_tokenizer, size=size), tiny_tokenizer


@pytest.fixture(scope="module")
def precise(pair):
    """The same in float64, where batches of other widths round too little to turn a draw."""
    return copy.deepcopy(pair[0]).double(), pair[1]


def situations(count):
    made = []
    for slot in range(count):
        env = registration.make(ENV, **TINY)
        observation, _ = env.reset(seed=slot)
        made.append(Situation(env, observation, slot))
    return made


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_it_says_does_not_depend_on_who_is_asked_beside_it(precise, temperature):
    def policy(batch):
        return ChatModelPolicy(*precise, temperature=temperature, max_new_tokens=12, batch=batch)

    together, alone = policy(8).act(situations(5)), policy(1).act(situations(5))

    assert together == alone
    assert len(set(together)) > 1 or temperature == 0.0


def test_two_shards_of_a_model_that_draws_equal_one_run_record_by_record(precise):
    def played(**options):
        policy = ChatModelPolicy(*precise, temperature=1.0, max_new_tokens=8, seed=1)
        return rollout.evaluate(ENV, policy, n=2, **TINY, **options)

    whole = played(k=3)
    merged = Evaluation.merged([played(k=3, shard=(1, 2)), played(k=3, shard=(2, 2))])

    assert [r.to_json() for r in merged.records] == [r.to_json() for r in whole.records]
    assert merged.summary() == whole.summary()
    assert len({str(record.turns) for record in whole.records}) == 6


def test_a_saved_model_is_loaded_by_its_folder_and_plays_the_same(precise, tmp_path):
    save(*precise, tmp_path / "final")
    ours = ChatModelPolicy(*precise, max_new_tokens=8)
    loaded = load(str(tmp_path / "final"), max_new_tokens=8)

    found, again = (rollout.evaluate(ENV, policy, n=2, **TINY).records for policy in (ours, loaded))

    assert [record.turns for record in found] == [record.turns for record in again]
    assert loaded.model.dtype == torch.float64
    assert loaded.tokenizer.response_template == precise[1].response_template


def test_a_transcript_that_leaves_no_room_gets_an_empty_action(pair):
    model, tokenizer = pair
    cramped = ChatModelPolicy(model, tokenizer, max_new_tokens=model.config.max_position_embeddings)

    assert cramped.act(situations(1)) == [""]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("./nothing", r"There is no model folder \./nothing"),
        ("nobody/nothing", "The model nobody/nothing cannot be loaded"),
    ],
)
def test_a_model_that_is_not_there_is_told_in_a_sentence(name, words):
    with pytest.raises(ConfigurationError, match=words):
        load(name)


def test_a_run_folder_in_the_place_of_a_model_names_the_models_in_it(pair, tmp_path):
    save(*pair, tmp_path / "checkpoints" / "final")

    with pytest.raises(ConfigurationError, match="It contains the models checkpoints/final"):
        load(str(tmp_path))


def test_options_out_of_range_are_refused(pair):
    with pytest.raises(ConfigurationError, match="temperature must be at least 0"):
        ChatModelPolicy(*pair, temperature=-1)


def test_a_call_in_a_thought_that_the_prompt_opened_is_not_run(pair, monkeypatch):
    model, tokenizer = pair
    thinking = copy.deepcopy(tokenizer)
    thinking.chat_template += "{%- if add_generation_prompt -%}<think>{%- endif -%}"
    spoken = tokenizer('<tool_call>{"name": "answer", "arguments": {"value": 1}}</tool_call>')
    tokens = iter(spoken["input_ids"])
    monkeypatch.setattr(steps, "sample", lambda *_: (torch.tensor([next(tokens)]), torch.zeros(1)))
    (situation,) = situations(1)

    length = len(spoken["input_ids"])
    (text,) = ChatModelPolicy(model, thinking, max_new_tokens=length).act([situation])
    situation.env.step(text)

    assert text.startswith("<think>")
    assert [turn.calls for turn in situation.env.episode.turns] == [()]
