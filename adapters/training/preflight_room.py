"""Do rollouts fit into the tokens that they are given? An expert's transcripts tell.

A rollout that runs out of tokens has not answered. Where even the expert's does not fit, no policy
can be right, however long it is trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.demonstrations import demonstrate
from adapters.training.preflight_format import rendered
from adapters.training.preflight_report import Finding, Level
from adapters.training.settings import TrainSettings
from adapters.training.special_tokens import context_length
from toolgym.env import ToolEnv
from toolgym.messages import Message, prompt_messages


def expert_transcripts(settings: TrainSettings, env: ToolEnv[Any], n: int) -> list[list[Message]]:
    """Transcripts of the environment's expert on training tasks; none where it has no expert."""
    if type(env).expert is ToolEnv.expert:
        return []
    return demonstrate(
        settings.env_id,
        n,
        demonstrator="expert",
        seed=settings.seed,
        **settings.training_kwargs,
    )


def completion_lengths(
    transcripts: Sequence[Sequence[Message]], env: ToolEnv[Any], tokenizer: PreTrainedTokenizerBase
) -> list[int]:
    """Tokens of each transcript after its prompt, results of tools included."""
    tools, lengths = env.tool_schemas(), []
    for transcript in transcripts:
        # The last turn, which only says that it is over, is not asked for in reinforcement.
        whole = _length(rendered(transcript[:-1], tools, tokenizer), tokenizer)
        lengths.append(whole - prompt_length(transcript, env, tokenizer))
    return lengths


def prompt_length(
    transcript: Sequence[Message], env: ToolEnv[Any], tokenizer: PreTrainedTokenizerBase
) -> int:
    """Tokens of a transcript before its first turn."""
    begin = next(i for i, message in enumerate(transcript) if message["role"] == "assistant")
    return _length(rendered(transcript[:begin], env.tool_schemas(), tokenizer), tokenizer)


def check_room(
    settings: TrainSettings,
    env: ToolEnv[Any],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    lengths: Sequence[int],
) -> Iterator[Finding]:
    """An expert's rollout fits into a rollout, and a prompt with a rollout into the model.

    Args:
        settings: Of the training that is to come.
        env: After `reset`.
        model: The policy.
        tokenizer: Its tokenizer.
        lengths: Tokens of the completions of an expert.
    """
    room, context = settings.max_completion_length, context_length(model)
    prompt = _length(rendered(prompt_messages(env), env.tool_schemas(), tokenizer), tokenizer)
    if prompt + room > context:
        told = f"A prompt of {prompt} tokens and a rollout of {room} exceed the model's {context}."
        yield Finding("room", "no-go", told, "Lower --max-completion-length.")
    too_long = sum(length > room for length in lengths)
    if too_long:
        told = f"{too_long} of {len(lengths)} rollouts of the expert do not fit into {room} tokens:"
        told += f" they take up to {max(lengths)}."
        level: Level = "no-go" if 2 * too_long > len(lengths) else "warn"
        yield Finding("room", level, told, "Raise --max-completion-length.")


def _length(text: str, tokenizer: PreTrainedTokenizerBase) -> int:
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])
