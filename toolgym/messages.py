"""Episodes as chat messages, for chat templates and supervised training.

Prompts of evaluations and trainers and the examples of data sets all come from the functions below
and from `ToolEnv.user_prompt`, so a model never meets two wordings of one task. Changing the prompt
of an environment makes a new version of its id.

A chat template shows the tools from their schemas. For servers and templates without tools,
`tools_in_words` describes them in plain English.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from toolgym.calls import ToolCall, render_call
from toolgym.env import ToolEnv
from toolgym.episode import Turn
from toolgym.errors import ConfigurationError
from toolgym.records import EpisodeRecord, calls_text
from toolgym.tools import ToolSpec

if TYPE_CHECKING:
    from jinja2.environment import TemplateModule

Message = dict[str, Any]

TOOLS_IN_WORDS: Final = Path(__file__).with_name("tools_in_words.jinja")
"""The wording of `tools_in_words`, as macros that a chat template can hold."""


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


def tools_in_words(tools: Any) -> str:
    """The tools in plain English, for a model whose server or template shows it none.

    The text has the description of each tool, the type, default and description of each argument,
    the form of a call, and which tool ends the episode.

    Args:
        tools: `ToolSpec`s, a mapping of them by name (`env.tools`), or OpenAI function schemas,
            which do not say which tool ends the episode.

    Returns:
        Some lines of text; an empty one for no tools.

    >>> from toolgym.tools import ToolSpec, read_spec
    >>> def look(self, at: str, closely: bool = False) -> str:
    ...     '''Look at something.
    ...
    ...     Args:
    ...         at: What to look at.
    ...         closely: With a lens.
    ...     '''
    >>> print(tools_in_words([read_spec(look)]))
    You have these tools:
    <BLANKLINE>
    look: Look at something.
      Arguments:
      - at (string, required): What to look at.
      - closely (true or false, optional; false if left out): With a lens.
    <BLANKLINE>
    To call a tool, write its name and its arguments in this form:
    <tool_call>
    {"name": "look", "arguments": {"at": "..."}}
    </tool_call>
    One call in a message is enough: write it, end your message, and read the result.
    """
    entries = list(tools.values() if isinstance(tools, Mapping) else tools)
    if not entries:
        return ""
    schemas = [each.schema() if isinstance(each, ToolSpec) else each for each in entries]
    ending = [each.name for each in entries if isinstance(each, ToolSpec) and each.terminal]
    words: Any = _words()
    arguments = json.loads(words.example_arguments(schemas))
    example = render_call(str(words.example_name(schemas)), arguments)
    return str(words.tools_in_words(schemas, example, ending))


@functools.cache
def _words() -> TemplateModule:
    """The macros that the wording is made of."""
    from jinja2 import Environment

    environment = Environment()
    environment.filters["tojson"] = functools.partial(json.dumps, ensure_ascii=False)
    return environment.from_string(TOOLS_IN_WORDS.read_text(encoding="utf-8")).module


def prompt_messages(env: ToolEnv[Any]) -> list[Message]:
    """The chat before the agent's first turn; call `reset` first."""
    return [
        {"role": "system", "content": system_prompt(env)},
        {"role": "user", "content": env.user_prompt()},
    ]


def episode_messages(
    env: ToolEnv[Any], final: str | None = None, *, as_calls: bool = False
) -> list[Message]:
    """The whole transcript so far.

    Args:
        env: The environment after some turns.
        final: Text of a last assistant turn without a call, for trainers that play until there is
            one; None adds nothing.
        as_calls: Turns that were text with calls become `tool_calls` too, without the text, for
            chat templates that show a result only after `tool_calls`.

    Returns:
        System and user message, then for each turn the assistant's message and the results. A turn
        that was text stays that text, character by character; a turn that was given as calls
        becomes `tool_calls` with arguments as a dict (some templates would encode a JSON string
        twice).
    """
    messages = prompt_messages(env)
    for turn in env.episode.turns:
        messages += turn_messages(turn, as_calls=as_calls)
    if final is not None:
        messages.append({"role": "assistant", "content": final})
    return messages


def turn_messages(turn: Turn, *, as_calls: bool = False) -> list[Message]:
    """One turn: the assistant's message, then the result of each call, or the answer to a text.

    Args:
        as_calls: As for `episode_messages`.
    """
    calls, results = turn.calls, turn.results
    is_text = isinstance(turn.action, str) and not (as_calls and calls)
    spoken: Message = {"role": "assistant", "content": turn.action if is_text else ""}
    if not is_text:
        spoken["tool_calls"] = [_as_tool_call(call) for call in calls]
    if not calls:
        return [spoken, {"role": "user", "content": turn.observation}]
    notice = turn.observation[len("\n\n".join(results)) :]
    told = [
        {"role": "tool", "name": call.name or "unknown", "content": content}
        for call, content in zip(calls, [*results[:-1], results[-1] + notice], strict=True)
    ]
    return [spoken, *told]


def recorded_messages(env: ToolEnv[Any], record: EpisodeRecord) -> list[Message]:
    """The whole transcript of a recorded episode, as `episode_messages` gives it.

    A turn that was given as calls was recorded as the text of these calls, and becomes
    `tool_calls`; so does a text that is exactly that.

    Args:
        env: The environment, made as it was for the episode; it need not be reset.
        record: The recorded episode.

    Raises:
        ConfigurationError: A turn has several calls, and was recorded without the result of each.
    """
    messages = [
        {"role": "system", "content": system_prompt(env)},
        {"role": "user", "content": env.user_prompt(record.question)},
    ]
    for turn in record.turns:
        calls = tuple(ToolCall(call["name"], call["arguments"]) for call in turn["calls"])
        if len(calls) > 1 and "results" not in turn:
            raise ConfigurationError(
                f"a turn of {record.task_id} has {len(calls)} calls, but not the result of each:"
                " play it again."
            )
        observation = turn["observation"]
        results = tuple(turn["results"]) if len(calls) > 1 else (observation,) * len(calls)
        text = None if calls and turn["action"] == calls_text(calls) else turn["action"]
        messages += turn_messages(Turn(text, calls, results, observation, turn["reward"], ()))
    return messages


def _as_tool_call(call: ToolCall) -> dict[str, Any]:
    return {"type": "function", "function": {**call.to_json(), "name": call.name or "unknown"}}
