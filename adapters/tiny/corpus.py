"""What a tokenizer for tool calls should find cheap, beyond demonstrations of how to do it right.

A model that is being trained makes mistakes, and so reads error messages; and it may come to pad
its calls with nulls. If such text cost many times more tokens than the right one, a transcript
with a mistake would not fit where one without does. So the tokenizer sees some of both while it is
made; the model that learns from demonstrations does not.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from toolgym.env import ToolEnv
from toolgym.messages import Message, episode_messages

_NONSENSE = "x"


def null_padded(transcript: Sequence[Message], tools: Sequence[dict[str, Any]]) -> list[Message]:
    """The transcript with every argument of every tool in every call, null where it had none.

    Args:
        transcript: Chat messages; they stay as they are.
        tools: In the OpenAI function format.
    """
    names = [key for tool in tools for key in tool["function"]["parameters"]["properties"]]
    padded: list[Message] = copy.deepcopy(list(transcript))
    for message in padded:
        for call in message.get("tool_calls") or []:
            given = call["function"]["arguments"]
            call["function"]["arguments"] = {name: given.get(name) for name in [*names, *given]}
    return padded


def mistakes(env: ToolEnv[Any], task_ids: Sequence[str]) -> list[list[Message]]:
    """Transcripts of what goes wrong with each tool: no arguments, nonsense, no call, no such tool.

    Args:
        env: An environment of one's own; its current episode ends.
        task_ids: One transcript for each.
    """
    actions: list[Any] = [{"name": _NONSENSE, "arguments": {}}, _NONSENSE]
    for name, spec in env.tools.items():
        if not spec.terminal:
            actions.append({"name": name, "arguments": {}})
            actions.append({"name": name, "arguments": dict.fromkeys(spec.required, _NONSENSE)})
    transcripts = []
    for task_id in task_ids:
        env.reset(options={"task_id": task_id})
        for action in actions:
            if not env.episode.over:
                env.step(action)
        transcripts.append(episode_messages(env))
    return transcripts
