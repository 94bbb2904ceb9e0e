"""Transcripts as chat messages: what a chat template renders, and what supervised training reads.

One episode object serves all: the prompt of an evaluation, the prompt of a trainer and the example
of a supervised data set come from the functions below, so a model never meets two wordings of one
task. The prompt is part of the environment's version: changing it is a new version of the
environment id.
"""

from __future__ import annotations

import json
from typing import Any

from toolgym.calls import ToolCall
from toolgym.env import ToolEnv
from toolgym.episode import Turn

Message = dict[str, Any]


def system_prompt(env: ToolEnv[Any]) -> str:
    """The instructions to the agent, from the environment's own docstring.

    The tools themselves are not listed: a chat template renders `env.tool_schemas()`.
    """
    purpose = " ".join((type(env).__doc__ or "").strip().split("\n\n")[0].split())
    ends = " or ".join(spec.name for spec in env.tools.values() if spec.terminal)
    return (
        f"{purpose} Use the tools you are given, one call at a time, and read each result before"
        f" the next call. When you are sure, call {ends}: it ends the episode."
    )


def user_prompt(env: ToolEnv[Any]) -> str:
    """The question and the budget of the current episode."""
    return f"{env.episode.question}\n{env.budget_line()}"


def prompt_messages(env: ToolEnv[Any]) -> list[Message]:
    """The chat before the agent's first turn; call `reset` first."""
    return [
        {"role": "system", "content": system_prompt(env)},
        {"role": "user", "content": user_prompt(env)},
    ]


def episode_messages(env: ToolEnv[Any], final: str | None = None) -> list[Message]:
    """The whole transcript so far.

    Args:
        env: The environment after some turns.
        final: Text of a last assistant turn without a call, which trainers that go on until such a
            turn need; None adds nothing.

    Returns: System and user message, then for each turn what the assistant did and what came back.
        A turn that was text stays that text, character by character; a turn that was given as calls
        becomes `tool_calls` with arguments as a dict (as a JSON string some templates would encode
        them twice).
    """
    messages = prompt_messages(env)
    for turn in env.episode.turns:
        messages += turn_messages(turn)
    if final is not None:
        messages.append({"role": "assistant", "content": final})
    return messages


def turn_messages(turn: Turn) -> list[Message]:
    """One turn: the assistant's message, then the results or what was said to a mere text."""
    if isinstance(turn.action, str):
        spoken: Message = {"role": "assistant", "content": turn.action}
    else:
        calls = [_as_tool_call(call) for call in turn.calls]
        spoken = {"role": "assistant", "content": "", "tool_calls": calls}
    if not turn.calls:
        return [spoken, {"role": "user", "content": turn.observation}]
    notice = turn.observation[len("\n\n".join(turn.results)) :]
    texts = [*turn.results[:-1], turn.results[-1] + notice]
    results = [
        {"role": "tool", "name": call.name or "unknown", "content": text}
        for call, text in zip(turn.calls, texts, strict=True)
    ]
    return [spoken, *results]


def _as_tool_call(call: ToolCall) -> dict[str, Any]:
    # A copy through JSON: the message must stay as it was, whatever becomes of the arguments.
    arguments = json.loads(json.dumps(call.arguments, default=str))
    return {"type": "function", "function": {"name": call.name, "arguments": arguments}}
