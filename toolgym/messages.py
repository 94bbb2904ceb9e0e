"""Episodes as chat messages, for chat templates and supervised training.

These functions and `ToolEnv.user_prompt` produce the prompts of evaluations and trainers as well as
the examples of data sets, so a model always sees the same wording of a task. If the prompt of an
environment changes, the version in its id must change too.

A chat template renders the tools from their schemas. For servers and templates without support for
tools, `tools_in_words` describes them in plain English.
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
"""The text of `tools_in_words`, as Jinja macros that a chat template can include."""


def system_prompt(env: ToolEnv[Any], *, in_words: bool = False) -> str:
    """Return the instructions for the agent, which begin with the environment's docstring.

    For agents that write no calls (`ToolSpec.hidden`), the description of the hidden tool follows.

    Args:
        env: The environment.
        in_words: Whether to describe the tools, for servers and chat templates that do not show
            them. If False, the caller must pass `env.tool_schemas()` to the chat template.
    """
    purpose = " ".join((type(env).__doc__ or "").strip().split("\n\n")[0].split())
    for spec in env.tools.values():
        if spec.hidden:
            return f"{purpose} {spec.description}"
    ends = " or ".join(spec.name for spec in env.tools.values() if spec.terminal)
    prompt = (
        f"{purpose} Use the tools you are given, one call at a time, and read each result before"
        f" the next call. When you are sure, call {ends}: it ends the episode."
    )
    return f"{prompt}\n\n{tools_in_words(env.tools)}" if in_words else prompt


def tools_in_words(tools: Any) -> str:
    """Describe the tools in plain English, for a server or chat template that does not show them.

    The text contains the description of each tool, the type, default and description of each
    argument, the format of a call, and the name of the tool that ends the episode.

    Args:
        tools: `ToolSpec`s, a mapping of them by name (`env.tools`), or OpenAI function schemas,
            which do not state which tool ends the episode.

    Returns:
        The text, or "" without tools.

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
    """Load the macros in `TOOLS_IN_WORDS`."""
    from jinja2 import Environment

    environment = Environment()
    environment.filters["tojson"] = functools.partial(json.dumps, ensure_ascii=False)
    return environment.from_string(TOOLS_IN_WORDS.read_text(encoding="utf-8")).module


def prompt_messages(env: ToolEnv[Any]) -> list[Message]:
    """Return the chat before the agent's first turn. Call `reset` first."""
    return [
        {"role": "system", "content": system_prompt(env)},
        {"role": "user", "content": env.user_prompt()},
    ]


def episode_messages(
    env: ToolEnv[Any], final: str | None = None, *, as_calls: bool = False
) -> list[Message]:
    """Return the transcript of the current episode so far.

    Args:
        env: The environment.
        final: Text of a final assistant turn without a call, for trainers whose episodes end with
            such a turn. None adds no turn.
        as_calls: Whether turns whose text contains calls are converted to `tool_calls` without the
            text, for chat templates that show a result only after `tool_calls`.

    Returns:
        The system and user messages, then the assistant's message and the results of each turn. A
        turn given as text keeps its text unchanged. A turn that was given as calls becomes
        `tool_calls` with arguments as a dict, because some templates would encode a JSON string
        twice.
    """
    messages = prompt_messages(env)
    for turn in env.episode.turns:
        messages += turn_messages(turn, as_calls=as_calls)
    if final is not None:
        messages.append({"role": "assistant", "content": final})
    return messages


def turn_messages(turn: Turn, *, as_calls: bool = False) -> list[Message]:
    """Return the messages of one turn: the assistant's message, then one message for each result.

    Args:
        turn: The turn. If the turn contains no call, the observation becomes a user message.
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
    answers = [
        {"role": "tool", "name": call.name or "unknown", "content": content}
        for call, content in zip(calls, [*results[:-1], results[-1] + notice], strict=True)
    ]
    return [spoken, *answers]


def recorded_messages(env: ToolEnv[Any], record: EpisodeRecord) -> list[Message]:
    """Return the transcript of a recorded episode, in the format of `episode_messages`.

    An action that was given as calls is recorded as the text of these calls. In the transcript,
    every turn with such text becomes `tool_calls`.

    Args:
        env: The environment, created with the arguments of the episode; it need not be reset.
        record: The recorded episode.

    Raises:
        ConfigurationError: A turn with several calls was recorded without the individual results.
    """
    messages = [
        {"role": "system", "content": system_prompt(env)},
        {"role": "user", "content": env.user_prompt(record.question)},
    ]
    for turn in record.turns:
        calls = tuple(ToolCall(call["name"], call["arguments"]) for call in turn["calls"])
        if len(calls) > 1 and "results" not in turn:
            raise ConfigurationError(
                f"a turn of {record.task_id} has {len(calls)} calls but not the result of each:"
                " play the task again."
            )
        observation = turn["observation"]
        results = tuple(turn["results"]) if len(calls) > 1 else (observation,) * len(calls)
        text = None if calls and turn["action"] == calls_text(calls) else turn["action"]
        messages += turn_messages(Turn(text, calls, results, observation, turn["reward"], ()))
    return messages


def _as_tool_call(call: ToolCall) -> dict[str, Any]:
    return {"type": "function", "function": {**call.to_json(), "name": call.name or "unknown"}}
