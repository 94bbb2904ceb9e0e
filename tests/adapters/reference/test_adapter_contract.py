"""The contract of an adapter, for rollouts of the reference trainer: tokens in, tokens out.

Only the choice of tokens is scripted. What the model reads is taken from the tokens of the rollout.
"""

import math
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from torch import Tensor

from adapters.reference.generation import ActiveSequence, Player, PlaySettings
from adapters.reference.rollout import Ending, Request, Rollout
from adapters.reference.sampling import Sampler
from adapters.tiny.model import TinySize, build_model
from adapters.tiny.tokenizer import train_tokenizer
from tests.adapters.conftest import Hold
from tests.adapters.reference.scripted import Script
from tests.adapters.scripted_contract import NotCarried, Played, PlayedTurn, played_in
from tests.adapters.scripted_episodes import EXPLORE, HUTS, SCRIPTS, ScriptedEpisode
from tests.sweeps import sweep
from toolgym import policies, registration
from toolgym.messages import episode_messages
from toolgym.rollout import play

pytestmark = pytest.mark.torch

END = "<|im_end|>"
ENDS = (Ending.ANSWERED, Ending.OUT_OF_CALLS)
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


class LastWord(Script):
    """Draws the tokens of a script, and lets the rollout end with the last of them."""

    def __init__(self, tokens: list[int], sequences: list[ActiveSequence], *draw: Any) -> None:
        super().__init__([tokens], *draw)
        self.left, self.sequences = len(tokens), sequences

    def _sampled(
        self, log_probs: Tensor, rollouts: Sequence[int], positions: Sequence[int]
    ) -> Tensor:
        self.left -= 1
        if not self.left:
            self.sequences[0].max_length = positions[0] + 1
        return super()._sampled(log_probs, rollouts, positions)


class ScriptedPlayer(Player):
    """Says what it is told to."""

    tokens: list[int]

    def _encode_prompts(
        self, sequences: Sequence[ActiveSequence], requests: Sequence[Request]
    ) -> None:
        super()._encode_prompts(sequences, requests)
        self.sequences = list(sequences)

    def _sampler(self, requests: Sequence[Request]) -> Sampler:
        return LastWord(
            self.tokens, self.sequences, ["scripted"], 1.0, MOST_TOKENS, self.model.device
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
        settings = PlaySettings(max_tokens=MOST_TOKENS, workers=1)
        player = ScriptedPlayer(model, tokenizer, script.env_id, script.arguments, settings)
        player.tokens = tokens
        (rollout,) = player.play([Request(script.task_id, 0, "scripted")])
        return seen(rollout, player.env, tokenizer)

    hold("reference", play_tokens, script, EXEMPT)


def seen(rollout: Rollout, env: Any, tokenizer: Any) -> Played:
    """What the model read, where it read all of it; else the tokens, decoded."""
    places = [end for _, end in rollout.turns], [start for start, _ in rollout.turns[1:]]
    between = [tokenizer.decode(rollout.completion[a:b]) for a, b in zip(*places, strict=False)]
    rewards = rollout.turn_rewards[: len(env.episode.turns)]
    if rewards and rollout.scored:  # what closing the episode changed belongs to the last turn
        rewards[-1] -= rollout.reward - math.fsum(turn.reward for turn in env.episode.turns)
    turns = []
    for number, turn in enumerate(env.episode.turns):
        is_over = rollout.ending in ENDS and turn is env.episode.turns[-1]
        known = PlayedTurn.of(turn, is_over)
        read = between[number] if number < len(between) else turn.observation
        is_whole = all(result in read for result in turn.results)
        shown = turn.observation if is_whole else read
        turns.append(PlayedTurn(shown, rewards[number], known.repairs, known.errors, is_over))
    known = played_in(env, turns)
    prompt = tokenizer.decode(rollout.prompt)
    asked = known.prompt if known.prompt and known.prompt in prompt else prompt
    score = rollout.reward if rollout.scored else math.nan
    return Played(asked, known.turns, score, known.correct)
