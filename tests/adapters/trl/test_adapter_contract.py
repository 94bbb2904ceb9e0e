"""The contract of an adapter, for the class that TRL gets: by whole messages, and by single calls.

`GRPOTrainer` reads calls by itself, looks each up among the methods of the object, and calls it. By
a tokenizer of `with_call_reading` a message reaches `_play_message` as it was written. `Rollouts`
plays as the reference trainer does, whose contract it has.
"""

import math
from typing import Any

import pytest

from adapters.trl import CallRefused, RolloutEnvironment, environment_factory
from tests.adapters.conftest import Hold
from tests.adapters.scripted_contract import NotCarried, Played, PlayedTurn, json_calls, played_in
from tests.adapters.scripted_episodes import SCRIPTS, ScriptedEpisode
from toolgym.calls import parse_calls

OWN_READER = "TRL reads calls by itself, and what it cannot read ends the rollout"
OWN_NAMES = "TRL answers a name that no method has in its own words"
ONE_BY_ONE = {
    **dict.fromkeys(("broken_json", "cut_off", "no_call", "encoded_arguments"), OWN_READER),
    **dict.fromkeys(("tool_alias", "misspelt_tool", "unknown_tool"), OWN_NAMES),
    "strict_parsing": "a call that does not bind is raised, as a plain Python function would",
}


BY_MESSAGES = {
    "no_call": "TRL ends a rollout at a message without a call",
    "strict_parsing": "with strict parsing all reading is left to TRL",
}


def play_messages(script: ScriptedEpisode) -> Played:
    rollout, prompt = begun(script)
    if rollout._parsing == "strict":
        raise NotCarried("a message")
    turns: list[PlayedTurn | None] = []
    for message in script.messages:
        if not parse_calls(message, rollout._tools):
            raise NotCarried("a message without a call")
        turns.append(turn_of(rollout, rollout._play_message(message)))
    return closed(rollout, prompt, turns)


def play_calls(script: ScriptedEpisode) -> Played:
    rollout, prompt = begun(script)
    turns: list[PlayedTurn | None] = []
    for message in script.messages:
        parts = [turn_of(rollout, [called(rollout, each)]) for each in json_calls(message)]
        whole = [part for part in parts if part is not None]
        turns.append(PlayedTurn.joined(whole) if len(whole) == len(parts) else None)
    return closed(rollout, prompt, turns)


def begun(script: ScriptedEpisode) -> tuple[Any, str]:
    """A rollout that has begun, and what TRL was told."""
    rollout: Any = environment_factory(script.env_id, **script.arguments)()
    return rollout, rollout.reset(task_id=script.task_id)


def called(rollout: RolloutEnvironment, call: dict[str, Any]) -> str:
    """The result of one call, as TRL makes it."""
    method = getattr(rollout, call["name"], None)
    if method is None:
        raise NotCarried(f"the name {call['name']!r}")
    try:
        text: str = method(**call["arguments"])
    except CallRefused as refusal:
        raise NotCarried("an error that TRL reports in its own words") from refusal
    return text


def turn_of(rollout: Any, results: list[str]) -> PlayedTurn | None:
    """What the model was shown, beside what the environment knows of it; None after a fault."""
    if rollout._fault:
        return None
    episode = rollout._playing.episode
    known = PlayedTurn.of(episode.turns[-1], episode.over)
    return PlayedTurn("\n\n".join(results), known.reward, known.repairs, known.errors, known.over)


def closed(rollout: Any, prompt: str, turns: list[PlayedTurn | None]) -> Played:
    known = played_in(rollout._playing, [turn for turn in turns if turn is not None])
    reward = rollout.get_reward()
    return Played(prompt, known.turns, math.nan if reward is None else reward, known.correct)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_by_messages_every_call_is_carried(hold: Hold, script: ScriptedEpisode) -> None:
    hold("trl", play_messages, script, BY_MESSAGES)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_by_calls_all_is_carried_that_trl_hands_on(hold: Hold, script: ScriptedEpisode) -> None:
    hold("trl (plain)", play_calls, script, ONE_BY_ONE)
