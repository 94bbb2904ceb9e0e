"""How many tokens a rollout needs: as many as the environment's expert takes, results included.

Asked for when rollouts run out of tokens, so that a run can say how many would have done. It is
found out once, on a few training tasks, and is not known where the environment has no expert.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from jinja2 import TemplateError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.guards.setup import Room
from adapters.training.models.demonstrations import demonstrate
from adapters.training.models.special_tokens import context_length
from adapters.training.preflight.chat_format import completion_lengths, prompt_length
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError, EnvironmentFault

_TASKS: Final = 16  # that the expert plays


def room_finder(
    env_id: str,
    env_kwargs: Mapping[str, Any],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
) -> Callable[[], Room | None]:
    """What finds out, when it is first called, how much room a rollout needs and has.

    Args:
        env_id: The environment.
        env_kwargs: For `gym.make`.
        model: The policy.
        tokenizer: Its tokenizer, with a chat template.
    """
    return functools.cache(lambda: _room(env_id, env_kwargs, model, tokenizer))


def _room(
    env_id: str,
    env_kwargs: Mapping[str, Any],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
) -> Room | None:
    """None where the environment cannot be played: then that is what has to be told, elsewhere."""
    try:
        env = registration.make(env_id, **env_kwargs)
        if type(env).expert is ToolEnv.expert:
            return None
        transcripts = demonstrate(env_id, _TASKS, demonstrator="expert", **env_kwargs)
        prompts = [prompt_length(transcript, env, tokenizer) for transcript in transcripts]
        longest = max(completion_lengths(transcripts, env, tokenizer))
    except (ConfigurationError, EnvironmentFault, TemplateError):
        return None
    return Room(longest, context_length(model) - max(prompts))
