"""Operators that ask a language model on a server: anything that speaks the OpenAI protocol.

The client is the one that policies use (`toolgym.chat`): retries, deadlines, the cache and the cost
are its work. Here a request of an operator becomes one of a chat. Its seed is fixed by all that a
draw may depend on (seed of the run, task, place, number of the call), so that the branches of
`[Custom * 3]` differ, and the same run asks the same. The temperature is above 0 by default: with
greedy replies three tries are one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aflowgym.backends.sharing import Shared
from aflowgym.operators.context import Completion, Request, Sandbox
from aflowgym.operators.trace import Usage
from toolgym.chat import Chat, ChatClient, ChatSettings, Reply

TEMPERATURE: Final = 0.7


class OpenAIBackend:
    """Replies of a model on a server.

    Raises:
        ConfigurationError: The library `openai` is not installed.
    """

    sandbox: Sandbox | None
    waits: Final = True
    """Its replies come from elsewhere: environments that ask it are stepped at the same time."""

    def __init__(self, client: ChatClient | ChatSettings, sandbox: Sandbox | None = None) -> None:
        self.client = ChatClient(client) if isinstance(client, ChatSettings) else client
        self.sandbox = sandbox

    def generate(self, request: Request) -> Completion:
        """One completion.

        Raises:
            ChatFault: None could be had; an `EnvironmentFault`.
        """
        return _completion(self.client.complete(_chat(request)))

    def dollars(self, usage: Usage) -> float | None:
        """The price of a run or a step by the price table, cached or not; None without a price."""
        return self.client.settings.dollars(usage.tokens_in, usage.tokens_out)


def _chat(request: Request) -> Chat:
    return Chat(request.messages, (), request.draw, max(1, request.max_tokens))


def _completion(reply: Reply) -> Completion:
    return Completion(reply.text, reply.tokens_in, reply.tokens_out, reply.cut)


_shared: Final = Shared["OpenAIBackend"]()


def shared_server(model: str, options: Mapping[str, Any]) -> OpenAIBackend:
    """The backend of a model and its options: one for all environments of this process.

    Args:
        model: As the server calls it.
        options: Those of `toolgym.chat.ChatSettings`, and `sandbox`.

    Raises:
        ConfigurationError: There is no such option, or the library `openai` is not installed.
    """
    chosen = {"temperature": TEMPERATURE, **options}
    chat_options = {option: value for option, value in chosen.items() if option != "sandbox"}

    def make() -> OpenAIBackend:
        return OpenAIBackend(ChatSettings(model=model, **chat_options), chosen.get("sandbox"))

    return _shared.get(f"openai:{model}", chosen, make)
