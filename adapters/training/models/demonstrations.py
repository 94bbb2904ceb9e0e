"""Demonstrations: transcripts to imitate, played through the real environment.

The observations are the environment's, down to the character, so what a model reads while it
imitates is what it will read when it acts. What went wrong in a demonstration is there to be read
and not to be learnt: an assistant's turn with an error or a repair carries `"weight": 0`, as in
OpenAI's fine-tuning format, and `adapters.training.models.tokenized_examples` leaves it out of the
loss. The turn after it is learnt: how to go on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from adapters.training.models.noisy_demonstrator import NoisyDemonstrator
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.messages import Message, prompt_messages, turn_messages
from toolgym.policies import ExpertPolicy, Policy, Situation

Demonstrator = Literal["sloppy", "expert"]

LAST_WORD: Final = "done"
"""Closes a transcript: trainers go on until a turn without a call, so that turn must be learnt."""


def demonstrate(
    env_id: str,
    n: int,
    *,
    demonstrator: Demonstrator = "sloppy",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **env_kwargs: Any,
) -> list[list[Message]]:
    """Play n episodes and return their transcripts.

    Args:
        env_id: A registered environment with an expert.
        n: How many; beyond the number of tasks each is played again, in another habit.
        demonstrator: Who plays.
        seed: Chooses tasks and habits.
        progress: Called with how many are done and how many there are.
        env_kwargs: For the environment; the training split is its default.

    Returns:
        Chat messages, prompt included, each transcript closed by an assistant's `LAST_WORD`.

    Raises:
        ConfigurationError: n is below 1, no task is playable, or the environment has no expert.
    """
    if n < 1:
        raise ConfigurationError(f"demonstrations must be at least 1, got {n}.")
    env = registration.make(env_id, **env_kwargs)
    ids = env.tasks.shuffle(seed).first_playable(n).ids
    if not ids:
        raise ConfigurationError(f"no task of {env.tasks.name} is playable.")
    policy: Policy = NoisyDemonstrator(seed) if demonstrator == "sloppy" else ExpertPolicy()
    transcripts = []
    for slot in range(n):
        transcripts.append(_play(env, policy, slot, ids[slot % len(ids)], seed))
        if progress is not None:
            progress(slot + 1, n)
    return transcripts


def _play(env: ToolEnv[Any], policy: Policy, slot: int, task_id: str, seed: int) -> list[Message]:
    observation, _ = env.reset(options={"task_id": task_id})
    while not env.episode.over:
        situation = Situation(slot, env, observation, seed * 1_000_003 + slot)
        action = policy.act([situation])[0]
        if not action:
            env.finish()  # it has no more to say: a transcript that stops short
            break
        observation, *_ = env.step(action)
    return _transcript(env)


def _transcript(env: ToolEnv[Any]) -> list[Message]:
    messages = prompt_messages(env)
    for turn in env.episode.turns:
        spoken, *results = turn_messages(turn)
        if any(turn.errors) or any(call.repairs for call in turn.calls):
            spoken = {**spoken, "weight": 0}
        messages += [spoken, *results]
    return [*messages, {"role": "assistant", "content": LAST_WORD}]
