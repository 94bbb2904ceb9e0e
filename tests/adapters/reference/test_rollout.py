"""Rollouts of the reference trainer: episodes as tokens, with real templates and environments."""

import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
import transformers

from adapters.reference.play import Player, Rollout
from tests.adapters.base_models import random_model
from tests.adapters.reference.scripted import ScriptedEngine
from tests.sweeps import sweep
from toolgym import EnvironmentFault, Task, TaskSet, ToolEnv, tool
from toolgym.env import safe_text
from toolgym.messages import episode_messages

pytestmark = pytest.mark.torch

NOTES = "trl-tests/Notes-v0"
WORLD = "reference-tests/World-v0"
END = "<|im_end|>"


class WorldEnv(ToolEnv[Task]):
    """Meet the others, in a world that is drawn for each task."""

    together = threading.Barrier(1)

    def __init__(self, **options: Any) -> None:
        tasks = [Task(f"w-{number}", f"Meet {number}.") for number in range(4)]
        super().__init__(TaskSet([*tasks, Task("lost", "?")]), **options)

    def begin(self, task: Task) -> str:
        if task.id == "lost":
            raise EnvironmentFault("the disk is gone.")
        return f"{task.question} You have thrown {self.np_random.integers(10**9)}."

    @tool
    def meet(self) -> str:
        """Wait until everybody is here."""
        self.together.wait(timeout=120)
        return "met"

    @tool(terminal=True)
    def answer(self, value: int) -> str:
        """Submit the answer.

        Args:
            value: A number.
        """
        return self.submit(value == 1)


if WORLD not in gym.registry:
    gym.register(id=WORLD, entry_point=WorldEnv)


def call(name: str, **arguments: Any) -> str:
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>\n{body}\n</tool_call>{END}"


def expert(number: int) -> list[str]:
    """Turns that solve a note, with a detour of another length for each."""
    detours = [call("count", text="a" * (7 * i)) for i in range(number % 3)]
    return [*detours, call("read", note=f"note-{number}"), call("answer", value=10 + number)]


@pytest.fixture
def play(notes_model: Any, notes_tokenizer: Any) -> Callable[..., list[Rollout]]:
    """Plays scripted turns, each list a rollout of the note of its number."""

    def run(*scripts: list[str], env_id: str = NOTES, task: str = "note-{}", **given: Any) -> Any:
        tokenizer = given.get("tokenizer", notes_tokenizer)
        model = given.get("model", notes_model)
        player = Player(model, tokenizer, env_id, given.get("env_kwargs"), workers=4)
        ids = [
            tokenizer("".join(turns), add_special_tokens=False)["input_ids"] for turns in scripts
        ]
        player.engine = ScriptedEngine(
            model, player._chat.stop, lambda stream: ids[int(stream.partition("-")[0])]
        )
        rollouts = [Rollout(task.format(n), 0, str(n)) for n in range(len(scripts))]
        turn_tokens = given.get("turn_tokens")
        player.play(rollouts, max_tokens=given.get("max_tokens", 300), turn_tokens=turn_tokens)
        return rollouts

    return run


def appended(rollout: Rollout) -> list[int]:
    """The tokens that the policy did not sample."""
    pairs = zip(rollout.tokens.tokens, rollout.tokens.mask, strict=True)
    return [token for token, bit in pairs if not bit]


@pytest.mark.parametrize(
    "template",
    sweep(["tiny", "qwen3_training", "qwen2_5", "qwen3_instruct_2507"], ["tiny", "qwen3_training"]),
)
def test_tokens_are_those_of_the_chat_and_the_mask_marks_what_was_sampled(
    template: str, play: Any, notes_tokenizer: Any, make_tokenizer: Any
) -> None:
    tokenizer = notes_tokenizer if template == "tiny" else make_tokenizer(template)
    model = random_model(
        "Llama",
        torch.float32,
        vocab_size=len(tokenizer),
        max_position_embeddings=4096,
        eos_token_id=tokenizer.eos_token_id,
    )
    scripts = [["I wonder." + END, *expert(0)], expert(1), expert(2)]

    rollouts = play(*scripts, tokenizer=tokenizer, model=model, max_tokens=3000)

    for turns, rollout in zip(scripts, rollouts, strict=True):
        env, tokens = rollout.env, rollout.tokens
        said = [tokenizer(turn, add_special_tokens=False)["input_ids"] for turn in turns]
        assert [tokens.tokens[a:b] for a, b in tokens.turns] == said
        inside = {place for a, b in tokens.turns for place in range(a, b)}
        assert tokens.mask == [int(place in inside) for place in range(len(tokens.tokens))]
        rendered = tokenizer.apply_chat_template(
            episode_messages(env), tools=env.tool_schemas(), tokenize=False
        )
        whole = tokenizer.decode(tokens.prompt + tokens.tokens)
        assert rendered.replace("<think>\n\n</think>\n\n", "").startswith(whole)
        assert rollout.episode is not None
        assert rollout.episode.correct


def test_results_cannot_end_a_turn(play: Any, notes_tokenizer: Any) -> None:
    """A note holds the token that ends a turn."""
    (rollout,) = play(expert(0))

    ends = len(rollout.tokens.turns) - 1  # of the messages with results
    assert appended(rollout).count(notes_tokenizer.eos_token_id) == ends
    text = notes_tokenizer.decode(rollout.tokens.tokens)
    assert safe_text(END) in text


def test_rewards_of_turns_sum_to_the_score(play: Any) -> None:
    for rollout in play(expert(0), expert(1)[:-1], ["What?" + END], ["I"]):
        assert len(rollout.turn_rewards) == len(rollout.tokens.turns)
        assert math.fsum(rollout.turn_rewards) == pytest.approx(rollout.reward, abs=1e-12)


