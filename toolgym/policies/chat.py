"""`ChatPolicy`: the policy for a model on a server, which receives the transcript and the tools.

The requests of a batch are sent concurrently. Calls that the API returns are passed on unchanged,
so incorrect names, keys and JSON reach the same parser as calls in text. With `tools="text"`, for
servers without support for tools, the prompt describes the tools and the calls are found in the
text. If a request fails, its episode is not scored. The other episodes continue.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from toolgym.calls import render_calls
from toolgym.chat.client import ChatClient
from toolgym.chat.faults import ChatFault
from toolgym.chat.reply import Chat, Reply
from toolgym.chat.settings import DEFAULT_URL, ChatSettings
from toolgym.env import ToolEnv
from toolgym.episode import Turn
from toolgym.errors import ConfigurationError
from toolgym.messages import Message, prompt_messages, system_prompt, turn_messages
from toolgym.policies.builtin import SERVED, Situation

Tools = Literal["native", "text"]


class ChatPolicy:
    """The policy for a model on a server.

    Args:
        client: The client that sends the requests.
        seed: Seed that, combined with the seed and the turn of the episode, determines the seed of
            each request.
        tools: "native" sends the tools with the request; "text" describes them in the prompt, for
            servers without support for tools.
    """

    def __init__(self, client: ChatClient, *, seed: int = 0, tools: Tools = "native") -> None:
        if tools not in ("native", "text"):
            raise ConfigurationError(f'tools must be "native" or "text", got {tools!r}.')
        self.name = f"{SERVED}{client.settings.model}"
        self.client, self.seed, self.tools = client, seed, tools

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """Return the model's text or calls for each situation, or the error of a failed request."""
        replies = self.client.complete_all([self._chat(each) for each in situations])
        return [_action_of(reply) for reply in replies]

    def usage(self) -> dict[str, Any]:
        """Return the totals of requests, tokens and cost so far."""
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


def _action_of(reply: Reply | ChatFault) -> Any:
    """Convert a reply to an action: its calls, or else its text. A fault is returned unchanged."""
    if isinstance(reply, Reply):
        calls = list(reply.tool_calls)
        return {"content": reply.text, "tool_calls": calls} if calls else reply.text
    return reply


def api_messages(env: ToolEnv[Any]) -> list[Message]:
    """Return the transcript in the format of the API, with the id of the call in each result."""
    messages = prompt_messages(env)
    for number, turn in enumerate(env.episode.turns):
        messages += _turn(turn, number)
    return messages


def _turn(turn: Turn, number: int) -> list[Message]:
    """Return the messages of a turn.

    A turn without API calls is answered by a user message, since the API accepts results only for
    calls.
    """
    if isinstance(turn.action, str) or not turn.calls:
        written = turn.action if isinstance(turn.action, str) else ""
        return _spoken(written, turn.observation)
    message = turn.action if isinstance(turn.action, Mapping) else {}
    requested = message.get("tool_calls") or ()
    assistant, *results = turn_messages(turn)
    for place, (call, result) in enumerate(zip(assistant["tool_calls"], results, strict=True)):
        made = requested[place] if place < len(requested) else {}
        call["id"] = result["tool_call_id"] = made.get("id") or f"call_{number}_{place}"
        inner, bound = made.get("function") or {}, call["function"]
        arguments = _object(inner.get("arguments")) or json.dumps(bound["arguments"])
        call["function"] = {"name": inner.get("name") or bound["name"], "arguments": arguments}
        del result["name"]
    return [{**assistant, "content": message.get("content") or ""}, *results]


def _object(text: Any) -> str | None:
    """Return the text if it is a JSON object, or else None, as servers reject other arguments."""
    try:
        return text if isinstance(text, str) and isinstance(json.loads(text), dict) else None
    except (ValueError, RecursionError):
        return None


def _spoken(text: str, observation: str) -> list[Message]:
    said: Message = {"role": "assistant", "content": text}
    return [said, {"role": "user", "content": observation}]


def _in_words(env: ToolEnv[Any]) -> list[Message]:
    """Return the transcript as text, with a description of the tools in the first message."""
    _, *messages = prompt_messages(env)
    for turn in env.episode.turns:
        text = turn.action if isinstance(turn.action, str) else render_calls(turn.calls)
        messages += _spoken(text, turn.observation)
    return [{"role": "system", "content": system_prompt(env, in_words=True)}, *messages]


def load(model: str, *, seed: int = 0, tools: Tools = "native", **options: Any) -> ChatPolicy:
    """Create the policy for a model on a server. The option `base_url` is the address of the
    server.

    Args:
        model: Name of the model on the server.
        seed: As for `ChatPolicy`.
        tools: As for `ChatPolicy`.
        options: The settings of `ChatSettings`.

    Raises:
        ConfigurationError: An option is unknown, `openai` is not installed, or there is no key for
            OpenAI's own server.
    """
    settings = ChatSettings(model=model, **options)
    if settings.url == DEFAULT_URL and not settings.key():
        raise ConfigurationError(
            f"{SERVED}{model} is on {DEFAULT_URL}, which needs a key: set {settings.api_key_env},"
            " or name your own server with --base-url http://127.0.0.1:8000/v1 (base_url=...)."
        )
    return ChatPolicy(ChatClient(settings), seed=seed, tools=tools)
