"""A model on a server as a policy: it is shown the transcript and the tools, and says what to call.

All episodes of a batch are asked about at the same time. What the model calls through the API is
passed on as it is, so that bad names, keys and JSON meet the same parser as any model's text; where
a server has no calls of its own (`tools="text"`), the tools are described in words and the calls
are found in the text. A request that fails leaves its episode unscored, and the others go on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, Literal

from toolgym.calls import render_calls
from toolgym.chat.client import ChatClient
from toolgym.chat.faults import ChatFault
from toolgym.chat.reply import Chat, Reply
from toolgym.chat.settings import DEFAULT_URL, settings_for
from toolgym.env import ToolEnv
from toolgym.episode import Turn
from toolgym.errors import ConfigurationError
from toolgym.messages import Message, prompt_messages, tools_in_words
from toolgym.policies.builtin import SERVED, Situation

Tools = Literal["native", "text"]
_TOOLS: Final = ("native", "text")


class ChatPolicy:
    """A model on a server.

    Args:
        client: Who asks it.
        seed: With the situation's own seed and its turn, the seed of each request.
        tools: "native" sends the tools with the request; "text" describes them in the prompt, for a
            server that knows no tools.
    """

    def __init__(self, client: ChatClient, *, seed: int = 0, tools: Tools = "native") -> None:
        if tools not in _TOOLS:
            raise ConfigurationError(f'tools must be "native" or "text", got {tools!r}.')
        self.name = f"{SERVED}{client.settings.model}"
        self.client, self.seed, self.tools = client, seed, tools

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """The model's text or calls in each situation, or the fault that prevented them."""
        replies = self.client.complete_all([self._chat(each) for each in situations])
        return [action_of(reply) for reply in replies]

    def usage(self) -> dict[str, Any]:
        """The requests so far, and their cost."""
        return asdict(self.client.totals)

    def _chat(self, situation: Situation) -> Chat:
        env = situation.env
        turn = len(env.episode.turns)
        text = f"toolgym-served-{self.seed}-{situation.seed}-{turn}"
        digest = hashlib.blake2b(text.encode(), digest_size=4).digest()
        seed = int.from_bytes(digest, "big") >> 1
        if self.tools == "native":
            return Chat(api_messages(env), env.tool_schemas(), seed)
        return Chat(_in_words(env), (), seed)


def action_of(reply: Reply | ChatFault) -> Any:
    """A reply as an action: its calls, else its text; a fault stays one."""
    if isinstance(reply, ChatFault):
        return reply
    if reply.tool_calls:
        return {"content": reply.text, "tool_calls": list(reply.tool_calls)}
    return reply.text


def api_messages(env: ToolEnv[Any]) -> list[Message]:
    """The transcript so far as the API takes it: each result names the call that it belongs to."""
    messages = prompt_messages(env)
    for number, turn in enumerate(env.episode.turns):
        messages += _turn(turn, number)
    return messages


def _turn(turn: Turn, number: int) -> list[Message]:
    """A turn that was text is answered in words: the API takes results of its own calls only."""
    if isinstance(turn.action, str) or not turn.calls:
        written = turn.action if isinstance(turn.action, str) else ""
        return [_assistant(written), {"role": "user", "content": turn.observation}]
    message = turn.action if isinstance(turn.action, Mapping) else {}
    calls = _calls(turn, message.get("tool_calls") or (), number)
    notice = turn.observation[len("\n\n".join(turn.results)) :]
    texts = [*turn.results[:-1], turn.results[-1] + notice]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": text}
        for call, text in zip(calls, texts, strict=True)
    ]
    return [{**_assistant(message.get("content") or ""), "tool_calls": calls}, *results]


def _assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


def _calls(turn: Turn, requested: Sequence[Any], number: int) -> list[dict[str, Any]]:
    """The calls of a turn, as they were made where a server can read them.

    Servers render the arguments of earlier calls through a template, and refuse the whole request
    over one that is no JSON object.
    """
    calls = []
    for place, bound in enumerate(turn.calls):
        made = requested[place] if place < len(requested) else {}
        inner = made.get("function") or {}
        arguments = inner.get("arguments", "")
        if not _is_object(arguments):
            arguments = json.dumps(bound.arguments, default=str)
        name = inner.get("name") or bound.name or "unknown"
        calls.append(
            {
                "id": made.get("id") or f"call_{number}_{place}",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
        )
    return calls


def _is_object(text: Any) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _in_words(env: ToolEnv[Any]) -> list[Message]:
    """The transcript as text, with the tools described in the first message."""
    system, *rest = prompt_messages(env)
    prompt = f"{system['content']}\n\n{tools_in_words(env.tools)}"
    messages: list[Message] = [{"role": "system", "content": prompt}, *rest]
    for turn in env.episode.turns:
        text = turn.action if isinstance(turn.action, str) else render_calls(turn.calls)
        messages += [_assistant(text), {"role": "user", "content": turn.observation}]
    return messages


def load(model: str, *, seed: int = 0, tools: Tools = "native", **options: Any) -> ChatPolicy:
    """A policy from the name of a model; the server's address comes with `base_url`.

    Args:
        model: As the server calls it.
        options: Those of `ChatSettings`.

    Raises:
        ConfigurationError: There is no such option, or `openai` is not installed, or OpenAI's own
            server is to be asked without a key.
    """
    settings = settings_for(model, options, more=("tools",))
    if settings.url == DEFAULT_URL and not settings.key():
        raise ConfigurationError(
            f"{SERVED}{model} asks {DEFAULT_URL}, which needs a key: set {settings.api_key_env}, or"
            " name a server of your own with --base-url http://127.0.0.1:8000/v1 (base_url=...)."
        )
    client = ChatClient(settings)
    return ChatPolicy(client, seed=seed, tools=tools)