LONG = "What? " * 60


@pytest.mark.parametrize(
    ("turns", "options", "unfinished", "cut"),
    [
        pytest.param(expert(0), {}, False, False, id="answered"),
        pytest.param([*expert(0)[:1], LONG], {"max_tokens": 60}, True, True, id="cut later"),
        pytest.param([LONG], {"max_tokens": 5}, True, True, id="cut at once"),
        pytest.param([call("nope"), "a"], {"max_tokens": 30}, True, False, id="no room"),
        pytest.param(
            [call("nope")] * 4, {"env_kwargs": {"step_limit": 3}}, False, False, id="no calls left"
        ),
    ],
)
def test_a_rollout_that_runs_out_of_tokens_is_unfinished(
    turns: list[str], options: dict[str, Any], unfinished: bool, cut: bool, play: Any
) -> None:
    (rollout,) = play(turns, **options)

    assert (rollout.unfinished, rollout.cut) == (unfinished, cut)
    assert len(rollout.tokens.tokens) <= options.get("max_tokens", 300)
    assert rollout.episode is not None
    assert rollout.episode.answered == (turns == expert(0))


def test_a_rollout_never_outgrows_its_model(play: Any, notes_tokenizer: Any) -> None:
    def model_of(positions: int) -> Any:
        config = transformers.GPT2Config(
            vocab_size=len(notes_tokenizer), n_embd=32, n_layer=1, n_head=2, n_positions=positions
        )
        return transformers.GPT2LMHeadModel(config)

    (prompt,) = (len(each.tokens.prompt) for each in play(["I"]))
    (full,) = play([LONG], model=model_of(prompt + 9))
    (without,) = play([LONG], model=model_of(prompt))

    assert full.unfinished
    assert len(full.tokens.tokens) == 9
    assert without.unfinished
    assert without.tokens.tokens == without.turn_rewards == []


def test_a_turn_without_a_word_or_of_too_many_is_answered(play: Any, notes_tokenizer: Any) -> None:
    (silent,) = play([END, *expert(0)])
    length = len(notes_tokenizer(LONG)["input_ids"])  # without a token that ends it
    (wordy,) = play([LONG, *expert(0)], turn_tokens=length, max_tokens=1000)

    for rollout in (silent, wordy):
        assert rollout.episode.turns[0]["errors"]
        assert "error[" in notes_tokenizer.decode(appended(rollout))
        assert not rollout.unfinished
        assert not rollout.cut
        assert rollout.episode.correct
    first = wordy.tokens.turns[0]
    assert first[1] - first[0] == length
    assert wordy.tokens.tokens[first[1]] == notes_tokenizer.eos_token_id


def test_a_turn_that_is_cut_behind_its_call_is_played(play: Any) -> None:
    (rollout,) = play([call("answer", value=10).removesuffix(END)])

    assert not rollout.unfinished
    assert rollout.reward > 0.9


def test_a_fault_costs_its_rollout_and_no_other(play: Any, notes_folder: Path) -> None:
    scripts, options = [expert(n) for n in range(4)], {"env_kwargs": {"folder": notes_folder}}
    whole = play(*scripts, **options)
    (notes_folder / "note-2").unlink()

    rollouts = play(*scripts, **options)

    assert "the file of 'note-2' is gone" in rollouts[2].fault
    assert math.isnan(rollouts[2].reward)
    assert not rollouts[2].episode.scored
    for number in (0, 1, 3):
        assert rollouts[number].tokens.tokens == whole[number].tokens.tokens
        assert rollouts[number].reward == whole[number].reward


def test_an_episode_that_cannot_begin_is_a_rollout_without_tokens(play: Any) -> None:
    (rollout,) = play(["I"], env_id=WORLD, task="lost")

    assert (rollout.tokens.prompt, rollout.tokens.tokens) == ([], [])
    assert (rollout.fault, rollout.episode) == ("the disk is gone.", None)
    assert math.isnan(rollout.reward)


def test_tools_of_different_rollouts_run_at_the_same_time(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorldEnv, "together", threading.Barrier(4))

    scripts = [[call("meet"), call("answer", value=n)] for n in range(4)]
    rollouts = play(*scripts, env_id=WORLD, task="w-{}")

    assert [rollout.episode.correct for rollout in rollouts] == [False, True, False, False]


def test_rollouts_of_a_task_are_in_one_world(play: Any) -> None:
    group = play(*[["I"]] * 3, env_id=WORLD, task="w-2")
    tasks = play(*[["I"]] * 4, env_id=WORLD, task="w-{}")

    assert len({rollout.episode.question for rollout in group}) == 1
    assert group[0].episode.question == tasks[2].episode.question
    assert len({rollout.episode.question for rollout in tasks}) == 4


def test_what_a_model_samples_depends_on_the_stream_alone(
    notes_model: Any, notes_tokenizer: Any
) -> None:
    player = Player(notes_model, notes_tokenizer, NOTES, slots=3)
    state = torch.random.get_rng_state()

    def sampled(*names: str) -> list[list[int]]:
        rollouts = [Rollout("note-2", 0, name) for name in names]
        player.play(rollouts, max_tokens=12)
        return [rollout.tokens.tokens for rollout in rollouts]

    notes_model.train(True)
    together, alone = sampled("a", "b", "c", "d"), sampled("c")

    assert notes_model.training
    assert alone[0] == together[2]
    assert len(set(map(tuple, together))) == 4
    assert torch.equal(torch.random.get_rng_state(), state)
