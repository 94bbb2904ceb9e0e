"""The contract of an adapter, for rollouts of the reference trainer: tokens in, tokens out.

Only the choice of tokens is scripted. What the model reads is taken from the tokens of the rollout.
"""

import math
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from adapters.reference.play import Player, Rollout
from adapters.tiny.model import TinySize, build_model
from adapters.tiny.tokenizer import train_tokenizer
from tests.adapters.conftest import Hold
from tests.adapters.reference.scripted import ScriptedEngine
from tests.adapters.scripted_contract import NotCarried, Played, PlayedTurn, played_in
from tests.adapters.scripted_episodes import EXPLORE, HUTS, SCRIPTS, ScriptedEpisode
from tests.sweeps import sweep
from toolgym import policies, registration
from toolgym.messages import episode_messages
from toolgym.rollout import play

pytestmark = pytest.mark.torch

END = "<|im_end|>"
MOST_TOKENS = 2000
STOPS = "no token is generated behind the end of an episode"
EXEMPT = {
    "silent": "a model writes at least one token",
    "budget_spent": STOPS,
    "after_the_end": STOPS,
    "huge_text": "it is longer than a completion may be",
}
QUICK = (
    "clean",
    "null_arguments",
    "unknown_tool",
    "broken_json",
    "two_calls",
    "answer_and_call",
    "control_tokens",
    "lone_surrogate",
    "strict_parsing",
)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    env = registration.make(EXPLORE)
    play(env, policies.ExpertPolicy(), task_id=HUTS)
    return train_tokenizer([episode_messages(env)], 600)


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    return build_model(tokenizer, size=TinySize(hidden=32, heads=2, feed_forward=64))


@pytest.mark.parametrize("script", sweep(SCRIPTS, QUICK, name=lambda script: script.name))
def test_a_rollout_carries_what_a_model_can_write(
    hold: Hold, model: Any, tokenizer: Any, script: ScriptedEpisode
) -> None:
    def play_tokens(script: ScriptedEpisode) -> Played:
        said = "".join(message + END for message in script.messages)
        tokens = tokenizer(said, add_special_tokens=False)["input_ids"]
        if not 0 < len(tokens) < MOST_TOKENS:
            raise NotCarried(f"a script of {len(tokens)} tokens")
        player = Player(model, tokenizer, script.env_id, script.arguments)
        player.engine = ScriptedEngine(model, player._chat.stop, lambda stream: tokens)
        rollout = Rollout(script.task_id, 0, "scripted")
        player.play([rollout], max_tokens=MOST_TOKENS)
        return seen(rollout, tokenizer)

    hold("reference", play_tokens, script, EXEMPT)


def seen(rollout: Rollout, tokenizer: Any) -> Played:
    """The text that the model read if it read all of it, else the answer of the environment."""
    env, tokens, played = rollout.env, rollout.tokens, rollout.env.episode.turns
    places = [end for _, end in tokens.turns], [start for start, _ in tokens.turns[1:]]
    between = [tokenizer.decode(tokens.tokens[a:b]) for a, b in zip(*places, strict=False)]
    rewards = rollout.turn_rewards[: len(played)]
    if rewards and not rollout.fault:  # what closing the episode changed belongs to the last turn
        rewards[-1] -= rollout.reward - math.fsum(turn.reward for turn in played)
    turns = []
    for number, turn in enumerate(played):
        is_over = not rollout.unfinished and not rollout.fault and turn is played[-1]
        known = PlayedTurn.of(turn, is_over)
        read = between[number] if number < len(between) else turn.observation
        is_whole = all(result in read for result in turn.results)
        shown = turn.observation if is_whole else read
        turns.append(PlayedTurn(shown, rewards[number], known.repairs, known.errors, is_over))
    known = played_in(env, turns)
    prompt = tokenizer.decode(tokens.prompt)
    asked = known.prompt if known.prompt and known.prompt in prompt else prompt
    return Played(asked, known.turns, rollout.reward, known.correct)
